//! Cancelling a request, at each status.

use crate::Fixture;
use crate::factory::{USER, ids, ok};
use leasehold_core::{ExecutionEnd, FailureReason, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{CancelRequest, Cancelled, ClaimedRequest, ReleaseKind, Request};

/// A PENDING request without an execution fails as cancelled at once, without an attempt.
pub async fn pending_request_fails_at_once(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.enqueue(&t, 2).await;
    let before = f.request(t.workspace, enqueued[0]).await;
    f.advance(1);
    let cancelled = f.cancel_by("boss", t.workspace, enqueued[0], false);
    assert_eq!(cancelled.await, Cancelled::Cancelled);
    let after = f.request(t.workspace, enqueued[0]).await;
    let expected = Request {
        status: RequestStatus::Failed.into(),
        failure_reason: Some(FailureReason::Cancelled.into()),
        // Whether a cancel request that took effect at once is recorded is the store's choice.
        cancel_requested_at: after.cancel_requested_at,
        finished_at: Some(f.now()),
        ..before
    };
    assert_eq!(after, expected);
    f.assert_timeline(
        t.workspace,
        enqueued[0],
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
    assert_eq!(ids(&f.claim(10).await), enqueued[1..]);
}

/// A request that is not due, or in backoff without an execution, is cancelled at once too.
pub async fn request_that_is_not_due_fails_at_once(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.release(&claimed, ReleaseKind::NotStarted, 60).await;
    let cancelled = f.cancel(t.workspace, claimed.id);
    assert_eq!(cancelled.await, Cancelled::Cancelled);
    assert_eq!(f.request(t.workspace, claimed.id).await.attempt_count, 1);
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// Cancelling an unknown start makes it due at once, because it holds a slot that is no longer needed.
pub async fn unknown_start_becomes_due_at_once(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.release(&claimed, ReleaseKind::Unknown, 300).await;
    assert_eq!(ids(&f.claim(10).await), []);
    let outcome = f.cancel(t.workspace, claimed.id).await;
    assert_eq!(outcome, Cancelled::Requested(claimed.execution));
    let again = f.claim_one().await;
    assert_eq!(again.execution, claimed.execution);
    assert!(again.cancel_requested);
}

/// A request that is being started, or whose start is unknown, keeps the cancel request with its first time.
pub async fn claimed_or_unknown_request_keeps_the_cancel_request(f: Fixture) {
    let t = f.workspace(2).await;
    let kept = f.enqueue_unknown(&t).await;
    f.claim_one().await;
    let again = f.request(t.workspace, kept.id).await;
    assert_eq!(again.status, RequestStatus::Claimed);
    let waiting = f.enqueue_claimed(&t).await;
    f.release(&waiting, ReleaseKind::Unknown, 0).await;
    for id in [kept.id, waiting.id] {
        let before = f.request(t.workspace, id).await;
        let execution = before.execution.expect("the request has an execution");
        let first = f.now();
        let timeline = f.timeline(t.workspace, id).await;
        for _ in 0..2 {
            let outcome = f.cancel(t.workspace, id);
            assert_eq!(outcome.await, Cancelled::Requested(execution));
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
            "a cancel request is no transition"
        );
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 2);
}

/// A running request keeps the cancel request for the engine; the execution's end decides its outcome.
pub async fn running_request_is_cancelled_by_the_engine(f: Fixture) {
    let t = f.workspace(1).await;
    let running = f.enqueue_running(&t).await;
    let outcome = f.cancel(t.workspace, running.id);
    assert_eq!(outcome.await, Cancelled::Running(running.execution));
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(request.cancel_requested_at, Some(f.now()));
    f.finish(running.execution, ExecutionEnd::Cancelled).await;
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
}

/// A request that has ended is unchanged; an unknown one is not found.
pub async fn ended_request_is_unchanged(f: Fixture) {
    let t = f.workspace(2).await;
    let completed = f.enqueue_completed(&t).await;
    let failed = f.enqueue_failed(&t).await;
    let before = f.dump().await;
    for id in [completed.id, failed.id] {
        let cancelled = f.cancel(t.workspace, id);
        assert_eq!(cancelled.await, Cancelled::AlreadyFinished);
    }
    let unknown = f.cancel(t.workspace, fresh_id());
    assert_eq!(unknown.await, Cancelled::NotFound);
    assert_eq!(f.dump().await, before);
}

fn cancel_request(running: &ClaimedRequest, force: bool) -> CancelRequest {
    CancelRequest {
        request: running.id,
        workspace: running.workspace,
        execution: running.execution,
        force,
    }
}

async fn listed(f: &Fixture, limit: u32) -> Vec<CancelRequest> {
    ok(f.store.request_cancel_list(limit).await)
}

/// Cancel requests of running requests are listed, oldest first and up to the limit, until the engine has acknowledged them.
pub async fn cancel_requests_are_listed_until_acknowledged(f: Fixture) {
    let t = f.workspace(10).await;
    let (newer, older, never) = (
        f.enqueue_running(&t).await,
        f.enqueue_running(&t).await,
        f.enqueue_running(&t).await,
    );
    assert_eq!(listed(&f, 10).await, []);
    for running in [&older, &newer] {
        f.cancel(t.workspace, running.id).await;
        f.advance(1);
    }
    let both = [cancel_request(&older, false), cancel_request(&newer, false)];
    assert_eq!(listed(&f, 10).await, both);
    assert_eq!(listed(&f, 1).await, both[..1]);
    ok(f.store.request_cancel_ack(&both[..1]).await);
    assert_eq!(listed(&f, 10).await, both[1..]);
    f.cancel(t.workspace, older.id).await;
    assert_eq!(
        listed(&f, 10).await,
        both,
        "a repeated cancel request keeps its place and is listed again"
    );
    ok(f.store.request_cancel_ack(&both[..1]).await);
    assert_eq!(listed(&f, 10).await, both[1..]);
    let not_requested = [cancel_request(&never, false)];
    ok(f.store.request_cancel_ack(&not_requested).await);
    f.cancel(t.workspace, never.id).await;
    assert_eq!(listed(&f, 10).await, [both[1], not_requested[0]]);
    ok(f.store.request_cancel_ack(&[]).await);
}

/// An acknowledged cancel request of a running request is listed again on demand; no other request is touched.
pub async fn acknowledged_cancel_request_is_repeated(f: Fixture) {
    let t = f.workspace(10).await;
    let (running, other, never) = (
        f.enqueue_running(&t).await,
        f.enqueue_running(&t).await,
        f.enqueue_running(&t).await,
    );
    let ended = f.enqueue_running(&t).await;
    let kept = f.enqueue_unknown(&t).await;
    for request in [&running, &other, &ended, &kept] {
        f.cancel(t.workspace, request.id).await;
        f.advance(1);
    }
    let open = listed(&f, 10).await;
    assert_eq!(open.len(), 3);
    ok(f.store.request_cancel_ack(&open).await);
    f.finish(ended.execution, ExecutionEnd::Cancelled).await;
    let before = f.dump().await;
    let requests = [never.id, kept.id, ended.id, fresh_id()];
    assert_eq!(ok(f.store.request_cancel_repeat(&requests).await), 0);
    assert_eq!(ok(f.store.request_cancel_repeat(&[]).await), 0);
    assert_eq!(listed(&f, 10).await, []);
    let requests = [never.id, running.id, running.id];
    assert_eq!(ok(f.store.request_cancel_repeat(&requests).await), 1);
    assert_eq!(listed(&f, 10).await, [cancel_request(&running, false)]);
    assert_eq!(
        ok(f.store.request_cancel_repeat(&requests).await),
        0,
        "it is listed already"
    );
    assert_eq!(f.dump().await, before);
}

/// A later forced cancel request is listed again; a weaker one changes nothing.
pub async fn forced_cancel_request_is_listed_after_an_acknowledged_one(f: Fixture) {
    let t = f.workspace(2).await;
    let running = f.enqueue_running(&t).await;
    let (graceful, forced_request) = (
        [cancel_request(&running, false)],
        [cancel_request(&running, true)],
    );
    let first = f.now();
    f.cancel(t.workspace, running.id).await;
    ok(f.store.request_cancel_ack(&graceful).await);
    f.advance(1);
    let forced = f.cancel_forced(t.workspace, running.id).await;
    assert_eq!(forced, Cancelled::Running(running.execution));
    assert_eq!(listed(&f, 10).await, forced_request);
    let request = f.request(t.workspace, running.id).await;
    assert_eq!(request.cancel_requested_at, Some(first));
    ok(f.store.request_cancel_ack(&graceful).await);
    assert_eq!(
        listed(&f, 10).await,
        forced_request,
        "the weaker cancel request was acknowledged"
    );
    f.cancel(t.workspace, running.id).await;
    assert_eq!(listed(&f, 10).await, forced_request);
    let another = CancelRequest {
        execution: fresh_id(),
        ..forced_request[0]
    };
    ok(f.store.request_cancel_ack(&[another]).await);
    assert_eq!(
        listed(&f, 10).await,
        forced_request,
        "the execution has ended"
    );
    ok(f.store.request_cancel_ack(&forced_request).await);
    assert_eq!(listed(&f, 10).await, []);
    let later = f.enqueue_running(&t).await;
    f.cancel_forced(t.workspace, later.id).await;
    assert_eq!(listed(&f, 10).await, [cancel_request(&later, true)]);
}

/// Only running requests are listed: a dispatcher cancels those being started, and ended ones have ended.
pub async fn only_running_requests_are_listed(f: Fixture) {
    let t = f.workspace(10).await;
    let (running, kept) = (f.enqueue_running(&t).await, f.enqueue_unknown(&t).await);
    for request in [&kept, &running] {
        f.cancel_forced(t.workspace, request.id).await;
    }
    assert_eq!(listed(&f, 10).await, [cancel_request(&running, true)]);
    f.finish(running.execution, ExecutionEnd::Terminated).await;
    assert_eq!(listed(&f, 10).await, []);
    ok(f.store
        .request_cancel_ack(&[cancel_request(&running, true)])
        .await);
    let claimed = f.claim_one().await;
    f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    assert_eq!(listed(&f, 10).await, []);
    f.enqueue(&t, 1).await;
    let waiting = f.enqueue(&t, 1).await[0];
    let cancelled = f.cancel_forced(t.workspace, waiting).await;
    assert_eq!(cancelled, Cancelled::Cancelled);
    assert_eq!(listed(&f, 10).await, []);
}
