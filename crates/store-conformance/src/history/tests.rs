//! Detection of each violation in an otherwise valid history.

use super::*;
use RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};

fn request(n: u128) -> RequestId {
    uuid::Uuid::from_u128(n).into()
}

fn workspace() -> WorkspaceId {
    uuid::Uuid::from_u128(99).into()
}

/// Builds a history step by step; every commit sees the one before.
#[derive(Default)]
struct TestHistory(History);

impl TestHistory {
    fn limit(limit: u32) -> Self {
        let workspace = workspace();
        Self::default().commit(vec![HistoryChange::Limit { workspace, limit }])
    }

    fn commit(self, changes: Vec<HistoryChange>) -> Self {
        let snapshot = self.0.commits.len() as u64;
        self.commit_with_snapshot(snapshot, changes)
    }

    fn commit_with_snapshot(mut self, snapshot: u64, changes: Vec<HistoryChange>) -> Self {
        for change in &changes {
            if let HistoryChange::Moved(step) = change {
                self.0.left.insert(step.request, step.to);
            }
        }
        let position = self.0.commits.len() as u64 + 1;
        self.0.commits.push(Commit {
            position,
            snapshot,
            changes,
        });
        self
    }

    fn enqueue(self, ids: &[u128]) -> Self {
        self.commit(ids.iter().map(|n| enqueued(*n, 0)).collect())
    }

    fn claim(self, n: u128) -> Self {
        self.commit(vec![claimed(n, ExecutionUse::New)])
    }

    fn finish(self, n: u128) -> Self {
        self.commit(vec![
            moved(n, Some(Claimed), Dispatched, ExecutionUse::Kept),
            moved(n, Some(Dispatched), Completed, ExecutionUse::None),
        ])
    }

    fn check(self) -> Result<Summary, Vec<Violation>> {
        check(&self.0)
    }

    #[track_caller]
    fn expect_violation(self, expected: Violation) {
        assert_eq!(self.check(), Err(vec![expected]));
    }
}

fn moved(
    n: u128,
    from: Option<RequestStatus>,
    to: RequestStatus,
    execution: ExecutionUse,
) -> HistoryChange {
    HistoryChange::Moved(Transition {
        request: request(n),
        workspace: workspace(),
        from,
        to,
        priority: 0,
        created_at: Timestamp::UNIX_EPOCH,
        execution,
        due: true,
    })
}

fn enqueued(n: u128, priority: i16) -> HistoryChange {
    with_priority(moved(n, None, Pending, ExecutionUse::None), priority)
}

fn claimed(n: u128, execution: ExecutionUse) -> HistoryChange {
    moved(n, Some(Pending), Claimed, execution)
}

fn with_priority(change: HistoryChange, priority: i16) -> HistoryChange {
    match change {
        HistoryChange::Moved(step) => HistoryChange::Moved(Transition { priority, ..step }),
        other => other,
    }
}

fn not_due(change: HistoryChange) -> HistoryChange {
    match change {
        HistoryChange::Moved(step) => HistoryChange::Moved(Transition { due: false, ..step }),
        other => other,
    }
}

#[test]
fn valid_history_passes_with_a_summary() {
    let history = TestHistory::limit(2)
        .enqueue(&[1, 2, 3])
        .claim(1)
        .claim(2)
        .finish(1)
        .claim(3)
        .commit(vec![moved(2, Some(Claimed), Pending, ExecutionUse::Kept)])
        .commit(vec![claimed(2, ExecutionUse::Kept)])
        .finish(2)
        .finish(3);
    let summary = history.check().unwrap();
    assert_eq!((summary.requests, summary.finished), (3, 3));
    assert_eq!((summary.admissions, summary.resumptions), (3, 1));
    assert_eq!((summary.full, summary.max_running[&workspace()]), (2, 2));
}

#[test]
fn admission_over_the_limit_is_detected() {
    TestHistory::limit(1)
        .enqueue(&[1, 2])
        .claim(1)
        .claim(2)
        .expect_violation(Violation::OverLimit {
            position: 4,
            workspace: workspace(),
            running: 2,
            limit: 1,
        });
}

#[test]
fn lowered_limit_is_violated_only_by_the_next_admission() {
    let lower = HistoryChange::Limit {
        workspace: workspace(),
        limit: 1,
    };
    let lowered = || {
        TestHistory::limit(2)
            .enqueue(&[1, 2, 3])
            .claim(1)
            .claim(2)
            .commit(vec![lower.clone()])
            .finish(1)
    };
    assert!(lowered().finish(2).claim(3).check().is_ok());
    lowered().claim(3).expect_violation(Violation::OverLimit {
        position: 7,
        workspace: workspace(),
        running: 2,
        limit: 1,
    });
}

