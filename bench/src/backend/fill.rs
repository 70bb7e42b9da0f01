//! Describes the data that a store holds before a measurement. Each backend writes it in its own way.

use leasehold_core::Plan;

/// A limit that no benchmark reaches.
pub(crate) const NO_LIMIT: u32 = 100_000;

/// Workspaces and their requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fill {
    pub(crate) workspace_groups: Vec<WorkspaceGroup>,
    pub(crate) request_groups: Vec<RequestGroup>,
}

/// Workspaces, numbered from `first`, with one definition each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkspaceGroup {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) limit: u32,
    pub(crate) paused: bool,
}

/// Pending requests, spread evenly over the workspaces from number `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestGroup {
    pub(crate) first: u32,
    pub(crate) workspaces: u32,
    pub(crate) requests: u32,
    /// Seconds until they are due.
    pub(crate) seconds: u32,
    /// How often the engine has rejected each.
    pub(crate) refusals: u32,
}

impl Fill {
    /// Returns `pending` due requests in `workspaces` workspaces.
    pub(crate) fn backlog(pending: u32, workspaces: u32, limit: u32) -> Self {
        Self {
            workspace_groups: vec![WorkspaceGroup {
                first: 0,
                count: workspaces,
                limit,
                paused: false,
            }],
            request_groups: vec![RequestGroup {
                first: 0,
                workspaces,
                requests: pending,
                seconds: 0,
                refusals: 0,
            }],
        }
    }

    /// Returns workspaces of the three plans, a third each, without requests.
    pub(crate) fn plans(workspaces: u32) -> Self {
        let mut workspace_groups = Vec::new();
        let mut first = 0;
        for (left, plan) in [3, 2, 1].into_iter().zip(Plan::ALL) {
            let count = (workspaces - first) / left;
            if count > 0 {
                workspace_groups.push(WorkspaceGroup {
                    first,
                    count,
                    limit: plan.max_concurrent_executions(),
                    paused: false,
                });
            }
            first += count;
        }
        Self {
            workspace_groups,
            request_groups: Vec::new(),
        }
    }

    /// Returns workspaces without requests.
    pub(crate) fn idle(workspaces: u32, limit: u32) -> Self {
        Self {
            request_groups: Vec::new(),
            ..Self::backlog(0, workspaces, limit)
        }
    }

    /// Adds workspaces with this limit.
    pub(crate) fn with_workspaces(mut self, count: u32, limit: u32) -> Self {
        let first = self.workspaces();
        self.workspace_groups.push(WorkspaceGroup {
            first,
            count,
            limit,
            paused: false,
        });
        self
    }

    /// Adds pending requests in the workspaces from number `first` on.
    pub(crate) fn with_requests(mut self, requests: u32, first: u32, workspaces: u32) -> Self {
        self.request_groups.push(RequestGroup {
            first,
            workspaces,
            requests,
            seconds: 0,
            refusals: 0,
        });
        self
    }

    /// Returns the number of workspaces.
    pub(crate) fn workspaces(&self) -> u32 {
        self.workspace_groups.iter().map(|group| group.count).sum()
    }

    /// Adds `count` older requests that cannot be admitted.
    pub(crate) fn behind_blocked(mut self, reason: BlockReason, count: u32) -> Self {
        let line = self.request_groups[0];
        let blocked = match reason {
            BlockReason::NotDue => RequestGroup {
                seconds: 86_400,
                ..line
            },
            BlockReason::BackingOff => RequestGroup {
                seconds: 3_600,
                refusals: 3,
                ..line
            },
            BlockReason::Paused => {
                self.workspace_groups.push(WorkspaceGroup {
                    first: line.workspaces,
                    paused: true,
                    ..self.workspace_groups[0]
                });
                RequestGroup {
                    first: line.workspaces,
                    ..line
                }
            }
        };
        self.request_groups.insert(
            0,
            RequestGroup {
                requests: count,
                ..blocked
            },
        );
        self
    }
}

/// Why pending requests cannot be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockReason {
    /// Scheduled for later.
    NotDue,
    /// Rejected by the engine and waiting for their retry.
    BackingOff,
    /// Their workspaces are paused.
    Paused,
}

impl BlockReason {
    pub(crate) const ALL: [Self; 3] = [Self::NotDue, Self::BackingOff, Self::Paused];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotDue => "not_due",
            Self::BackingOff => "backing_off",
            Self::Paused => "paused",
        }
    }
}
