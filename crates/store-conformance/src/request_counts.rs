//! Counts of requests: exact after every operation.

use crate::Fixture;
use crate::factory::{OWNER, USER, ok};
use leasehold_core::{ExecutionEnd, FailureReason, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::prune::Prune;
use leasehold_store::request::{Counts, Fail, Redrive, ReleaseKind};

fn counts(numbers: [u64; 5]) -> Counts {
    let [pending, claimed, dispatched, completed, failed] = numbers;
    Counts {
        pending,
        claimed,
        dispatched,
        completed,
        failed,
    }
}

/// A workspace without requests, or an unknown one, has none.
pub async fn start_at_zero(f: Fixture) {
    let t = f.workspace(1).await;
    assert_eq!(f.counts(t.workspace).await, Counts::default());
    let unknown: WorkspaceId = fresh_id();
    assert_eq!(f.counts(unknown).await, Counts::default());
}

/// Every operation that moves a request updates the counts exactly.
pub async fn follow_every_transition(f: Fixture) {
    let t = f.workspace(4).await;
    let w = t.workspace;
    let bystander = f.workspace(1).await;
    f.enqueue(&bystander, 3).await;
    f.set_paused(bystander.workspace, true).await;
    let enqueued = f.enqueue(&t, 6).await;
    assert_eq!(f.counts(w).await, counts([6, 0, 0, 0, 0]));
    let claimed = f.claim(10).await.requests;
    assert_eq!(f.counts(w).await, counts([2, 4, 0, 0, 0]));
    f.dispatch(&claimed[0]).await;
    assert_eq!(f.counts(w).await, counts([2, 3, 1, 0, 0]));
    f.release(&claimed[1], ReleaseKind::Unknown, 60).await;
    assert_eq!(f.counts(w).await, counts([3, 2, 1, 0, 0]));
    let fail = Fail {
        claim: (&claimed[2]).into(),
        reason: FailureReason::EngineLost,
        error: None,
    };
    assert!(ok(f.store.request_fail(OWNER, &fail).await));
    assert_eq!(f.counts(w).await, counts([3, 1, 1, 0, 1]));
    f.finish(claimed[0].execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(f.counts(w).await, counts([3, 1, 0, 1, 1]));
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
    assert_eq!(f.counts(w).await, counts([4, 0, 0, 1, 1]));
    f.finish(claimed[1].execution, ExecutionEnd::Failed).await;
    assert_eq!(f.counts(w).await, counts([3, 0, 0, 1, 2]));
    f.cancel(w, enqueued[5]).await;
    assert_eq!(f.counts(w).await, counts([2, 0, 0, 1, 3]));
    let redrive = Redrive {
        workspace: w,
        failed: enqueued[5],
        id: fresh_id(),
        by: USER.into(),
    };
    ok(f.store.request_redrive(&redrive).await);
    assert_eq!(f.counts(w).await, counts([3, 0, 0, 1, 3]));
    f.advance(1);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    ok(f.store.prune(&prune).await);
    assert_eq!(f.counts(w).await, counts([3, 0, 0, 0, 3]));
    assert!(ok(f
        .store
        .workspace_delete(w, &leasehold_store::Actor::Local)
        .await));
    f.claim(10).await;
    let after = f.counts(w).await;
    assert_eq!(
        (after.pending, after.claimed),
        (0, 1),
        "the recovered request is resolved"
    );
    assert_eq!(f.counts(bystander.workspace).await, counts([3, 0, 0, 0, 0]));
}

/// After a long mixed run the counts equal a full listing.
pub async fn equal_a_full_listing(f: Fixture) {
    let t = f.workspace(7).await;
    for round in 0..12_u64 {
        f.enqueue(&t, 5).await;
        for (n, claimed) in f.claim(20).await.requests.iter().enumerate() {
            match (n as u64 + round) % 5 {
                0 => f.dispatch(claimed).await,
                1 => drop(f.finish(claimed.execution, ExecutionEnd::Completed).await),
                2 => drop(f.release(claimed, ReleaseKind::NotStarted, round).await),
                3 => drop(f.finish(claimed.execution, ExecutionEnd::Lost).await),
                _ => drop(f.release(claimed, ReleaseKind::Unknown, round).await),
            }
        }
        f.advance(5);
        crate::invariants::check(&f).await;
    }
}
