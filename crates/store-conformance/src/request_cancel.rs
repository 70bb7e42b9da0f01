//! What a store promises about cancelling, at each status.

use crate::Fixture;
use crate::factory::{USER, ids, ok};
use leasehold_core::{ExecutionEnd, FailureReason, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{CancelWish, Cancelled, ClaimedRequest, ReleaseKind, Request};

/// A request that waits without an execution is FAILED as cancelled at once; that is no attempt.
pub async fn of_one_that_waits_is_at_once(f: Fixture) {
    let t = f.site(1).await;
    let asked = f.enqueue(&t, 2).await;
    let before = f.request(t.workspace, asked[0]).await;
    f.advance(1);
    let cancelled = f.cancel_by("boss", t.workspace, asked[0], false);
    assert_eq!(cancelled.await, Cancelled::Cancelled);
    let after = f.request(t.workspace, asked[0]).await;
    let expected = Request {
        status: RequestStatus::Failed,
        failure_reason: Some(FailureReason::Cancelled),
        // Whether the wish is noted where it was carried out at once is nobody's promise.
        cancel_requested_at: after.cancel_requested_at,
        finished_at: Some(f.now()),
        ..before
    };
    assert_eq!(after, expected);
    f.assert_timeline(
        t.workspace,
        asked[0],
        &[
            (None, RequestStatus::Pending, USER, None),
            (
                Some(RequestStatus::Pending),
                RequestStatus::Failed,
                "boss",
                Some("cancelled"),
            ),
        ],
    )
    .await;
    assert_eq!(ids(&f.claim(10).await), asked[1..]);
}

/// One that is not due yet, or backs off without an execution, is cancelled at once too.
pub async fn of_one_that_is_not_due_is_at_once(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    f.release(&claimed, ReleaseKind::NotStarted, 60).await;
    let cancelled = f.cancel(t.workspace, claimed.id);
    assert_eq!(cancelled.await, Cancelled::Cancelled);
    assert_eq!(f.request(t.workspace, claimed.id).await.attempt_count, 1);
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// It holds a slot that nobody wants any more.
pub async fn of_an_unknown_start_ends_its_wait(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    f.release(&claimed, ReleaseKind::Unknown, 300).await;
    assert_eq!(ids(&f.claim(10).await), []);
    let wish = f.cancel(t.workspace, claimed.id).await;
    assert_eq!(wish, Cancelled::Wished(claimed.execution));
    let again = f.claim_one().await;
    assert_eq!(again.execution, claimed.execution);
    assert!(again.cancel_requested);
}

/// One being started, or whose start is unknown, keeps the wish; the first wish's time stays.
pub async fn of_one_whose_start_is_open_is_a_wish(f: Fixture) {
    let t = f.site(2).await;
    let kept = f.kept(&t).await;
    f.claim_one().await;
    let again = f.request(t.workspace, kept.id).await;
    assert_eq!(again.status, RequestStatus::Claimed);
    let waiting = f.claimed(&t).await;
    f.release(&waiting, ReleaseKind::Unknown, 0).await;
    for id in [kept.id, waiting.id] {
        let before = f.request(t.workspace, id).await;
        let execution = before.execution.expect("it has one");
        let first = f.now();
        let timeline = f.timeline(t.workspace, id).await;
        for _ in 0..2 {
            let wish = f.cancel(t.workspace, id);
            assert_eq!(wish.await, Cancelled::Wished(execution));
            f.advance(1);
        }
        let expected = Request {
            cancel_requested_at: Some(first),
            ..before
        };
        assert_eq!(f.request(t.workspace, id).await, expected);
        assert_eq!(
            f.timeline(t.workspace, id).await,
            timeline,
            "a wish is no transition"
        );
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 2);
}

/// One that runs keeps the wish and must be cancelled in the engine; its end then says how it ended.
pub async fn of_one_that_runs_is_for_the_engine(f: Fixture) {
    let t = f.site(1).await;
    let running = f.running(&t).await;
    let wish = f.cancel(t.workspace, running.id);
    assert_eq!(wish.await, Cancelled::Running(running.execution));
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(request.cancel_requested_at, Some(f.now()));
    f.finish(running.execution, ExecutionEnd::Cancelled).await;
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::Cancelled));
}

