//! What a store holds before a case is measured. Says it in numbers; each store has its own way to get there.

use leasehold_core::Plan;

/// More than is ever admitted, so that claims can go on.
pub(crate) const NO_LIMIT: u32 = 100_000;

/// Workspaces and their requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fill {
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) lines: Vec<Line>,
}

/// Workspaces, numbered from `first`, with one definition each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) limit: u32,
    pub(crate) paused: bool,
}

/// Requests that wait, dealt out in turn to the workspaces from number `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) first: u32,
    pub(crate) workspaces: u32,
    pub(crate) requests: u32,
    /// Not due before so many seconds.
    pub(crate) seconds: u32,
    /// How often the engine has refused each.
    pub(crate) refusals: u32,
}

impl Fill {
    /// `pending` requests in line in `workspaces` workspaces.
    pub(crate) fn backlog(pending: u32, workspaces: u32, limit: u32) -> Self {
        Self {
            crowds: vec![Crowd {
                first: 0,
                count: workspaces,
                limit,
                paused: false,
            }],
            lines: vec![Line {
                first: 0,
                workspaces,
                requests: pending,
                seconds: 0,
                refusals: 0,
            }],
        }
    }

    /// Workspaces of the three plans, a third each, with nothing to do.
    pub(crate) fn plans(workspaces: u32) -> Self {
        let mut crowds = Vec::new();
        let mut first = 0;
        for (left, plan) in [3, 2, 1].into_iter().zip(Plan::ALL) {
            let count = (workspaces - first) / left;
            if count > 0 {
                crowds.push(Crowd {
                    first,
                    count,
                    limit: plan.max_concurrent_executions(),
                    paused: false,
                });
            }
            first += count;
        }
        Self {
            crowds,
            lines: Vec::new(),
        }
    }

    /// Workspaces with nothing to do.
    pub(crate) fn idle(workspaces: u32, limit: u32) -> Self {
        Self {
            lines: Vec::new(),
            ..Self::backlog(0, workspaces, limit)
        }
    }

    /// The same with more workspaces of that limit.
    pub(crate) fn and(mut self, count: u32, limit: u32) -> Self {
        let first = self.workspaces();
        self.crowds.push(Crowd {
            first,
            count,
            limit,
            paused: false,
        });
        self
    }

    /// The same with requests that wait in the workspaces from number `first` on.
    pub(crate) fn waiting(mut self, requests: u32, first: u32, workspaces: u32) -> Self {
        self.lines.push(Line {
            first,
            workspaces,
            requests,
            seconds: 0,
            refusals: 0,
        });
        self
    }

    /// How many workspaces there are.
    pub(crate) fn workspaces(&self) -> u32 {
        self.crowds.iter().map(|crowd| crowd.count).sum()
    }

    /// The same with `count` requests before them that cannot be admitted.
    pub(crate) fn behind(mut self, obstacle: Obstacle, count: u32) -> Self {
        let line = self.lines[0];
        let blocked = match obstacle {
            Obstacle::NotDue => Line {
                seconds: 86_400,
                ..line
            },
            Obstacle::BackingOff => Line {
                seconds: 3_600,
                refusals: 3,
                ..line
            },
            Obstacle::Paused => {
                self.crowds.push(Crowd {
                    first: line.workspaces,
                    paused: true,
                    ..self.crowds[0]
                });
                Line {
                    first: line.workspaces,
                    ..line
                }
            }
        };
        self.lines.insert(
            0,
            Line {
                requests: count,
                ..blocked
            },
        );
        self
    }
}

/// Why requests that wait cannot be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Their time has not come.
    NotDue,
    /// The engine refused them and they wait to be tried again.
    BackingOff,
    /// Their workspaces are held.
    Paused,
}

impl Obstacle {
    pub(crate) const ALL: [Self; 3] = [Self::NotDue, Self::BackingOff, Self::Paused];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotDue => "not_due",
            Self::BackingOff => "backing_off",
            Self::Paused => "paused",
        }
    }
}
