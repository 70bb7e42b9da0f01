//! Walks a history once, commit by commit, and collects every violation.

use super::{Commit, ExecutionUse, History, HistoryChange, Summary, Transition, Violation};
use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The order of admission, first is smallest: higher priority, then older, then lower id.
type Rank = (Reverse<i16>, Timestamp, RequestId);

/// Checks a history and returns its summary.
///
/// Capacity is checked after every commit that admits, against the limit then in force. Order is checked against what a
/// claim could see: an earlier request in line counts only if the commit that put it there is in the claim's snapshot, and
/// not if the transaction that moved it next was already running when the claim committed, and so held its lock.
///
/// # Errors
/// All violations.
pub fn check(history: &History) -> Result<Summary, Vec<Violation>> {
    let mut checker = Checker {
        future: NextMoves::of(history),
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

/// The commits that move each request: position and snapshot.
#[derive(Default)]
struct NextMoves(BTreeMap<RequestId, Vec<(u64, u64)>>);

impl NextMoves {
    fn of(history: &History) -> Self {
        let mut moves: BTreeMap<RequestId, Vec<(u64, u64)>> = BTreeMap::new();
        for commit in &history.commits {
            for change in &commit.changes {
                if let HistoryChange::Moved(step) = change {
                    let of = moves.entry(step.request).or_default();
                    of.push((commit.position, commit.snapshot));
                }
            }
        }
        Self(moves)
    }

    /// Whether the transaction that moves the request next was already running when `position` was committed.
    fn was_held(&self, request: RequestId, position: u64) -> bool {
        let moves = self.0.get(&request).map_or(&[][..], Vec::as_slice);
        let next = moves.iter().find(|(at, _)| *at > position);
        next.is_some_and(|(_, snapshot)| *snapshot < position)
    }
}

/// The state of a request at some point of the history.
struct Known {
    status: RequestStatus,
    holds: bool,
    workspace: WorkspaceId,
    rank: Rank,
}

/// The state of a workspace at some point of the history.
#[derive(Default)]
struct WorkspaceState {
    limit: Option<u32>,
    paused: bool,
    running: u32,
    /// The requests in line without an execution, and the commit that put each there.
    line: BTreeMap<Rank, u64>,
}

#[derive(Default)]
struct Checker {
    future: NextMoves,
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
                HistoryChange::Limit { workspace, limit } => {
                    self.workspaces.entry(*workspace).or_default().limit = Some(*limit);
                    self.summary.limit_changes += 1;
                }
                HistoryChange::Paused { workspace, paused } => {
                    self.workspaces.entry(*workspace).or_default().paused = *paused;
                    self.summary.limit_changes += 1;
                }
                HistoryChange::Due(request) => self.due(*request, commit.position),
                HistoryChange::Moved(step) => {
                    if self.step(step, commit.position) {
                        let rank = rank(step);
                        admitted.entry(step.workspace).or_default().push(rank);
                    }
                }
            }
        }
        for (workspace, ranks) in admitted {
            self.check_capacity(workspace, &ranks, commit.position);
            self.check_order(workspace, &ranks, commit);
        }
    }

    /// Applies one transition and returns whether it took a slot.
    fn step(&mut self, step: &Transition, position: u64) -> bool {
        self.summary.moves += 1;
        let request = step.request;
        let was = self.requests.get(&request).map(|known| known.status);
        let held = self.requests.get(&request).is_some_and(|known| known.holds);
        self.check_transition(step, was, position);
        let state = self.workspaces.entry(step.workspace).or_default();
        state.line.remove(&rank(step));
        let holds = step.execution != ExecutionUse::None;
        let wrong = match step.execution {
            ExecutionUse::New => held || step.to != RequestStatus::Claimed,
            ExecutionUse::Kept => !held || step.to.is_finished(),
            ExecutionUse::None => {
                matches!(step.to, RequestStatus::Claimed | RequestStatus::Dispatched)
            }
        };
        if wrong {
            self.violations.push(Violation::WrongExecutionUse {
                position,
                request,
                execution: step.execution,
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
        let most = self.summary.max_running.entry(step.workspace).or_default();
        *most = state.running.max(*most);
        self.count(step, was);
        let known = Known {
            status: step.to,
            holds,
            workspace: step.workspace,
            rank: rank(step),
        };
        self.requests.insert(request, known);
        step.execution == ExecutionUse::New
    }

    fn check_transition(&mut self, step: &Transition, was: Option<RequestStatus>, position: u64) {
        let request = step.request;
        let allowed = match step.from {
            None => step.to == RequestStatus::Pending,
            Some(from) => from.may_become(step.to),
        };
        if was == step.from && allowed {
            return;
        }
        let claim = step.from == Some(RequestStatus::Pending) && step.to == RequestStatus::Claimed;
        self.violations.push(if claim && was.is_some() {
            Violation::ClaimedTwice { position, request }
        } else {
            Violation::InvalidTransition {
                position,
                request,
                was,
                from: step.from,
                to: step.to,
            }
        });
    }

    fn count(&mut self, step: &Transition, was: Option<RequestStatus>) {
        let summary = &mut self.summary;
        summary.requests += usize::from(was.is_none());
        summary.finished += usize::from(step.to.is_finished());
        if step.to == RequestStatus::Claimed {
            summary.admissions += usize::from(step.execution == ExecutionUse::New);
            summary.resumptions += usize::from(step.execution == ExecutionUse::Kept);
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

    fn check_capacity(&mut self, workspace: WorkspaceId, admitted: &[Rank], position: u64) {
        let Some(state) = self.workspaces.get(&workspace) else {
            return;
        };
        // A workspace without a recorded limit must not admit.
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
            let pauses = admitted.iter().map(|rank| Violation::AdmittedWhilePaused {
                position,
                request: rank.2,
            });
            self.violations.extend(pauses);
        }
    }

    /// Reports a request that is still in line after the commit, comes before an admitted one and was visible to the claim.
    fn check_order(&mut self, workspace: WorkspaceId, admitted: &[Rank], commit: &Commit) {
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
            self.violations.push(Violation::OrderViolated {
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
            .extend(made_up.map(|id| Violation::NeverEnqueued { request: *id }));
    }
}

fn rank(step: &Transition) -> Rank {
    (Reverse(step.priority), step.created_at, step.request)
}
