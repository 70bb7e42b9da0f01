//! Queues: created on first use, updated in parts, listed by name, counted exactly.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, new_job};
use leasehold_core::job::{JobEnd, JobRetry, RetryMode};
use leasehold_core::queue::QueueSettings;
use leasehold_core::retry::Backoff;
use leasehold_store::Page;
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::{JobCounts, Queue, QueueChange};
use std::time::Duration;

/// An update of every setting.
fn everything() -> QueueChange {
    QueueChange {
        limit: Some(Some(7)),
        group_limit: Some(Some(5)),
        paused: Some(true),
        keep_completed: Some(false),
        lease: Some(Duration::from_millis(1_500)),
        retry: Some(JobRetry {
            max_attempts: 3,
            backoff: Backoff {
                base: Duration::from_millis(250),
                factor: 1.5,
                max: Duration::from_secs(90),
                jitter: 0.35,
            },
        }),
        timeout: Some(Some(Duration::from_millis(2_750))),
    }
}

/// An unknown queue is none, has no jobs and yields none.
pub async fn unknown_queue_is_none(f: Fixture) {
    assert_eq!(ok(f.store.queue_get(QUEUE).await), None);
    assert_eq!(ok(f.store.queue_list(&Page::first(10)).await), []);
    assert_eq!(f.job_counts().await, JobCounts::default());
    let claimed = f.claim_outcome(5).await;
    assert_eq!((claimed.jobs, claimed.at_limit), (vec![], false));
    assert_eq!(claimed.next_due_in, None);
}

/// The first job creates its queue with default settings.
pub async fn first_job_creates_the_queue(f: Fixture) {
    f.enqueue_jobs(1).await;
    let made = Queue {
        name: QUEUE.into(),
        settings: QueueSettings::default(),
        created_at: f.now(),
    };
    f.advance(5);
    f.enqueue_jobs(1).await;
    assert_eq!(ok(f.store.queue_get(QUEUE).await), Some(made));
}

/// Updating an unknown queue creates it; every setting is read back.
pub async fn settings_are_read_back(f: Fixture) {
    let change = everything();
    let queue = f.set_queue(change).await;
    let settings = QueueSettings {
        limit: Some(7),
        group_limit: Some(5),
        paused: true,
        keep_completed: false,
        lease: Duration::from_millis(1_500),
        retry: change.retry.expect("the retry policy is set"),
        timeout: Some(Duration::from_millis(2_750)),
    };
    assert_eq!((queue.name.as_str(), queue.settings), (QUEUE, settings));
    assert_eq!(queue.created_at, f.now());
    assert_eq!(ok(f.store.queue_get(QUEUE).await), Some(queue));
}

/// An update changes only the given fields; limit and timeout can be removed.
pub async fn update_changes_only_the_given_fields(f: Fixture) {
    let before = f.set_queue(everything()).await;
    f.advance(5);
    assert_eq!(f.set_queue(QueueChange::default()).await, before);
    let change = QueueChange {
        limit: Some(None),
        group_limit: Some(None),
        timeout: Some(None),
        ..QueueChange::default()
    };
    let after = f.set_queue(change).await;
    let expected = QueueSettings {
        limit: None,
        group_limit: None,
        timeout: None,
        ..before.settings
    };
    assert_eq!(after.settings, expected);
    assert_eq!(after.created_at, before.created_at);
    let zero = QueueChange {
        limit: Some(Some(0)),
        group_limit: Some(Some(0)),
        ..QueueChange::default()
    };
    let settings = f.set_queue(zero).await.settings;
    assert_eq!((settings.limit, settings.group_limit), (Some(0), Some(0)));
}

