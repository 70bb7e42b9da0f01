//! Pruning: deletes only ended requests, completely, oldest first, a bounded number per call.

use crate::Fixture;
use crate::factory::{USER, new_request, ok};
use leasehold_core::{RequestId, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::prune::{Prune, Pruned};
use leasehold_store::request::{Counts, Idempotency, NewRequest, Redriven, RequestFilter};
use std::time::Duration;

fn everything(f: &Fixture, limit: u32) -> Prune {
    Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit,
    }
}

async fn left(f: &Fixture) -> Vec<RequestId> {
    let mut ids: Vec<RequestId> = f
        .list_all(&RequestFilter::default(), 100)
        .await
        .iter()
        .map(|r| r.id)
        .collect();
    ids.sort_unstable();
    ids
}

/// Pruning deletes a request with its execution and events, and the counts follow.
pub async fn deletes_a_request_completely(f: Fixture) {
    let t = f.workspace(9).await;
    let gone = [f.enqueue_completed(&t).await, f.enqueue_failed(&t).await];
    let stays = f.enqueue_running(&t).await;
    f.advance(1);
    let pruned = ok(f.store.prune(&everything(&f, 10)).await);
    assert_eq!(pruned.requests, 2);
    for request in gone {
        assert_eq!(ok(f.store.request_get(t.workspace, request.id).await), None);
        assert_eq!(f.execution(t.workspace, request.execution).await, None);
        assert_eq!(f.timeline(t.workspace, request.id).await, []);
    }
    assert_eq!(left(&f).await, [stays.id]);
    let counts = Counts {
        dispatched: 1,
        ..Counts::default()
    };
    assert_eq!(f.counts(t.workspace).await, counts);
}

/// Open requests stay, however old.
pub async fn keeps_open_requests(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue_running(&t).await;
    f.enqueue_claimed(&t).await;
    f.enqueue_unknown(&t).await;
    f.enqueue(&t, 1).await;
    f.advance(365 * 24 * 3600);
    let before = f.dump().await;
    assert_eq!(
        ok(f.store.prune(&everything(&f, 10)).await),
        Pruned::default()
    );
    assert_eq!(f.dump().await, before);
}

/// COMPLETED and FAILED have separate cutoffs; a request that ended at the cutoff or later stays.
pub async fn deletes_only_requests_that_ended_before_the_cutoff(f: Fixture) {
    let t = f.workspace(9).await;
    let old = [
        f.enqueue_completed(&t).await.id,
        f.enqueue_failed(&t).await.id,
    ];
    f.advance(10);
    let moment = f.now();
    let new = [
        f.enqueue_completed(&t).await.id,
        f.enqueue_failed(&t).await.id,
    ];
    f.advance(10);
    let keep = Prune {
        completed_before: None,
        failed_before: None,
        limit: 10,
    };
    assert_eq!(ok(f.store.prune(&keep).await), Pruned::default());
    let completed = Prune {
        completed_before: Some(moment),
        ..keep
    };
    assert_eq!(ok(f.store.prune(&completed).await).requests, 1);
    assert_eq!(left(&f).await, [old[1], new[0], new[1]]);
    let failed = Prune {
        failed_before: Some(moment),
        ..keep
    };
    assert_eq!(ok(f.store.prune(&failed).await).requests, 1);
    assert_eq!(left(&f).await, new);
}

/// A call deletes the oldest first, at most `limit`; repeated calls delete all.
pub async fn deletes_oldest_first_up_to_the_limit(f: Fixture) {
    let t = f.workspace(9).await;
    let mut ended = Vec::new();
    for _ in 0..5 {
        ended.push(f.enqueue_failed(&t).await.id);
        f.advance(1);
    }
    for expected in [2, 2, 1, 0] {
        let pruned = ok(f.store.prune(&everything(&f, 2)).await);
        assert_eq!(pruned.requests, expected);
        ended.drain(..expected as usize);
        assert_eq!(left(&f).await, ended);
    }
}

/// Keys with expired windows are cleared and counted, also of open requests.
pub async fn clears_keys_with_expired_windows(f: Fixture) {
    let t = f.workspace(9).await;
    let request_with_key = |key: &str, window: Option<u64>| NewRequest {
        idempotency: Some(Idempotency {
            key: key.into(),
            window: window.map(Duration::from_secs),
        }),
        ..new_request(&t)
    };
    let requests = vec![
        request_with_key("a", Some(10)),
        request_with_key("b", Some(11)),
        request_with_key("c", None),
        request_with_key("d", Some(1)),
    ];
    let enqueued = f.enqueue_all(&t, requests).await;
    f.advance(10);
    let pruned = ok(f.store.prune(&everything(&f, 10)).await);
    assert_eq!((pruned.requests, pruned.keys), (0, 2));
    let mut keys = Vec::new();
    for id in enqueued {
        keys.push(f.request(t.workspace, id).await.idempotency_key);
    }
    assert_eq!(keys, [None, Some("b".into()), Some("c".into()), None]);
    assert_eq!(ok(f.store.prune(&everything(&f, 10)).await).keys, 0);
}

/// Pruning a failed request leaves its redrive unchanged, and vice versa.
pub async fn redrive_is_independent_of_the_failed_request(f: Fixture) {
    let t = f.workspace(9).await;
    let failed = f.enqueue_failed(&t).await.id;
    let redrive = leasehold_store::request::Redrive {
        workspace: t.workspace,
        failed,
        id: fresh_id(),
        by: USER.into(),
    };
    let Redriven::Enqueued(id) = ok(f.store.request_redrive(&redrive).await) else {
        panic!("the request failed");
    };
    f.advance(1);
    assert_eq!(ok(f.store.prune(&everything(&f, 10)).await).requests, 1);
    assert_eq!(left(&f).await, [id]);
    let claimed = f.claim_one().await;
    assert_eq!(claimed.id, id);
    f.finish(claimed.execution, leasehold_core::ExecutionEnd::Completed)
        .await;
    let request = f.request(t.workspace, id).await;
    assert_eq!(request.status, RequestStatus::Completed);
}
