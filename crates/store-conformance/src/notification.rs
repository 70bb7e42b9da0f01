//! Notifications: what wakes a waiting dispatcher or canceller, and what does not.

use crate::Fixture;
use crate::factory::{OWNER, TestWorkspace, USER, new_request, ok};
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{ExecutionEnd, FailureReason, RequestId};
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::notification::Notification;
use leasehold_store::prune::Prune;
use leasehold_store::request::{
    Claimed, Fail, NewRequest, Redrive, RedriveMany, Redriven, ReleaseKind, RequestFilter,
};
use leasehold_store::{Page, fresh_id};
use std::time::Duration;
use tokio::time::timeout;

/// The maximum delay of a notification through a database.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for a notification that must not come.
const QUIET_PERIOD: Duration = Duration::from_millis(150);

async fn is_quiet(f: &Fixture, kind: Notification) -> bool {
    timeout(QUIET_PERIOD, f.store.notification_wait(kind))
        .await
        .is_err()
}

async fn assert_notified(f: &Fixture, kind: Notification, cause: &str) {
    let notified = timeout(NOTIFY_TIMEOUT, f.store.notification_wait(kind)).await;
    assert!(notified.is_ok(), "{cause} did not notify {kind:?}");
}

/// Consumes earlier notifications until the store is armed and quiet.
async fn arm(f: &Fixture, kind: Notification) {
    for _ in 0..100 {
        if ok(f.store.notification_arm().await) && is_quiet(f, kind).await {
            return;
        }
    }
    panic!("notifications do not stop");
}

/// Arms the notification, runs the operation and asserts that it notifies.
pub(crate) async fn assert_notifies<T>(
    f: &Fixture,
    cause: &str,
    operation: impl Future<Output = T>,
) -> T {
    arm(f, Notification::Work).await;
    // Waits meanwhile: a store without a waiter is notified only for some seconds, which a slow machine may need.
    let notified = assert_notified(f, Notification::Work, cause);
    tokio::join!(operation, notified).0
}

/// Every enqueue notifies, also of a request that is not due: a dispatcher may have planned a longer wait.
pub async fn new_work_notifies(f: Fixture) {
    let t = f.workspace(5).await;
    assert_notifies(&f, "a request", f.enqueue(&t, 1)).await;
    let later = NewRequest {
        run_at: Some(f.now() + Duration::from_secs(60)),
        ..new_request(&t)
    };
    assert_notifies(&f, "a request for later", f.enqueue_one(&t, later)).await;
    let claimed = f.drain(10).await.requests;
    for request in &claimed {
        f.dispatch(request).await;
        f.finish(request.execution, ExecutionEnd::Failed).await;
    }
    let redrive = Redrive {
        workspace: t.workspace,
        failed: claimed[0].id,
        id: fresh_id(),
        by: USER.into(),
    };
    let redriven = assert_notifies(&f, "a redrive", f.store.request_redrive(&redrive)).await;
    assert_eq!(ok(redriven), Redriven::Enqueued(redrive.id));
    let again = f.claim_one().await;
    f.finish(again.execution, ExecutionEnd::Failed).await;
    let many = RedriveMany {
        workspace: t.workspace,
        reason: None,
        definition: None,
        limit: 10,
        max_bytes: u64::MAX,
        by: USER.into(),
    };
    let redriven = assert_notifies(&f, "a bulk redrive", f.store.request_redrive_many(&many)).await;
    assert_eq!(ok(redriven).len(), 1);
}

/// Every freed slot notifies.
pub async fn freed_slot_notifies(f: Fixture) {
    let t = f.workspace(5).await;
    let running = f.enqueue_running(&t).await;
    let finish = f.finish(running.execution, ExecutionEnd::Completed);
    assert_notifies(&f, "an end", finish).await;
    let claimed = f.enqueue_claimed(&t).await;
    let end = f.finish(claimed.execution, ExecutionEnd::Completed);
    assert_notifies(&f, "an end that comes early", end).await;
    let claimed = f.enqueue_claimed(&t).await;
    let fail = Fail {
        claim: (&claimed).into(),
        reason: FailureReason::VersionNotFound,
        error: None,
    };
    let failed = assert_notifies(&f, "a failure", f.store.request_fail(OWNER, &fail)).await;
    assert!(ok(failed));
}

