//! Walks a history once, commit by commit, and notes whatever must not be.

use super::{Change, Commit, History, Holding, Move, Summary, Violation};
use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Better is smaller: higher priority, then older, then lower id.
type Rank = (Reverse<i16>, Timestamp, RequestId);

/// Proves a history, or says everything that is wrong with it.
///
/// Capacity is judged after every commit that admits, by the limit in force then. Order is judged by what a claim could
/// see: a better request counts only if the commit that put it in the line is no later than the claim's snapshot, and
/// not if whoever moved it next was already at work when the claim committed and so held it.
///
/// # Errors
/// Every violation found.
pub fn check(history: &History) -> Result<Summary, Vec<Violation>> {
    let mut checker = Checker {
        future: Future::of(history),
        ..Checker::default()
    };
    let mut last = 0;
    for commit in &history.commits {
        if commit.position <= last || commit.snapshot >= commit.position {
            let position = commit.position;
            checker.violations.push(Violation::OutOfOrder { position });
        }
        last = commit.position;
        checker.commit(commit);
    }
    checker.end(history);
    if checker.violations.is_empty() {
        Ok(checker.summary)
    } else {
        Err(checker.violations)
    }
}

/// When each request moves, and what the transaction that moves it saw.
#[derive(Default)]
struct Future(BTreeMap<RequestId, Vec<(u64, u64)>>);

impl Future {
    fn of(history: &History) -> Self {
        let mut moves: BTreeMap<RequestId, Vec<(u64, u64)>> = BTreeMap::new();
        for commit in &history.commits {
            for change in &commit.changes {
                if let Change::Moved(step) = change {
                    let of = moves.entry(step.request).or_default();
                    of.push((commit.position, commit.snapshot));
                }
            }
        }
        Self(moves)
    }

    /// Whether the next to move the request was at work before `position` was committed.
    fn was_held(&self, request: RequestId, position: u64) -> bool {
        let moves = self.0.get(&request).map_or(&[][..], Vec::as_slice);
        let next = moves.iter().find(|(at, _)| *at > position);
        next.is_some_and(|(_, snapshot)| *snapshot < position)
    }
}

/// What is known of a request at some point of the history.
struct Known {
    status: RequestStatus,
    holds: bool,
    workspace: WorkspaceId,
    rank: Rank,
}

/// What is known of a workspace at some point of the history.
#[derive(Default)]
struct WorkspaceState {
    limit: Option<u32>,
    paused: bool,
    running: u32,
    /// Those in the line without an execution, and the commit that put each there.
    line: BTreeMap<Rank, u64>,
}

#[derive(Default)]
struct Checker {
    future: Future,
    requests: BTreeMap<RequestId, Known>,
    workspaces: BTreeMap<WorkspaceId, WorkspaceState>,
    violations: Vec<Violation>,
    summary: Summary,
}

impl Checker {
    fn commit(&mut self, commit: &Commit) {
        self.summary.commits += 1;
        let mut admitted: BTreeMap<WorkspaceId, Vec<Rank>> = BTreeMap::new();
        for change in &commit.changes {
            match change {
                Change::Limit { workspace, limit } => {
                    self.workspaces.entry(*workspace).or_default().limit = Some(*limit);
                    self.summary.limit_changes += 1;
                }
                Change::Paused { workspace, paused } => {
                    self.workspaces.entry(*workspace).or_default().paused = *paused;
                    self.summary.limit_changes += 1;
                }
                Change::Due(request) => self.due(*request, commit.position),
                Change::Moved(step) => {
                    if self.step(step, commit.position) {
                        let rank = rank(step);
                        admitted.entry(step.workspace).or_default().push(rank);
                    }
                }
            }
        }
        for (workspace, ranks) in admitted {
            self.judge_capacity(workspace, &ranks, commit.position);
            self.judge_order(workspace, &ranks, commit);
        }
    }

