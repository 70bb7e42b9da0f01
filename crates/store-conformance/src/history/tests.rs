//! Each violation planted in an otherwise sound history, and found.

use super::*;
use RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};

fn request(n: u128) -> RequestId {
    uuid::Uuid::from_u128(n).into()
}

fn workspace() -> WorkspaceId {
    uuid::Uuid::from_u128(99).into()
}

/// A history written down step by step; every commit sees the one before.
#[derive(Default)]
struct Scribe(History);

impl Scribe {
    fn limit(limit: u32) -> Self {
        let workspace = workspace();
        Self::default().commit(vec![Change::Limit { workspace, limit }])
    }

    fn commit(self, changes: Vec<Change>) -> Self {
        let snapshot = self.0.commits.len() as u64;
        self.commit_seeing(snapshot, changes)
    }

    fn commit_seeing(mut self, snapshot: u64, changes: Vec<Change>) -> Self {
        for change in &changes {
            if let Change::Moved(step) = change {
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
        self.commit(vec![claimed(n, Holding::New)])
    }

    fn finish(self, n: u128) -> Self {
        self.commit(vec![
            moved(n, Some(Claimed), Dispatched, Holding::Kept),
            moved(n, Some(Dispatched), Completed, Holding::Nothing),
        ])
    }

    fn check(self) -> Result<Summary, Vec<Violation>> {
        check(&self.0)
    }

    #[track_caller]
    fn finds(self, expected: Violation) {
        assert_eq!(self.check(), Err(vec![expected]));
    }
}

fn moved(n: u128, from: Option<RequestStatus>, to: RequestStatus, execution: Holding) -> Change {
    Change::Moved(Move {
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

fn enqueued(n: u128, priority: i16) -> Change {
    with_priority(moved(n, None, Pending, Holding::Nothing), priority)
}

fn claimed(n: u128, execution: Holding) -> Change {
    moved(n, Some(Pending), Claimed, execution)
}

fn with_priority(change: Change, priority: i16) -> Change {
    match change {
        Change::Moved(step) => Change::Moved(Move { priority, ..step }),
        other => other,
    }
}

fn not_due(change: Change) -> Change {
    match change {
        Change::Moved(step) => Change::Moved(Move { due: false, ..step }),
        other => other,
    }
}

#[test]
fn a_sound_history_is_proven_and_summed_up() {
    let history = Scribe::limit(2)
        .enqueue(&[1, 2, 3])
        .claim(1)
        .claim(2)
        .finish(1)
        .claim(3)
        .commit(vec![moved(2, Some(Claimed), Pending, Holding::Kept)])
        .commit(vec![claimed(2, Holding::Kept)])
        .finish(2)
        .finish(3);
    let summary = history.check().unwrap();
    assert_eq!((summary.requests, summary.finished), (3, 3));
    assert_eq!((summary.admissions, summary.resumptions), (3, 1));
    assert_eq!((summary.full, summary.most_running[&workspace()]), (2, 2));
}

#[test]
fn one_too_many_is_found() {
    Scribe::limit(1)
        .enqueue(&[1, 2])
        .claim(1)
        .claim(2)
        .finds(Violation::OverLimit {
            position: 4,
            workspace: workspace(),
            running: 2,
            limit: 1,
        });
}

#[test]
fn a_lowered_limit_is_broken_only_by_the_next_admission() {
    let lower = Change::Limit {
        workspace: workspace(),
        limit: 1,
    };
    let lowered = || {
        Scribe::limit(2)
            .enqueue(&[1, 2, 3])
            .claim(1)
            .claim(2)
            .commit(vec![lower.clone()])
            .finish(1)
    };
    assert!(lowered().finish(2).claim(3).check().is_ok());
    lowered().claim(3).finds(Violation::OverLimit {
        position: 7,
        workspace: workspace(),
        running: 2,
        limit: 1,
    });
}

#[test]
fn an_admission_in_a_pause_is_found() {
    let pause = |paused| Change::Paused {
        workspace: workspace(),
        paused,
    };
    let paused = || Scribe::limit(2).enqueue(&[1]).commit(vec![pause(true)]);
    assert!(paused().commit(vec![pause(false)]).claim(1).check().is_ok());
    paused().claim(1).finds(Violation::AdmittedInPause {
        position: 4,
        request: request(1),
    });
}

#[test]
fn a_second_claim_is_found() {
    let violations = Scribe::limit(5)
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
fn a_second_slot_is_found() {
    Scribe::limit(5)
        .enqueue(&[1])
        .claim(1)
        .commit(vec![moved(1, Some(Claimed), Pending, Holding::Kept)])
        .claim(1)
        .finds(Violation::WrongHolding {
            position: 5,
            request: request(1),
            holding: Holding::New,
        });
}

#[test]
fn an_execution_from_nowhere_is_found() {
    Scribe::limit(5)
        .enqueue(&[1])
        .commit(vec![claimed(1, Holding::Kept)])
        .finds(Violation::WrongHolding {
            position: 3,
            request: request(1),
            holding: Holding::Kept,
        });
}

#[test]
fn a_jump_is_found() {
    Scribe::limit(5)
        .enqueue(&[1])
        .claim(1)
        .commit(vec![moved(1, Some(Claimed), Completed, Holding::Nothing)])
        .finds(Violation::Jumped {
            position: 4,
            request: request(1),
            was: Some(Claimed),
            from: Some(Claimed),
            to: Completed,
        });
}

#[test]
fn an_end_after_the_end_is_found() {
    Scribe::limit(5)
        .enqueue(&[1])
        .claim(1)
        .finish(1)
        .commit(vec![moved(1, Some(Dispatched), Failed, Holding::Nothing)])
        .finds(Violation::Jumped {
            position: 5,
            request: request(1),
            was: Some(Completed),
            from: Some(Dispatched),
            to: Failed,
        });
}

#[test]
fn what_is_lost_or_made_up_is_found() {
    let mut lost = Scribe::limit(5).enqueue(&[1, 2]);
    lost.0.left.remove(&request(1));
    lost.0.left.insert(request(7), Pending);
    let violations = lost.check().unwrap_err();
    let expected = [
        Violation::Lost {
            request: request(1),
            last: Pending,
            left: None,
        },
        Violation::MadeUp {
            request: request(7),
        },
    ];
    assert_eq!(violations, expected);
    let mut other = Scribe::limit(5).enqueue(&[1]);
    other.0.left.insert(request(1), Claimed);
    other.finds(Violation::Lost {
        request: request(1),
        last: Pending,
        left: Some(Claimed),
    });
}

#[test]
fn an_older_one_passed_over_is_found() {
    Scribe::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .finds(Violation::PassedOver {
            position: 3,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn a_more_urgent_one_passed_over_is_found() {
    Scribe::limit(5)
        .enqueue(&[1])
        .commit(vec![enqueued(2, 7)])
        .claim(1)
        .finds(Violation::PassedOver {
            position: 4,
            admitted: request(1),
            better: request(2),
        });
}

#[test]
fn a_better_one_that_the_claim_could_not_see_is_not_passed_over() {
    let late = Scribe::limit(5)
        .enqueue(&[1])
        .commit(vec![enqueued(2, 7)])
        .commit_seeing(2, vec![claimed(1, Holding::New)]);
    assert!(late.check().is_ok());
}

#[test]
fn a_better_one_in_the_hands_of_another_is_not_passed_over() {
    let cancel = moved(1, Some(Pending), Failed, Holding::Nothing);
    let held = Scribe::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .commit_seeing(2, vec![cancel.clone()]);
    assert!(held.check().is_ok());
    Scribe::limit(5)
        .enqueue(&[1, 2])
        .claim(2)
        .commit_seeing(3, vec![cancel])
        .finds(Violation::PassedOver {
            position: 3,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn a_better_one_that_is_not_due_is_passed_over_only_once_it_is() {
    let waits = || {
        Scribe::limit(5)
            .enqueue(&[2])
            .commit(vec![not_due(enqueued(1, 9))])
    };
    assert!(waits().claim(2).check().is_ok());
    waits()
        .commit(vec![Change::Due(request(1))])
        .claim(2)
        .finds(Violation::PassedOver {
            position: 5,
            admitted: request(2),
            better: request(1),
        });
}

#[test]
fn requests_admitted_together_pass_nobody_over() {
    let together = Scribe::limit(5)
        .enqueue(&[1, 2, 3])
        .commit(vec![claimed(2, Holding::New), claimed(1, Holding::New)]);
    assert!(together.check().is_ok());
}

#[test]
fn commits_out_of_order_are_found() {
    let mut history = Scribe::limit(5).enqueue(&[1]).0;
    history.commits[1].position = 1;
    let violations = check(&history).unwrap_err();
    assert_eq!(violations, [Violation::OutOfOrder { position: 1 }]);
}