#[test]
fn admission_while_paused_is_detected() {
    let pause = |paused| HistoryChange::Paused {
        workspace: workspace(),
        paused,
    };
    let paused = || {
        TestHistory::limit(2)
            .enqueue(&[1])
            .commit(vec![pause(true)])
    };
    assert!(paused().commit(vec![pause(false)]).claim(1).check().is_ok());
    paused()
        .claim(1)
        .expect_violation(Violation::AdmittedWhilePaused {
            position: 4,
            request: request(1),
        });
}

#[test]
fn second_claim_is_detected() {
    let violations = TestHistory::limit(5)
        .enqueue(&[1])
        .claim(1)
        .claim(1)
        .check()
        .unwrap_err();
    let twice = Violation::ClaimedTwice {
        position: 4,
        request: request(1),
    };
    assert!(violations.contains(&twice), "{violations:?}");
}

#[test]
fn second_slot_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1])
        .claim(1)
        .commit(vec![moved(1, Some(Claimed), Pending, ExecutionUse::Kept)])
        .claim(1)
        .expect_violation(Violation::WrongExecutionUse {
            position: 5,
            request: request(1),
            execution: ExecutionUse::New,
        });
}

#[test]
fn unknown_execution_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1])
        .commit(vec![claimed(1, ExecutionUse::Kept)])
        .expect_violation(Violation::WrongExecutionUse {
            position: 3,
            request: request(1),
            execution: ExecutionUse::Kept,
        });
}

#[test]
fn invalid_transition_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1])
        .claim(1)
        .commit(vec![moved(1, Some(Claimed), Completed, ExecutionUse::None)])
        .expect_violation(Violation::InvalidTransition {
            position: 4,
            request: request(1),
            was: Some(Claimed),
            from: Some(Claimed),
            to: Completed,
        });
}

#[test]
fn second_end_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1])
        .claim(1)
        .finish(1)
        .commit(vec![moved(1, Some(Dispatched), Failed, ExecutionUse::None)])
        .expect_violation(Violation::InvalidTransition {
            position: 5,
            request: request(1),
            was: Some(Completed),
            from: Some(Dispatched),
            to: Failed,
        });
}

#[test]
fn lost_and_never_enqueued_requests_are_detected() {
    let mut lost = TestHistory::limit(5).enqueue(&[1, 2]);
    lost.0.left.remove(&request(1));
    lost.0.left.insert(request(7), Pending);
    let violations = lost.check().unwrap_err();
    let expected = [
        Violation::Lost {
            request: request(1),
            last: Pending,
            left: None,
        },
        Violation::NeverEnqueued {
            request: request(7),
        },
    ];
    assert_eq!(violations, expected);
    let mut other = TestHistory::limit(5).enqueue(&[1]);
    other.0.left.insert(request(1), Claimed);
    other.expect_violation(Violation::Lost {
        request: request(1),
        last: Pending,
        left: Some(Claimed),
    });
}

#[test]
fn admission_before_an_older_request_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .expect_violation(Violation::OrderViolated {
            position: 3,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn admission_before_a_higher_priority_is_detected() {
    TestHistory::limit(5)
        .enqueue(&[1])
        .commit(vec![enqueued(2, 7)])
        .claim(1)
        .expect_violation(Violation::OrderViolated {
            position: 4,
            admitted: request(1),
            better: request(2),
        });
}

#[test]
fn request_outside_the_snapshot_is_no_violation() {
    let late = TestHistory::limit(5)
        .enqueue(&[1])
        .commit(vec![enqueued(2, 7)])
        .commit_with_snapshot(2, vec![claimed(1, ExecutionUse::New)]);
    assert!(late.check().is_ok());
}

#[test]
fn locked_request_is_no_violation() {
    let cancel = moved(1, Some(Pending), Failed, ExecutionUse::None);
    let held = TestHistory::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .commit_with_snapshot(2, vec![cancel.clone()]);
    assert!(held.check().is_ok());
    TestHistory::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .commit_with_snapshot(3, vec![cancel])
        .expect_violation(Violation::OrderViolated {
            position: 3,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn request_that_is_not_due_is_no_violation() {
    let waits = || {
        TestHistory::limit(5)
            .enqueue(&[2])
            .commit(vec![not_due(enqueued(1, 9))])
    };
    assert!(waits().claim(2).check().is_ok());
    waits()
        .commit(vec![HistoryChange::Due(request(1))])
        .claim(2)
        .expect_violation(Violation::OrderViolated {
            position: 5,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn order_within_one_commit_does_not_matter() {
    let together = TestHistory::limit(5).enqueue(&[1, 2, 3]).commit(vec![
        claimed(2, ExecutionUse::New),
        claimed(1, ExecutionUse::New),
    ]);
    assert!(together.check().is_ok());
}

#[test]
fn commits_out_of_order_are_detected() {
    let mut history = TestHistory::limit(5).enqueue(&[1]).0;
    history.commits[1].position = 1;
    let violations = check(&history).unwrap_err();
    assert_eq!(violations, [Violation::OutOfOrder { position: 1 }]);
}