/// A released or recovered claim notifies, and so does a cancel request for an unknown start.
pub async fn released_or_recovered_claim_notifies(f: Fixture) {
    let t = f.workspace(50).await;
    for kind in [
        ReleaseKind::Refused { max_attempts: 9 },
        ReleaseKind::Refused { max_attempts: 1 },
        ReleaseKind::NotStarted,
        ReleaseKind::Unknown,
    ] {
        f.enqueue(&t, 1).await;
        let claimed = f.claim_one().await;
        let release = f.release(&claimed, kind, 0);
        assert_notifies(&f, &format!("{kind:?}"), release).await;
    }
    f.drain(50).await;
    f.advance(15);
    let recovered = assert_notifies(&f, "a recovery", f.store.request_recover("sweeper", 1)).await;
    let kept = ok(recovered)[0];
    let cancel = f.cancel(kept.workspace, kept.request);
    assert_notifies(&f, "a cancel request", cancel).await;
}

/// Every change that lets a workspace admit more notifies, and so does its deletion, since its pending requests must fail.
pub async fn changed_workspace_notifies(f: Fixture) {
    let t = f.workspace(1).await;
    f.set_paused(t.workspace, true).await;
    assert_notifies(&f, "a raised limit", f.set_limit(t.workspace, 2)).await;
    assert_notifies(&f, "a resumption", f.set_paused(t.workspace, false)).await;
    let deleted = assert_notifies(
        &f,
        "a deletion",
        f.store
            .workspace_delete(t.workspace, &leasehold_store::Actor::Local),
    )
    .await;
    assert!(ok(deleted));
}

/// A notification before the wait is not lost, and several collapse into one.
pub async fn notification_before_the_wait_is_not_lost(f: Fixture) {
    let t = f.workspace(5).await;
    arm(&f, Notification::Work).await;
    for _ in 0..20 {
        f.enqueue(&t, 1).await;
    }
    assert_notified(&f, Notification::Work, "an earlier enqueue").await;
    arm(&f, Notification::Work).await;
}

async fn claim_and_read(f: &Fixture, t: &TestWorkspace) -> Claimed {
    let claimed = f.claim(1).await;
    f.renew(OWNER, &[(&claimed.requests[0]).into()]).await;
    f.dispatch(&claimed.requests[0]).await;
    ok(f.store.request_promote_due().await);
    ok(f.store.request_counts(t.workspace).await);
    ok(f.store
        .request_list(&RequestFilter::default(), Page::first(PAGE_MAX))
        .await);
    claimed
}

/// Operations that create no work do not notify: claiming, renewing, marking, reading, pruning, and calls that change nothing.
pub async fn other_operations_do_not_notify(f: Fixture) {
    let t = f.workspace(5).await;
    let ended = f.enqueue_completed(&t).await.execution;
    f.enqueue(&t, 1).await;
    arm(&f, Notification::Cancel).await;
    arm(&f, Notification::Work).await;
    claim_and_read(&f, &t).await;
    ok(f.store.request_recover("sweeper", 10).await);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    ok(f.store.prune(&prune).await);
    f.try_enqueue(fresh_id(), vec![new_request(&t)]).await;
    let again = f.try_finish(ended, ExecutionEnd::Completed).await;
    assert_eq!(again, ExecutionFinished::AlreadyFinished);
    let unknown: RequestId = fresh_id();
    f.cancel(t.workspace, unknown).await;
    assert!(is_quiet(&f, Notification::Work).await);
    assert!(is_quiet(&f, Notification::Cancel).await);
}

/// A cancel request for a running request notifies the canceller, and so does a dispatch mark that finds one.
pub async fn cancel_request_of_a_running_request_notifies(f: Fixture) {
    let t = f.workspace(5).await;
    let running = f.enqueue_running(&t).await;
    arm(&f, Notification::Cancel).await;
    f.cancel(t.workspace, running.id).await;
    assert_notified(&f, Notification::Cancel, "a cancel request").await;
    arm(&f, Notification::Cancel).await;
    f.cancel_forced(t.workspace, running.id).await;
    assert_notified(&f, Notification::Cancel, "a forced cancel request").await;
    let claimed = f.enqueue_claimed(&t).await;
    f.cancel(t.workspace, claimed.id).await;
    arm(&f, Notification::Cancel).await;
    let claims = [(&claimed).into()];
    ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_notified(&f, Notification::Cancel, "the mark").await;
}

/// Each kind wakes only its own waiters.
pub async fn kinds_are_independent(f: Fixture) {
    for kind in Notification::ALL {
        for other in Notification::ALL {
            arm(&f, other).await;
        }
        ok(f.store.notify(kind).await);
        assert_notified(&f, kind, "notify").await;
        for other in Notification::ALL.into_iter().filter(|other| *other != kind) {
            assert!(is_quiet(&f, other).await, "{kind:?} notified {other:?}");
        }
    }
}