/// The list is ordered by name, in pages without gaps or repeats.
pub async fn list_is_ordered_by_name(f: Fixture) {
    for name in ["c", "a", "e", "b", "d"] {
        ok(f.store
            .queue_update(
                name,
                &QueueChange::default(),
                &leasehold_store::Actor::Local,
            )
            .await);
    }
    let mut names = Vec::new();
    let mut page = Page::first(2);
    loop {
        let queues = ok(f.store.queue_list(&page).await);
        let Some(last) = queues.last() else { break };
        assert!(queues.len() <= 2);
        page = Page::after(last.name.clone(), 2);
        names.extend(queues.into_iter().map(|queue| queue.name));
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

/// Jobs, settings and pauses of one queue do not affect another.
pub async fn queues_are_independent(f: Fixture) {
    let other = f.enqueue_job(NewJob::new("other", "send", Default::default()));
    let other = other.await;
    let own = f.enqueue_jobs(1).await[0];
    let paused = QueueChange {
        paused: Some(true),
        limit: Some(Some(0)),
        ..QueueChange::default()
    };
    ok(f.store
        .queue_update("other", &paused, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(f.claim_job().await.id, own);
    assert_eq!(f.claim_jobs(5).await, []);
    assert_eq!(f.claim_jobs_from("other", 5).await.jobs, []);
    assert_eq!(f.job(other).await.queue, "other");
}

/// Each job is counted under its status, and due times follow the clock.
pub async fn counts_match_job_status(f: Fixture) {
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(10)),
        ..new_job()
    };
    f.enqueue_new_jobs(&vec![later; 2]).await;
    f.enqueue_jobs(6).await;
    let jobs = f.claim_jobs(4).await;
    f.finish_job(&jobs[0], completed()).await;
    f.finish_job(&jobs[1], failed(RetryMode::Never)).await;
    f.finish_job(&jobs[2], JobEnd::Snoozed(Duration::from_secs(20)))
        .await;
    let counts = JobCounts {
        ready: 2,
        scheduled: 3,
        running: 1,
        completed: 1,
        failed: 1,
    };
    assert_eq!(f.job_counts().await, counts);
    f.advance(10);
    let counts = JobCounts {
        ready: 4,
        scheduled: 1,
        ..counts
    };
    assert_eq!(f.job_counts().await, counts);
    f.advance(10);
    assert_eq!(f.job_counts().await.running, 1);
    assert_eq!(f.job_counts().await.ready, 5);
}

/// A paused queue yields nothing, reports neither limit nor due time, and accepts jobs; running jobs continue.
pub async fn paused_queue_yields_nothing(f: Fixture) {
    let running = f.enqueue_claimed_job(new_job()).await;
    f.enqueue_jobs(3).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(10)),
        ..new_job()
    };
    f.enqueue_job(later).await;
    let pause = |paused| QueueChange {
        paused: Some(paused),
        limit: Some(Some(2)),
        ..QueueChange::default()
    };
    f.set_queue(pause(true)).await;
    let none = f.claim_outcome(5).await;
    assert_eq!(
        (none.jobs, none.at_limit, none.next_due_in),
        (vec![], false, None)
    );
    f.enqueue_jobs(1).await;
    assert_eq!(
        f.renew_jobs(crate::job_factory::WORKER, &[running.claim()])
            .await,
        [running.id]
    );
    f.finish_job(&running, completed()).await;
    assert_eq!(f.claim_jobs(5).await, []);
    f.set_queue(pause(false)).await;
    assert_eq!(f.claim_jobs(5).await.len(), 2);
}

/// The current settings of a queue apply to queued jobs without their own options.
pub async fn current_settings_apply_to_queued_jobs(f: Fixture) {
    let ids = f.enqueue_jobs(2).await;
    let change = everything();
    let resumed = QueueChange {
        paused: Some(false),
        ..change
    };
    f.set_queue(resumed).await;
    let job = f.job(ids[1]).await;
    assert_eq!(Some(job.retry), change.retry);
    assert_eq!(Some(job.timeout), change.timeout);
    let claim = leasehold_core::job::JobClaim {
        lease: None,
        ..crate::job_factory::job_claim("w", 1)
    };
    let claimed = ok(f.store.job_claim(&claim).await).jobs.remove(0);
    assert_eq!(Some(claimed.retry), change.retry);
    assert_eq!(Some(claimed.timeout), change.timeout);
    assert_eq!(claimed.lease, Duration::from_millis(1_500));
    assert_eq!(claimed.lease_expires_at, f.now() + claimed.lease);
}

/// The bytes of open jobs count fresh, scheduled, retried and running jobs of the given queues, until they end.
pub async fn open_bytes_count_jobs_until_they_end(f: Fixture) {
    use leasehold_core::JsonText;
    use leasehold_core::limits::JOB_OVERHEAD_BYTES;

    let payload = JsonText::from(&serde_json::json!("x".repeat(998)));
    let new = |queue: &str| NewJob::new(queue, "kind", payload.clone());
    let scheduled = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new(QUEUE)
    };
    let jobs = [new(QUEUE), new(QUEUE), scheduled, new("another")];
    ok(f.store.job_enqueue(&jobs).await);
    // A store may add a few bytes of its own to a payload.
    let expect = async |queues: &[&str], jobs: u64| {
        let queues: Vec<String> = queues.iter().map(|queue| (*queue).to_owned()).collect();
        let bytes = ok(f.store.queue_open_bytes(&queues, u64::MAX).await);
        let least = jobs * (1_000 + JOB_OVERHEAD_BYTES);
        assert!(
            (least..=least + 16 * jobs).contains(&bytes),
            "{queues:?}: {bytes}"
        );
    };
    expect(&[], 0).await;
    expect(&["unknown"], 0).await;
    expect(&[QUEUE], 3).await;
    expect(&[QUEUE, "another"], 4).await;
    let claimed = f.claim_jobs(1).await;
    expect(&[QUEUE], 3).await;
    f.finish_job(&claimed[0], completed()).await;
    expect(&[QUEUE], 2).await;
    let claimed = f.claim_jobs(1).await;
    f.advance(3_600);
    ok(f.store.job_requeue_expired(10).await);
    expect(&[QUEUE], 2).await;
    for job in f.claim_jobs(10).await {
        f.finish_job(&job, completed()).await;
    }
    expect(&[QUEUE], 0).await;
    expect(&["another"], 1).await;
    drop(claimed);
}
