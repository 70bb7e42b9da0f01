//! What single starts tell the circuit breaker: which workspaces have starts under way, and which requests keep failing to start. Knows no rule of the breaker.

use leasehold_core::{RequestId, WorkspaceId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// After so many failures in a row a request counts as one whose starts keep failing.
const KEEPS_FAILING: u32 = 3;
/// A request without a start for this long is forgotten: it was cancelled, or another instance dispatches it. Longer than the longest default pause.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);
/// The most requests remembered. Beyond that, further ones get the pause of a first failure.
const MAX_REMEMBERED: usize = 10_000;

/// How often a request failed to start, without success in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartFailures {
    /// Failures in a row.
    pub(crate) in_a_row: u32,
    /// How many of them came after the engine had answered another start since the previous one.
    pub(crate) while_others_succeed: u32,
}

struct FailingRequest {
    failures: StartFailures,
    /// How many starts the engine had answered at the last failure.
    answered: u64,
    last: Instant,
}

/// The starts of one process.
#[derive(Default)]
pub(crate) struct StartTracker {
    under_way: HashMap<WorkspaceId, usize>,
    failing: HashMap<RequestId, FailingRequest>,
    answered: u64,
}

impl StartTracker {
    /// Adds a start that is claimed and not yet resolved.
    pub(crate) fn begin(&mut self, workspace: WorkspaceId) {
        *self.under_way.entry(workspace).or_default() += 1;
    }

    /// Removes a resolved start.
    pub(crate) fn end(&mut self, workspace: WorkspaceId) {
        if let Some(starts) = self.under_way.get_mut(&workspace) {
            *starts -= 1;
            if *starts == 0 {
                self.under_way.remove(&workspace);
            }
        }
    }

    /// Returns whether no other workspace has a start under way.
    pub(crate) fn is_only_workspace(&self, workspace: WorkspaceId) -> bool {
        self.under_way.keys().all(|other| *other == workspace)
    }

    /// Records that the engine answered a start of this request.
    pub(crate) fn answered(&mut self, request: RequestId) {
        self.answered += 1;
        self.failing.remove(&request);
    }

    /// Records that a start of this request failed.
    pub(crate) fn failed(&mut self, request: RequestId, now: Instant) {
        if self.failing.len() >= MAX_REMEMBERED && !self.failing.contains_key(&request) {
            self.forget_old(now);
            if self.failing.len() >= MAX_REMEMBERED {
                return;
            }
        }
        let answered = self.answered;
        let failing = self.failing.entry(request).or_insert(FailingRequest {
            failures: StartFailures::default(),
            answered,
            last: now,
        });
        let failures = &mut failing.failures;
        failures.in_a_row = failures.in_a_row.saturating_add(1);
        if failing.answered < answered {
            failures.while_others_succeed = failures.while_others_succeed.saturating_add(1);
        }
        (failing.answered, failing.last) = (answered, now);
    }

    /// Returns how often this request failed to start.
    pub(crate) fn failures(&self, request: RequestId) -> StartFailures {
        let failing = self.failing.get(&request);
        failing.map_or_else(StartFailures::default, |failing| failing.failures)
    }

    /// Returns how many requests keep failing to start.
    pub(crate) fn keep_failing(&mut self, now: Instant) -> usize {
        self.forget_old(now);
        let failing = self.failing.values();
        let keeps_failing = |one: &&FailingRequest| one.failures.in_a_row >= KEEPS_FAILING;
        failing.filter(keeps_failing).count()
    }

    fn forget_old(&mut self, now: Instant) {
        self.failing
            .retain(|_, failing| now.saturating_duration_since(failing.last) < FORGET_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_store::fresh_id;

    #[test]
    fn only_workspace_is_the_one_with_all_starts_under_way() {
        let (mut starts, a, b) = (StartTracker::default(), fresh_id(), fresh_id());
        starts.begin(a);
        starts.begin(a);
        assert!(starts.is_only_workspace(a));
        starts.begin(b);
        assert!(!starts.is_only_workspace(a));
        starts.end(a);
        starts.end(b);
        assert!(starts.is_only_workspace(a));
    }

    #[test]
    fn failures_are_counted_until_the_request_is_answered_and_apart_while_others_succeed() {
        let (mut starts, bad, good) = (StartTracker::default(), fresh_id(), fresh_id());
        let now = Instant::now();
        starts.failed(bad, now);
        starts.failed(bad, now);
        starts.answered(good);
        assert_eq!(starts.keep_failing(now), 0);
        starts.failed(bad, now);
        let expected = StartFailures {
            in_a_row: 3,
            while_others_succeed: 1,
        };
        assert_eq!(starts.failures(bad), expected);
        assert_eq!(starts.keep_failing(now), 1);
        starts.answered(bad);
        assert_eq!(starts.failures(bad), StartFailures::default());
        assert_eq!(starts.keep_failing(now), 0);
    }

    #[test]
    fn request_without_a_start_for_long_is_forgotten() {
        let (mut starts, bad, now) = (StartTracker::default(), fresh_id(), Instant::now());
        for _ in 0..KEEPS_FAILING {
            starts.failed(bad, now);
        }
        assert_eq!(starts.keep_failing(now + FORGET_AFTER / 2), 1);
        assert_eq!(starts.keep_failing(now + FORGET_AFTER), 0);
    }
}
