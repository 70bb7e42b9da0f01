//! Locked rows of requests, executions, deltas and folds.

use super::{id, lock, open_fixture, promptly, unlock};
use leasehold_core::{ExecutionEnd, FailureReason};
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::prune::Prune;
use leasehold_store::request::{
    Cancelled, ClaimRef, Dispatched, Fail, RedriveMany, Release, ReleaseKind, Released,
};
use leasehold_store_conformance::TestWorkspace;
use leasehold_store_conformance::factory::{LEASE, OWNER, claim_refs, ids, ok};
use std::sync::Arc;
use std::time::Duration;

const HOLD_LOCK: &str = include_str!("../sql/hold_lock.sql");

/// Also PostgreSQL itself locks briefly: a table while it grows.
#[tokio::test]
async fn enqueue_without_a_key_waits_for_a_lock_without_a_connection() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(1).await;
    lock(&operator, "workspace", &id(t.workspace)).await;
    let release = async {
        operator.execute(HOLD_LOCK, &[]).await.unwrap();
        unlock(&operator).await;
    };
    let (enqueued, ()) = tokio::join!(f.enqueue(&t, 1), release);
    assert_eq!(enqueued.len(), 1);
}

#[tokio::test]
async fn locked_claim_does_not_delay_renewals_and_outcomes_of_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    f.enqueue(&t, 7).await;
    let claimed = f.claim(7).await;
    let (requests, claims) = (ids(&claimed), claim_refs(&claimed));
    lock(&operator, "workflow_execution_queue", &id(requests[0])).await;

    let renewed = ok(promptly(f.store.request_renew(OWNER, &claims, LEASE)).await);
    assert_eq!(renewed.renewed.len(), 6);
    assert_eq!(renewed.busy, [requests[0]]);

    let marked = ok(promptly(f.store.request_dispatched(OWNER, &claims[..3])).await);
    let done = Dispatched::Dispatched;
    assert_eq!(marked, [Dispatched::Busy, done, done]);

    let release = |claim: ClaimRef| Release {
        claim,
        kind: ReleaseKind::NotStarted,
        delay: Duration::ZERO,
        error: None,
    };
    let releases = [release(claims[0]), release(claims[3])];
    let released = ok(promptly(f.store.request_release(OWNER, &releases)).await);
    assert_eq!(released, [Released::Busy, Released::Pending]);

    let fail = Fail {
        claim: claims[0],
        reason: FailureReason::DispatchExhausted,
        error: None,
    };
    let failed = promptly(f.store.request_fail(OWNER, &fail)).await;
    assert!(failed.expect_err("the row is locked").is_retryable());

    let finish = |at: usize| ExecutionFinish {
        execution: claimed.requests[at].execution,
        end: ExecutionEnd::Completed,
        error: None,
    };
    // The second is DISPATCHED, the fifth still CLAIMED.
    let finishes = [finish(0), finish(1), finish(4)];
    let finished = ok(promptly(f.store.execution_finish(OWNER, &finishes)).await);
    assert_eq!(finished[0], ExecutionFinished::Busy);
    for one in &finished[1..] {
        assert!(matches!(one, ExecutionFinished::Finished { .. }), "{one:?}");
    }

    unlock(&operator).await;
    let marked = ok(f.store.request_dispatched(OWNER, &claims[..1]).await);
    assert_eq!(marked, [done]);
}

#[tokio::test]
async fn locked_execution_does_not_delay_releases_ends_and_claims_of_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let unknown = f.enqueue_unknown(&t).await;
    f.enqueue(&t, 2).await;
    let others = f.claim_as("other", 2).await;
    assert_eq!(others.requests.len(), 2, "the unknown start is claimed too");
    let kept = others.requests.iter().find(|one| one.id == unknown.id);
    let kept = kept.expect("unknown starts are claimed first").clone();
    lock(&operator, "workflow_execution", &id(kept.execution)).await;

    let release = |claim: ClaimRef| Release {
        claim,
        kind: ReleaseKind::NotStarted,
        delay: Duration::ZERO,
        error: None,
    };
    let releases: Vec<Release> = others
        .requests
        .iter()
        .map(|one| release(one.into()))
        .collect();
    let released = ok(promptly(f.store.request_release("other", &releases)).await);
    for (one, released) in others.requests.iter().zip(released) {
        let expected = match one.id == kept.id {
            true => Released::Busy,
            false => Released::Pending,
        };
        assert_eq!(released, expected);
    }
    // Its lease expires. While the execution is locked, claims take the other requests.
    f.advance(3_600);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
    let claimed = promptly(f.claim(10)).await;
    assert_eq!(claimed.requests.len(), 2);
    assert_eq!(claimed.orphaned, []);
    assert!(!ids(&claimed).contains(&kept.id));

    unlock(&operator).await;
    assert_eq!(ids(&f.claim(10).await), [kept.id]);
}

