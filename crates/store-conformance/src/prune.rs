//! What a store promises about pruning: only what has ended, whole, oldest first, a bounded piece a call.

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

/// What is pruned is gone with its execution and its events, and leaves the counts.
pub async fn takes_the_whole_of_a_request(f: Fixture) {
    let t = f.site(9).await;
    let gone = [f.completed(&t).await, f.failed(&t).await];
    let stays = f.running(&t).await;
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

/// What has not ended stays, however old it is.
pub async fn leaves_what_has_not_ended(f: Fixture) {
    let t = f.site(9).await;
    f.running(&t).await;
    f.claimed(&t).await;
    f.kept(&t).await;
    f.enqueue(&t, 1).await;
    f.advance(365 * 24 * 3600);
    let before = f.dump().await;
    assert_eq!(
        ok(f.store.prune(&everything(&f, 10)).await),
        Pruned::default()
    );
    assert_eq!(f.dump().await, before);
}

/// COMPLETED and FAILED have ages of their own; what ended at that very moment or later stays.
pub async fn takes_only_what_ended_before(f: Fixture) {
    let t = f.site(9).await;
    let old = [f.completed(&t).await.id, f.failed(&t).await.id];
    f.advance(10);
    let moment = f.now();
    let new = [f.completed(&t).await.id, f.failed(&t).await.id];
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

/// Oldest end first, at most `limit` a call; called again while it finds something, it takes all.
pub async fn takes_the_oldest_first_and_at_most_its_limit(f: Fixture) {
    let t = f.site(9).await;
    let mut ended = Vec::new();
    for _ in 0..5 {
        ended.push(f.failed(&t).await.id);
        f.advance(1);
    }
    for expected in [2, 2, 1, 0] {
        let pruned = ok(f.store.prune(&everything(&f, 2)).await);
        assert_eq!(pruned.requests, expected);
        ended.drain(..expected as usize);
        assert_eq!(left(&f).await, ended);
    }
}

/// Keys whose window has passed are cleared, of open requests too, and counted.
pub async fn clears_keys_whose_window_has_passed(f: Fixture) {
    let t = f.site(9).await;
    let keyed = |key: &str, window: Option<u64>| NewRequest {
        idempotency: Some(Idempotency {
            key: key.into(),
            window: window.map(Duration::from_secs),
        }),
        ..new_request(&t)
    };
    let requests = vec![
        keyed("a", Some(10)),
        keyed("b", Some(11)),
        keyed("c", None),
        keyed("d", Some(1)),
    ];
    let asked = f.enqueue_all(&t, requests).await;
    f.advance(10);
    let pruned = ok(f.store.prune(&everything(&f, 10)).await);
    assert_eq!((pruned.requests, pruned.keys), (0, 2));
    let mut keys = Vec::new();
    for id in asked {
        keys.push(f.request(t.workspace, id).await.idempotency_key);
    }
    assert_eq!(keys, [None, Some("b".into()), Some("c".into()), None]);
    assert_eq!(ok(f.store.prune(&everything(&f, 10)).await).keys, 0);
}

/// A pruned request takes nothing of its redrive with it, and the other way round.
pub async fn leaves_a_redrive_alone(f: Fixture) {
    let t = f.site(9).await;
    let failed = f.failed(&t).await.id;
    let redrive = leasehold_store::request::Redrive {
        workspace: t.workspace,
        failed,
        id: fresh_id(),
        by: USER.into(),
    };
    let Redriven::Enqueued(id) = ok(f.store.request_redrive(&redrive).await) else {
        panic!("it has failed");
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
