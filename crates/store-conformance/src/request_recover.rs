//! Recovery of claims with an expired lease.

use crate::Fixture;
use crate::factory::{OWNER, USER, ok};
use leasehold_core::{RequestId, RequestStatus};
use leasehold_store::request::{Recovered, Request};
use std::collections::BTreeSet;

/// An expired claim becomes PENDING with its execution and slot, counts as an attempt and is due at once.
pub async fn keeps_execution_and_slot(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let before = f.request(t.workspace, claimed.id).await;
    f.advance(15);
    let recovered = ok(f.store.request_recover("sweeper", 10).await);
    let expected = Recovered {
        request: claimed.id,
        workspace: t.workspace,
        execution: claimed.execution,
    };
    assert_eq!(recovered, [expected]);
    let expected = Request {
        status: RequestStatus::Pending.into(),
        attempt_count: 1,
        claimed_by: None,
        lease_expires_at: None,
        claimed_at: None,
        ..before
    };
    assert_eq!(f.request(t.workspace, claimed.id).await, expected);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    f.assert_timeline(
        t.workspace,
        claimed.id,
        &[
            (None, RequestStatus::Pending, USER, None),
            (
                Some(RequestStatus::Pending),
                RequestStatus::Claimed,
                OWNER,
                None,
            ),
            (
                Some(RequestStatus::Claimed),
                RequestStatus::Pending,
                "sweeper",
                Some("lease_expired"),
            ),
        ],
    )
    .await;
    assert_eq!(f.claim_one().await.execution, claimed.execution);
}

/// A lease expires at its end, not before; dispatched requests have none.
pub async fn recovers_only_expired_claims(f: Fixture) {
    let t = f.workspace(9).await;
    let first = f.enqueue_claimed(&t).await;
    let running = f.enqueue_running(&t).await;
    f.advance(5);
    let second = f.enqueue_claimed(&t).await;
    f.advance(9);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await), []);
    f.advance(1);
    let recovered = ok(f.store.request_recover("sweeper", 10).await);
    assert_eq!(
        recovered.iter().map(|r| r.request).collect::<Vec<_>>(),
        [first.id]
    );
    let second = f.request(t.workspace, second.id).await;
    assert_eq!(second.status, RequestStatus::Claimed);
    let running = f.request(t.workspace, running.id).await;
    assert_eq!(running.status, RequestStatus::Dispatched);
}

/// A call recovers at most `limit`; repeated calls recover all, then nothing.
pub async fn takes_at_most_its_limit_and_is_idempotent(f: Fixture) {
    let t = f.workspace(9).await;
    let enqueued = f.enqueue(&t, 5).await;
    f.claim(5).await;
    f.advance(15);
    let mut seen = BTreeSet::new();
    for expected in [2, 2, 1, 0, 0] {
        let recovered = ok(f.store.request_recover("sweeper", 2).await);
        assert_eq!(recovered.len(), expected);
        seen.extend(recovered.iter().map(|r| r.request));
    }
    assert_eq!(seen, enqueued.iter().copied().collect());
    assert_eq!(f.request(t.workspace, enqueued[0]).await.attempt_count, 1);
}

/// Concurrent calls recover each claim once.
pub async fn concurrent_calls_recover_each_claim_once(f: Fixture) {
    let t = f.workspace(60).await;
    let enqueued = f.enqueue(&t, 60).await;
    f.claim(100).await;
    f.advance(15);
    let sweepers = (0..6).map(|n| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.request_recover(&format!("sweeper-{n}"), 100).await) })
    });
    let mut recovered: Vec<RequestId> = Vec::new();
    for sweeper in futures::future::join_all(sweepers).await {
        recovered.extend(
            sweeper
                .expect("the sweep did not panic")
                .iter()
                .map(|r| r.request),
        );
    }
    recovered.sort_unstable();
    assert_eq!(recovered, enqueued);
    for id in enqueued {
        assert_eq!(f.request(t.workspace, id).await.attempt_count, 1);
    }
}