#[tokio::test]
async fn many_cancels_of_a_locked_request_leave_connections_for_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(1).await;
    let locked = f.enqueue(&t, 1).await[0];
    lock(&operator, "workflow_execution_queue", &id(locked)).await;
    let cancels: Vec<_> = (0..30)
        .map(|_| {
            let (f, workspace) = (Arc::clone(&f), t.workspace);
            tokio::spawn(async move { f.cancel(workspace, locked).await })
        })
        .collect();
    let other = f.workspace(1).await;
    for _ in 0..20 {
        promptly(f.enqueue(&other, 1)).await;
    }
    unlock(&operator).await;
    let mut outcomes = Vec::new();
    for cancel in cancels {
        outcomes.push(cancel.await.unwrap());
    }
    let at_once = outcomes
        .iter()
        .filter(|one| **one == Cancelled::Cancelled)
        .count();
    assert_eq!(at_once, 1, "{outcomes:?}");
}

#[tokio::test]
async fn pruning_leaves_out_requests_with_locked_rows() {
    for table in ["workflow_execution", "workflow_execution_queue"] {
        let (f, operator) = open_fixture().await;
        let t = f.workspace(10).await;
        let mut ended = Vec::new();
        for _ in 0..5 {
            ended.push(f.enqueue_completed(&t).await);
        }
        let column = match table {
            "workflow_execution" => "request_id",
            _ => "id",
        };
        let condition = format!("{column} = '{}'", ended[1].id);
        lock(&operator, table, &condition).await;
        let prune = Prune {
            completed_before: Some(f.now() + Duration::from_secs(1)),
            failed_before: None,
            limit: 100,
        };
        let pruned = ok(promptly(f.store.prune(&prune)).await);
        assert_eq!(pruned.requests, 4, "{table}");
        assert_eq!(f.counts(t.workspace).await.completed, 1);
        unlock(&operator).await;
        assert_eq!(ok(f.store.prune(&prune).await).requests, 1, "{table}");
        assert_eq!(f.counts(t.workspace).await.completed, 0);
    }
}

/// Deltas and the position of the fold belong to no request; a lock on them must not stop claims.
#[tokio::test]
async fn locked_delta_or_fold_does_not_stop_claims() {
    for table in ["workspace_delta", "request_fold", "workspace_turn"] {
        let (f, operator) = open_fixture().await;
        let (first, second) = (f.workspace(10).await, f.workspace(10).await);
        f.enqueue(&first, 1).await;
        f.claim(1).await;
        f.set_paused(first.workspace, true).await;
        let condition = match table {
            "request_fold" => "true".to_owned(),
            _ => format!("workspace_id = '{}'", first.workspace),
        };
        lock(&operator, table, &condition).await;
        for _ in 0..3 {
            f.enqueue(&second, 1).await;
            let claimed = promptly(f.claim(10)).await;
            assert_eq!(claimed.requests.len(), 1, "{table}");
        }
        unlock(&operator).await;
        let counts = f.counts(first.workspace).await;
        assert_eq!((counts.pending, counts.claimed), (0, 1), "{table}");
        let counts = f.counts(second.workspace).await;
        assert_eq!((counts.pending, counts.claimed), (0, 3), "{table}");
        let none = ok(f.store.prune(&Prune::default()).await);
        assert_eq!(none.requests, 0);
        assert_eq!(f.counts(second.workspace).await, counts);
    }
}

#[tokio::test]
async fn locked_failed_request_delays_only_its_own_redrive() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let mut failed = Vec::new();
    for _ in 0..4 {
        failed.push(f.enqueue_failed(&t).await.id);
    }
    lock(&operator, "workflow_execution_queue", &id(failed[0])).await;
    let mut many = redrive_all(&t);
    // One call looks at as many requests as are locked, and then at later ones.
    many.limit = 1;
    let redriven = ok(promptly(f.store.request_redrive_many(&many)).await);
    assert_eq!(redriven[0].0, failed[1]);
    many.limit = 10;
    let redriven = ok(promptly(f.store.request_redrive_many(&many)).await);
    assert_eq!(redriven.len(), 2);
    assert_eq!(ok(promptly(f.store.request_redrive_many(&many)).await), []);
    unlock(&operator).await;
    assert_eq!(ok(f.store.request_redrive_many(&many).await).len(), 1);
}

/// The copy of a broken request violates a constraint.
#[tokio::test]
async fn broken_failed_request_does_not_stop_the_redrive_of_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let mut failed = Vec::new();
    for _ in 0..4 {
        failed.push(f.enqueue_failed(&t).await.id);
    }
    let off = include_str!("../sql/drift_triggers_off.sql");
    operator.batch_execute(off).await.unwrap();
    let change = include_str!("../sql/request_change.sql").replace("{change}", "priority = 2000");
    for broken in [failed[0], failed[2]] {
        assert_eq!(operator.execute(&change, &[&broken.0]).await.unwrap(), 1);
    }
    let mut many = redrive_all(&t);
    many.limit = 1;
    let redriven = ok(f.store.request_redrive_many(&many).await);
    assert_eq!(redriven[0].0, failed[1]);
    many.limit = 10;
    let redriven = ok(f.store.request_redrive_many(&many).await);
    assert_eq!(redriven.len(), 1);
    assert_eq!(redriven[0].0, failed[3]);
    assert_eq!(ok(f.store.request_redrive_many(&many).await), []);
}

fn redrive_all(workspace: &TestWorkspace) -> RedriveMany {
    RedriveMany {
        workspace: workspace.workspace,
        reason: None,
        definition: None,
        limit: 10,
        max_bytes: u64::MAX,
        by: OWNER.to_owned(),
    }
}
