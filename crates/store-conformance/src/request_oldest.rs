//! The age of open requests: since when the oldest is due, claimed, dispatched.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, new_request, ok};
use leasehold_core::{ExecutionEnd, Timestamp};
use leasehold_store::fresh_id;
use leasehold_store::request::{NewRequest, Oldest, ReleaseKind};
use std::time::Duration;

async fn oldest(f: &Fixture) -> Oldest {
    let oldest = ok(f.store.request_oldest().await);
    assert_eq!(oldest.at, f.now());
    oldest
}

async fn pending(f: &Fixture) -> Option<Timestamp> {
    oldest(f).await.pending
}

/// Without open requests there is no oldest.
pub async fn ended_requests_have_no_age(f: Fixture) {
    let none = |at| Oldest {
        at,
        pending: None,
        startable: None,
        claimed: None,
        dispatched: None,
    };
    assert_eq!(oldest(&f).await, none(f.now()));
    let t = f.workspace(2).await;
    f.enqueue_completed(&t).await;
    f.enqueue_failed(&t).await;
    f.advance(1);
    assert_eq!(oldest(&f).await, none(f.now()));
}

/// Each status has its own oldest: the age restarts with every transition, and the next oldest takes over.
pub async fn age_counts_from_the_current_status(f: Fixture) {
    let t = f.workspace(2).await;
    let enqueued = f.now();
    f.enqueue(&t, 3).await;
    f.advance(1);
    assert_eq!(pending(&f).await, Some(enqueued));
    let (first, claimed) = (f.claim_one().await, f.now());
    f.advance(1);
    let second = f.claim_one().await;
    // The workspace is full from now on.
    let expected = |at, claimed, dispatched| Oldest {
        at,
        pending: Some(enqueued),
        startable: None,
        claimed,
        dispatched,
    };
    let seen = oldest(&f).await;
    assert_eq!(seen, expected(f.now(), Some(claimed), None));
    let later = f.now();
    f.advance(1);
    let dispatched = f.now();
    f.dispatch(&first).await;
    let seen = oldest(&f).await;
    assert_eq!(seen, expected(f.now(), Some(later), Some(dispatched)));
    f.advance(1);
    f.dispatch(&second).await;
    let again = f.now();
    f.finish(first.execution, ExecutionEnd::Completed).await;
    let seen = oldest(&f).await;
    assert_eq!(seen.startable, Some(enqueued));
    let seen = Oldest {
        startable: None,
        ..seen
    };
    assert_eq!(seen, expected(f.now(), None, Some(again)));
}

/// The first request of a workspace is startable while a slot is free: not if the workspace is full or paused, and not before it is due.
pub async fn startable_needs_a_free_slot(f: Fixture) {
    let startable = async || oldest(&f).await.startable;
    let t = f.workspace(1).await;
    let enqueued = f.now();
    f.enqueue(&t, 2).await;
    f.advance(5);
    assert_eq!(startable().await, Some(enqueued));
    f.set_paused(t.workspace, true).await;
    assert_eq!(startable().await, None);
    f.set_paused(t.workspace, false).await;
    assert_eq!(startable().await, Some(enqueued));
    let claimed = f.claim_one().await;
    f.dispatch(&claimed).await;
    assert_eq!(startable().await, None, "the workspace is full");
    assert_eq!(pending(&f).await, Some(enqueued));
    let other = f.workspace(1).await;
    let due = f.now() + Duration::from_secs(60);
    let new = NewRequest {
        run_at: Some(due),
        ..new_request(&other)
    };
    f.enqueue_one(&other, new).await;
    assert_eq!(startable().await, None, "the request is not due");
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    assert_eq!(startable().await, Some(enqueued));
}

/// A scheduled request counts from its due time on, even if no claim runs.
pub async fn scheduled_request_counts_once_it_is_due(f: Fixture) {
    let t = f.workspace(1).await;
    let due = f.now() + Duration::from_secs(60);
    let new = NewRequest {
        run_at: Some(due),
        ..new_request(&t)
    };
    f.enqueue_one(&t, new).await;
    f.advance(59);
    assert_eq!(pending(&f).await, None);
    f.advance(1);
    assert_eq!(pending(&f).await, Some(due));
    f.advance(10);
    assert_eq!(pending(&f).await, Some(due));
    ok(f.store.request_promote_due().await);
    assert_eq!(pending(&f).await, Some(due));
}