    /// Moves one request and says whether it took a slot.
    fn step(&mut self, step: &Move, position: u64) -> bool {
        self.summary.moves += 1;
        let request = step.request;
        let was = self.requests.get(&request).map(|known| known.status);
        let held = self.requests.get(&request).is_some_and(|known| known.holds);
        self.judge_way(step, was, position);
        let state = self.workspaces.entry(step.workspace).or_default();
        state.line.remove(&rank(step));
        let holds = step.execution != Holding::Nothing;
        let wrong = match step.execution {
            Holding::New => held || step.to != RequestStatus::Claimed,
            Holding::Kept => !held || step.to.is_finished(),
            Holding::Nothing => {
                matches!(step.to, RequestStatus::Claimed | RequestStatus::Dispatched)
            }
        };
        if wrong {
            self.violations.push(Violation::WrongHolding {
                position,
                request,
                holding: step.execution,
            });
        }
        match (held, holds) {
            (false, true) => state.running += 1,
            (true, false) => state.running = state.running.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        if step.to == RequestStatus::Pending && !holds && step.due {
            state.line.insert(rank(step), position);
        }
        let most = self.summary.most_running.entry(step.workspace).or_default();
        *most = state.running.max(*most);
        self.count(step, was);
        let known = Known {
            status: step.to,
            holds,
            workspace: step.workspace,
            rank: rank(step),
        };
        self.requests.insert(request, known);
        step.execution == Holding::New
    }

    fn judge_way(&mut self, step: &Move, was: Option<RequestStatus>, position: u64) {
        let request = step.request;
        let way = match step.from {
            None => step.to == RequestStatus::Pending,
            Some(from) => from.may_become(step.to),
        };
        if was == step.from && way {
            return;
        }
        let claim = step.from == Some(RequestStatus::Pending) && step.to == RequestStatus::Claimed;
        self.violations.push(if claim && was.is_some() {
            Violation::ClaimedTwice { position, request }
        } else {
            Violation::Jumped {
                position,
                request,
                was,
                from: step.from,
                to: step.to,
            }
        });
    }

    fn count(&mut self, step: &Move, was: Option<RequestStatus>) {
        let summary = &mut self.summary;
        summary.requests += usize::from(was.is_none());
        summary.finished += usize::from(step.to.is_finished());
        if step.to == RequestStatus::Claimed {
            summary.admissions += usize::from(step.execution == Holding::New);
            summary.resumptions += usize::from(step.execution == Holding::Kept);
        }
    }

    fn due(&mut self, request: RequestId, position: u64) {
        if let Some(known) = self.requests.get(&request)
            && known.status == RequestStatus::Pending
            && !known.holds
        {
            let state = self.workspaces.entry(known.workspace).or_default();
            state.line.entry(known.rank).or_insert(position);
        }
    }

    fn judge_capacity(&mut self, workspace: WorkspaceId, admitted: &[Rank], position: u64) {
        let Some(state) = self.workspaces.get(&workspace) else {
            return;
        };
        // A workspace whose limit nobody told has none to admit by.
        let limit = state.limit.unwrap_or(0);
        if state.running > limit {
            self.violations.push(Violation::OverLimit {
                position,
                workspace,
                running: state.running,
                limit,
            });
        }
        self.summary.full += usize::from(state.running == limit);
        if state.paused {
            let pauses = admitted.iter().map(|rank| Violation::AdmittedInPause {
                position,
                request: rank.2,
            });
            self.violations.extend(pauses);
        }
    }

    /// What is still in the line after the commit was passed over by it, if it was better and could be seen.
    fn judge_order(&mut self, workspace: WorkspaceId, admitted: &[Rank], commit: &Commit) {
        let Some(state) = self.workspaces.get(&workspace) else {
            return;
        };
        let Some(worst) = admitted.iter().max() else {
            return;
        };
        let better = state.line.range(..worst).find(|(rank, since)| {
            **since <= commit.snapshot && !self.future.was_held(rank.2, commit.position)
        });
        if let Some((better, _)) = better {
            self.violations.push(Violation::PassedOver {
                position: commit.position,
                admitted: worst.2,
                better: better.2,
            });
        }
    }

    fn end(&mut self, history: &History) {
        for (request, known) in &self.requests {
            let left = history.left.get(request).copied();
            if left != Some(known.status) {
                self.violations.push(Violation::Lost {
                    request: *request,
                    last: known.status,
                    left,
                });
            }
        }
        let known: BTreeSet<RequestId> = self.requests.keys().copied().collect();
        let made_up = history.left.keys().filter(|id| !known.contains(id));
        self.violations
            .extend(made_up.map(|id| Violation::MadeUp { request: *id }));
    }
}

fn rank(step: &Move) -> Rank {
    (Reverse(step.priority), step.created_at, step.request)
}
