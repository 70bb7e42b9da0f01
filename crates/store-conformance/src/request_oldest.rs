//! What a store promises about the age of what is open: since when the oldest could have been claimed, was claimed, was dispatched.

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

/// Where nothing is open there is none, whatever has ended.
pub async fn of_what_has_ended_is_none(f: Fixture) {
    let none = |at| Oldest {
        at,
        pending: None,
        startable: None,
        claimed: None,
        dispatched: None,
    };
    assert_eq!(oldest(&f).await, none(f.now()));
    let t = f.site(2).await;
    f.completed(&t).await;
    f.failed(&t).await;
    f.advance(1);
    assert_eq!(oldest(&f).await, none(f.now()));
}

/// Each status has its own: a request begins anew with every step, and the next oldest takes its place.
pub async fn of_each_status_is_since_it_was_reached(f: Fixture) {
    let t = f.site(2).await;
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

/// The first in line of a workspace could be started while there is room: not of one that is full or paused, not before its time.
pub async fn startable_is_whoever_has_room(f: Fixture) {
    let startable = async || oldest(&f).await.startable;
    let t = f.site(1).await;
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
    assert_eq!(startable().await, None, "it is full");
    assert_eq!(pending(&f).await, Some(enqueued));
    let other = f.site(1).await;
    let due = f.now() + Duration::from_secs(60);
    let new = NewRequest {
        run_at: Some(due),
        ..new_request(&other)
    };
    f.enqueue_one(&other, new).await;
    assert_eq!(startable().await, None, "its time has not come");
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    assert_eq!(startable().await, Some(enqueued));
}

/// What is for later does not wait before its time has come, and from then on it does, although nobody claims.
pub async fn what_is_for_later_waits_from_its_time_on(f: Fixture) {
    let t = f.site(1).await;
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
    ok(f.store.request_settle().await);
    assert_eq!(pending(&f).await, Some(due));
}

/// One that was delayed does not hide another that stands behind it and has been due for longer.
pub async fn who_stands_behind_a_delayed_one_is_seen(f: Fixture) {
    let t = f.site(1).await;
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

/// Many that were delayed do not hide who stands behind them: its age is told, and told too low by an eighth at most.
pub async fn many_delayed_ones_hide_nobody(f: Fixture) {
    let t = f.site(1).await;
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
    ok(f.store.request_settle().await);
    let told = pending(&f).await.expect("many wait");
    assert!(told >= behind);
    assert!(told <= behind + Duration::from_secs(4_000 / 8));
}

/// It is the oldest of all priorities of all workspaces: full, paused and deleted ones too.
pub async fn is_of_every_line(f: Fixture) {
    let full = f.site(1).await;
    f.running(&full).await;
    let paused = f.site(9).await;
    f.set_paused(paused.workspace, true).await;
    let (mut since, mut asked) = (Vec::new(), Vec::new());
    for (site, priority) in [
        (&full, -5),
        (&paused, -9),
        (&full, 0),
        (&paused, 3),
        (&full, 9),
    ] {
        since.push(f.now());
        let new = NewRequest {
            priority,
            ..new_request(site)
        };
        asked.push(f.enqueue_one(site, new).await);
        f.advance(1);
        assert_eq!(pending(&f).await, Some(since[0]));
    }
    assert!(ok(f.store.workspace_delete(paused.workspace).await));
    assert_eq!(pending(&f).await, Some(since[0]));
    f.cancel(full.workspace, asked[0]).await;
    assert_eq!(pending(&f).await, Some(since[1]));
}

/// A request that keeps its execution waits like any other, and so does one that was taken back.
pub async fn a_kept_one_waits_too(f: Fixture) {
    let t = f.site(1).await;
    let enqueued = f.now();
    let kept = f.kept(&t).await;
    f.advance(5);
    assert_eq!(pending(&f).await, Some(enqueued));
    let again = f.claim_one().await;
    assert_eq!((again.id, pending(&f).await), (kept.id, None));
    f.advance(LEASE.as_secs());
    assert_eq!(ok(f.store.request_recover(OWNER, 10).await).len(), 1);
    assert_eq!(pending(&f).await, Some(enqueued));
    assert_eq!(oldest(&f).await.claimed, None);
}

/// The one dispatched first counts, also where another was admitted before it.
pub async fn the_first_dispatched_counts_whoever_was_admitted_first(f: Fixture) {
    let t = f.site(3).await;
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