/// One that has ended stays as it is; one that is unknown is not found.
pub async fn of_one_that_has_ended_changes_nothing(f: Fixture) {
    let t = f.site(2).await;
    let completed = f.completed(&t).await;
    let failed = f.failed(&t).await;
    let before = f.dump().await;
    for id in [completed.id, failed.id] {
        let cancelled = f.cancel(t.workspace, id);
        assert_eq!(cancelled.await, Cancelled::AlreadyFinished);
    }
    let unknown = f.cancel(t.workspace, fresh_id());
    assert_eq!(unknown.await, Cancelled::NotFound);
    assert_eq!(f.dump().await, before);
}

fn wish(running: &ClaimedRequest, force: bool) -> CancelWish {
    CancelWish {
        request: running.id,
        workspace: running.workspace,
        execution: running.execution,
        force,
    }
}

async fn listed(f: &Fixture, limit: u32) -> Vec<CancelWish> {
    ok(f.store.request_cancel_list(limit).await)
}

/// Wishes to cancel what runs are listed, oldest first and as many as asked for, until the engine was told of them.
pub async fn of_what_runs_is_listed_until_the_engine_is_told(f: Fixture) {
    let t = f.site(10).await;
    let (newer, older, never) = (
        f.running(&t).await,
        f.running(&t).await,
        f.running(&t).await,
    );
    assert_eq!(listed(&f, 10).await, []);
    for running in [&older, &newer] {
        f.cancel(t.workspace, running.id).await;
        f.advance(1);
    }
    let both = [wish(&older, false), wish(&newer, false)];
    assert_eq!(listed(&f, 10).await, both);
    assert_eq!(listed(&f, 1).await, both[..1]);
    ok(f.store.request_cancel_told(&both[..1]).await);
    assert_eq!(listed(&f, 10).await, both[1..]);
    f.cancel(t.workspace, older.id).await;
    assert_eq!(listed(&f, 10).await, both[1..], "the same wish again");
    let unwished = [wish(&never, false)];
    ok(f.store.request_cancel_told(&unwished).await);
    f.cancel(t.workspace, never.id).await;
    assert_eq!(listed(&f, 10).await, [both[1], unwished[0]]);
    ok(f.store.request_cancel_told(&[]).await);
}

/// A later wish may ask to end it without being asked, of which the engine is told anew; a lesser one changes nothing.
pub async fn forced_is_told_although_the_lesser_wish_was(f: Fixture) {
    let t = f.site(2).await;
    let running = f.running(&t).await;
    let (asking, forcing) = ([wish(&running, false)], [wish(&running, true)]);
    let first = f.now();
    f.cancel(t.workspace, running.id).await;
    ok(f.store.request_cancel_told(&asking).await);
    f.advance(1);
    let forced = f.cancel_forced(t.workspace, running.id).await;
    assert_eq!(forced, Cancelled::Running(running.execution));
    assert_eq!(listed(&f, 10).await, forcing);
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(request.cancel_requested_at, Some(first));
    ok(f.store.request_cancel_told(&asking).await);
    assert_eq!(listed(&f, 10).await, forcing, "the engine knows the lesser");
    f.cancel(t.workspace, running.id).await;
    assert_eq!(listed(&f, 10).await, forcing);
    let another = CancelWish {
        execution: fresh_id(),
        ..forcing[0]
    };
    ok(f.store.request_cancel_told(&[another]).await);
    assert_eq!(listed(&f, 10).await, forcing, "that runs no more");
    ok(f.store.request_cancel_told(&forcing).await);
    assert_eq!(listed(&f, 10).await, []);
    let later = f.running(&t).await;
    f.cancel_forced(t.workspace, later.id).await;
    assert_eq!(listed(&f, 10).await, [wish(&later, true)]);
}

/// Only what runs is listed: what waits for its start is cancelled by whoever starts it, and what has ended has ended.
pub async fn of_what_does_not_run_is_not_listed(f: Fixture) {
    let t = f.site(10).await;
    let (running, kept) = (f.running(&t).await, f.kept(&t).await);
    for request in [&kept, &running] {
        f.cancel_forced(t.workspace, request.id).await;
    }
    assert_eq!(listed(&f, 10).await, [wish(&running, true)]);
    f.finish(running.execution, ExecutionEnd::Terminated).await;
    assert_eq!(listed(&f, 10).await, []);
    ok(f.store.request_cancel_told(&[wish(&running, true)]).await);
    let claimed = f.claim_one().await;
    f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    assert_eq!(listed(&f, 10).await, []);
    f.enqueue(&t, 1).await;
    let waiting = f.enqueue(&t, 1).await[0];
    let cancelled = f.cancel_forced(t.workspace, waiting).await;
    assert_eq!(cancelled, Cancelled::Cancelled);
    assert_eq!(listed(&f, 10).await, []);
}
