//! What a store promises about cancelling, at each status.

use crate::Fixture;
use crate::factory::{USER, ids, ok};
use leasehold_core::{ExecutionEnd, FailureReason, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{Cancelled, ReleaseKind, Request};

/// A request that waits without an execution is FAILED as cancelled at once; that is no attempt.
pub async fn of_one_that_waits_is_at_once(f: Fixture) {
    let t = f.site(1).await;
    let asked = f.enqueue(&t, 2).await;
    let before = f.request(t.workspace, asked[0]).await;
    f.advance(1);
    let cancelled = f.store.request_cancel(t.workspace, asked[0], "boss");
    assert_eq!(ok(cancelled.await), Cancelled::Cancelled);
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
    let cancelled = f.store.request_cancel(t.workspace, claimed.id, USER);
    assert_eq!(ok(cancelled.await), Cancelled::Cancelled);
    assert_eq!(f.request(t.workspace, claimed.id).await.attempt_count, 1);
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), []);
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
            let wish = f.store.request_cancel(t.workspace, id, USER);
            assert_eq!(ok(wish.await), Cancelled::Wished(execution));
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
    let wish = f.store.request_cancel(t.workspace, running.id, USER);
    assert_eq!(ok(wish.await), Cancelled::Running(running.execution));
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
        let cancelled = f.store.request_cancel(t.workspace, id, USER);
        assert_eq!(ok(cancelled.await), Cancelled::AlreadyFinished);
    }
    let unknown = f.store.request_cancel(t.workspace, fresh_id(), USER);
    assert_eq!(ok(unknown.await), Cancelled::NotFound);
    assert_eq!(f.dump().await, before);
}
