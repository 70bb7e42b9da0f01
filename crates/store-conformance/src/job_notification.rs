//! Notifications of jobs: what wakes a waiting worker, and what does not.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, completed, failed, job_refs, job_with_priority, new_job};
use leasehold_core::JsonText;
use leasehold_core::job::{JobEnd, JobFinished, RetryMode};
use leasehold_store::Page;
use leasehold_store::job::{JobFilter, JobPrune, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The maximum delay of a notification through a database.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for a notification that must not come.
const QUIET_PERIOD: Duration = Duration::from_millis(150);

async fn is_quiet(subscription: &mut watch::Receiver<u64>) -> bool {
    timeout(QUIET_PERIOD, subscription.changed()).await.is_err()
}

/// Consumes earlier notifications until the store is armed and quiet.
async fn arm(f: &Fixture, subscription: &mut watch::Receiver<u64>) {
    for _ in 0..100 {
        if ok(f.store.job_notification_arm().await) && is_quiet(subscription).await {
            return;
        }
    }
    panic!("notifications do not stop");
}

/// Subscribes, runs the operation and asserts that it notifies.
pub(crate) async fn assert_notifies<T>(
    f: &Fixture,
    cause: &str,
    operation: impl Future<Output = T>,
) -> T {
    let mut subscription = f.store.subscribe_jobs();
    arm(f, &mut subscription).await;
    let output = operation.await;
    let notified = timeout(NOTIFY_TIMEOUT, subscription.changed()).await;
    assert!(matches!(notified, Ok(Ok(()))), "{cause} did not notify");
    output
}

/// Every enqueue notifies, also of a scheduled job: a worker may have planned a longer wait.
pub async fn new_job_notifies(f: Fixture) {
    assert_notifies(&f, "a job", f.enqueue_jobs(1)).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    assert_notifies(&f, "a job for later", f.enqueue_job(later)).await;
    assert_notifies(&f, "many jobs", f.enqueue_jobs(200)).await;
    assert_notifies(
        &f,
        "a job of higher priority",
        f.enqueue_job(job_with_priority(9)),
    )
    .await;
}

/// Every return to the queue notifies: retried, snoozed, returned, lease expired.
pub async fn requeued_job_notifies(f: Fixture) {
    for end in [
        failed(RetryMode::Policy),
        failed(RetryMode::After(Duration::from_secs(5))),
        JobEnd::Snoozed(Duration::from_secs(5)),
        JobEnd::Returned,
    ] {
        let id = f.enqueue_job(job_with_priority(9)).await;
        let job = f.claim_job().await;
        assert_eq!(job.id, id);
        let why = format!("{end:?}");
        let answer = assert_notifies(&f, &why, f.finish_job(&job, end)).await;
        assert!(matches!(answer, JobFinished::Queued { .. }));
    }
    f.claim_jobs(10).await;
    f.advance(15);
    let swept = assert_notifies(&f, "a sweep", f.requeue_expired_jobs()).await;
    assert!(!swept.is_empty());
}

/// Under a limit, freed capacity notifies; so does a raised limit and a resumed queue.
pub async fn freed_capacity_notifies(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    f.enqueue_jobs(5).await;
    let job = f.claim_job().await;
    assert_notifies(&f, "an end under a limit", f.finish_job(&job, completed())).await;
    let job = f.claim_job().await;
    let end = f.finish_job(&job, failed(RetryMode::Never));
    assert_notifies(&f, "a failure under a limit", end).await;
    f.claim_job().await;
    assert_notifies(&f, "a raised limit", f.set_queue_limit(Some(2))).await;
    assert_notifies(&f, "no limit", f.set_queue_limit(None)).await;
    let pause = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    f.set_queue(pause(true)).await;
    assert_notifies(&f, "the end of a pause", f.set_queue(pause(false))).await;
}

/// The same holds for the global limit.
pub async fn freed_global_capacity_notifies(f: Fixture) {
    ok(f.store
        .job_limit_set(Some(1), &leasehold_store::Actor::Local)
        .await);
    f.enqueue_jobs(5).await;
    let job = f.claim_job().await;
    assert_notifies(
        &f,
        "an end under the limit",
        f.finish_job(&job, completed()),
    )
    .await;
    f.claim_job().await;
    let raised = assert_notifies(
        &f,
        "a raised limit",
        f.store
            .job_limit_set(Some(2), &leasehold_store::Actor::Local),
    )
    .await;
    ok(raised);
    let gone = assert_notifies(
        &f,
        "no limit",
        f.store.job_limit_set(None, &leasehold_store::Actor::Local),
    )
    .await;
    ok(gone);
}

/// A notification before the wait is not lost, and several collapse into one.
pub async fn notification_before_the_wait_is_not_lost(f: Fixture) {
    let mut subscription = f.store.subscribe_jobs();
    arm(&f, &mut subscription).await;
    for _ in 0..20 {
        f.enqueue_jobs(1).await;
    }
    assert!(
        timeout(NOTIFY_TIMEOUT, subscription.changed())
            .await
            .is_ok()
    );
    arm(&f, &mut subscription).await;
}

/// Every subscriber is notified.
pub async fn every_subscriber_is_notified(f: Fixture) {
    let mut subscriptions: Vec<_> = (0..4).map(|_| f.store.subscribe_jobs()).collect();
    for subscription in &mut subscriptions {
        arm(&f, subscription).await;
    }
    assert!(ok(f.store.job_notification_arm().await));
    f.enqueue_jobs(1).await;
    for subscription in &mut subscriptions {
        assert!(
            timeout(NOTIFY_TIMEOUT, subscription.changed())
                .await
                .is_ok()
        );
    }
}

/// Operations that make no job available do not notify: claiming, renewing, reporting progress, reading, pruning, and calls that change nothing.
pub async fn other_operations_do_not_notify(f: Fixture) {
    f.enqueue_completed_job().await;
    f.enqueue_jobs(3).await;
    let mut subscription = f.store.subscribe_jobs();
    arm(&f, &mut subscription).await;
    let jobs = f.claim_jobs(2).await;
    f.renew_jobs(WORKER, &job_refs(&jobs)).await;
    let progress = JsonText::default();
    assert!(ok(f
        .store
        .job_progress(WORKER, jobs[0].claim(), &progress)
        .await));
    let by_other_worker = f
        .finish_job_as("worker-2", jobs[0].claim(), JobEnd::Returned)
        .await;
    assert_eq!(by_other_worker, JobFinished::LeaseLost);
    f.job_counts().await;
    ok(f.store
        .job_list(&JobFilter::default(), Page::first(10))
        .await);
    assert_eq!(f.requeue_expired_jobs().await, []);
    f.advance(1);
    let prune = JobPrune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    ok(f.store.job_prune(&prune).await);
    assert!(is_quiet(&mut subscription).await);
}