/// A delayed request does not hide one behind it that has been due for longer.
pub async fn delayed_request_does_not_hide_an_older_one(f: Fixture) {
    let t = f.workspace(1).await;
    for _ in 0..3 {
        f.enqueue(&t, 1).await;
        let claimed = f.claim_one().await;
        f.release(&claimed, ReleaseKind::NotStarted, 100).await;
        f.advance(1);
    }
    let behind = f.now();
    f.enqueue(&t, 2).await;
    f.advance(200);
    assert_eq!(pending(&f).await, Some(behind));
    f.set_paused(t.workspace, true).await;
    f.claim(1).await;
    assert_eq!(pending(&f).await, Some(behind));
    f.set_paused(t.workspace, false).await;
    for _ in 0..3 {
        let claimed = f.claim_one().await;
        assert_eq!(pending(&f).await, Some(behind));
        f.finish(claimed.execution, ExecutionEnd::Completed).await;
    }
}

/// Many delayed requests do not hide an older one behind them; its age may be underestimated by at most 12.5 %.
pub async fn many_delayed_requests_hide_no_older_one(f: Fixture) {
    let t = f.workspace(1).await;
    let head = f.now();
    let due = head + Duration::from_secs(4_000);
    let scheduled = NewRequest {
        run_at: Some(due),
        ..new_request(&t)
    };
    let many = (0..300).map(|_| NewRequest {
        id: fresh_id(),
        ..scheduled.clone()
    });
    f.try_enqueue(t.workspace, many.collect()).await;
    f.advance(100);
    let behind = f.now();
    for _ in 0..50 {
        f.enqueue(&t, 1).await;
        f.advance(100);
    }
    ok(f.store.request_promote_due().await);
    let since = pending(&f).await.expect("many requests are pending");
    assert!(since >= behind);
    assert!(since <= behind + Duration::from_secs(4_000 / 8));
}

/// The oldest is that of all priorities of all workspaces, including full, paused and deleted ones.
pub async fn covers_all_workspaces_and_priorities(f: Fixture) {
    let full = f.workspace(1).await;
    f.enqueue_running(&full).await;
    let paused = f.workspace(9).await;
    f.set_paused(paused.workspace, true).await;
    let (mut since, mut request_ids) = (Vec::new(), Vec::new());
    for (workspace, priority) in [
        (&full, -5),
        (&paused, -9),
        (&full, 0),
        (&paused, 3),
        (&full, 9),
    ] {
        since.push(f.now());
        let new = NewRequest {
            priority,
            ..new_request(workspace)
        };
        request_ids.push(f.enqueue_one(workspace, new).await);
        f.advance(1);
        assert_eq!(pending(&f).await, Some(since[0]));
    }
    assert!(ok(f
        .store
        .workspace_delete(paused.workspace, &leasehold_store::Actor::Local)
        .await));
    assert_eq!(pending(&f).await, Some(since[0]));
    f.cancel(full.workspace, request_ids[0]).await;
    assert_eq!(pending(&f).await, Some(since[1]));
}

/// An unknown start counts as pending, and so does a recovered request.
pub async fn unknown_start_counts_as_pending(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.now();
    let kept = f.enqueue_unknown(&t).await;
    f.advance(5);
    assert_eq!(pending(&f).await, Some(enqueued));
    let again = f.claim_one().await;
    assert_eq!((again.id, pending(&f).await), (kept.id, None));
    f.advance(LEASE.as_secs());
    assert_eq!(ok(f.store.request_recover(OWNER, 10).await).len(), 1);
    assert_eq!(pending(&f).await, Some(enqueued));
    assert_eq!(oldest(&f).await.claimed, None);
}

/// The request dispatched first counts, even if another was admitted before it.
pub async fn dispatched_age_counts_from_the_dispatch(f: Fixture) {
    let t = f.workspace(3).await;
    f.enqueue(&t, 3).await;
    let claimed = f.claim(3).await.requests;
    let mut moments = Vec::new();
    for n in [2, 0, 1] {
        f.advance(1);
        moments.push(f.now());
        f.dispatch(&claimed[n]).await;
        assert_eq!(oldest(&f).await.dispatched, Some(moments[0]));
    }
    for (n, next) in [(2, Some(moments[1])), (0, Some(moments[2])), (1, None)] {
        f.finish(claimed[n].execution, ExecutionEnd::Completed)
            .await;
        assert_eq!(oldest(&f).await.dispatched, next);
    }
}
