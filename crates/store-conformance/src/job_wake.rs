//! What a store promises about the bell of jobs: what a sleeping worker hears, and what does not disturb it.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, completed, failed, job_refs, new_job, urgent};
use leasehold_core::JsonText;
use leasehold_core::job::{Again, JobEnd, JobFinished};
use leasehold_store::Page;
use leasehold_store::job::{JobFilter, JobPrune, JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A ring may travel through a database.
const SOON: Duration = Duration::from_secs(10);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(150);

async fn is_silent(bell: &mut watch::Receiver<u64>) -> bool {
    timeout(SILENCE, bell.changed()).await.is_err()
}

/// Hears out what was rung before, until the store promises to ring and all is quiet.
async fn fall_asleep(f: &Fixture, bell: &mut watch::Receiver<u64>) {
    for _ in 0..100 {
        if ok(f.store.job_arm().await) && is_silent(bell).await {
            return;
        }
    }
    panic!("it never gets quiet");
}

/// Falls asleep, has it done, and must be woken.
pub(crate) async fn assert_wakes<T>(f: &Fixture, why: &str, doing: impl Future<Output = T>) -> T {
    let mut bell = f.store.job_bell();
    fall_asleep(f, &mut bell).await;
    let done = doing.await;
    let rung = timeout(SOON, bell.changed()).await;
    assert!(matches!(rung, Ok(Ok(()))), "{why} should ring");
    done
}

/// Whatever puts a job into a queue rings, also one that waits for its time: a sleeper may mean to sleep longer.
pub async fn a_new_job_rings(f: Fixture) {
    assert_wakes(&f, "a job", f.put(1)).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(60)),
        ..new_job()
    };
    assert_wakes(&f, "a job for later", f.put_one(later)).await;
    assert_wakes(&f, "many jobs", f.put(200)).await;
    assert_wakes(&f, "an urgent job", f.put_one(urgent(9))).await;
}

/// Whatever puts a job back rings: tried again, snoozed, given back, taken back.
pub async fn a_job_that_comes_back_rings(f: Fixture) {
    for end in [
        failed(Again::Policy),
        failed(Again::After(Duration::from_secs(5))),
        JobEnd::Snoozed(Duration::from_secs(5)),
        JobEnd::GivenBack,
    ] {
        let id = f.put_one(urgent(9)).await;
        let job = f.take_one().await;
        assert_eq!(job.id, id);
        let why = format!("{end:?}");
        let answer = assert_wakes(&f, &why, f.end(&job, end)).await;
        assert!(matches!(answer, JobFinished::Queued { .. }));
    }
    f.take(10).await;
    f.advance(15);
    let swept = assert_wakes(&f, "a sweep", f.sweep()).await;
    assert!(!swept.is_empty());
}

/// Under a limit whatever makes room rings; so does a raised limit, and the end of a pause.
pub async fn room_rings(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    f.put(5).await;
    let job = f.take_one().await;
    assert_wakes(&f, "an end under a limit", f.end(&job, completed())).await;
    let job = f.take_one().await;
    let end = f.end(&job, failed(Again::Never));
    assert_wakes(&f, "a failure under a limit", end).await;
    f.take_one().await;
    assert_wakes(&f, "a raised limit", f.set_queue_limit(Some(2))).await;
    assert_wakes(&f, "no limit", f.set_queue_limit(None)).await;
    let pause = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    f.set_queue(pause(true)).await;
    assert_wakes(&f, "the end of a pause", f.set_queue(pause(false))).await;
}

/// The same for the limit of all.
pub async fn room_under_the_limit_of_all_rings(f: Fixture) {
    ok(f.store.job_limit_set(Some(1)).await);
    f.put(5).await;
    let job = f.take_one().await;
    assert_wakes(&f, "an end under the limit", f.end(&job, completed())).await;
    f.take_one().await;
    let raised = assert_wakes(&f, "a raised limit", f.store.job_limit_set(Some(2))).await;
    ok(raised);
    let gone = assert_wakes(&f, "no limit", f.store.job_limit_set(None)).await;
    ok(gone);
}

/// What was rung while nobody looked at the bell is not lost, and many rings are one.
pub async fn a_ring_before_the_wait_is_not_lost(f: Fixture) {
    let mut bell = f.store.job_bell();
    fall_asleep(&f, &mut bell).await;
    for _ in 0..20 {
        f.put(1).await;
    }
    assert!(timeout(SOON, bell.changed()).await.is_ok());
    fall_asleep(&f, &mut bell).await;
}

/// Everyone who listens hears it.
pub async fn everyone_who_listens_hears_it(f: Fixture) {
    let mut bells: Vec<_> = (0..4).map(|_| f.store.job_bell()).collect();
    for bell in &mut bells {
        fall_asleep(&f, bell).await;
    }
    assert!(ok(f.store.job_arm().await));
    f.put(1).await;
    for bell in &mut bells {
        assert!(timeout(SOON, bell.changed()).await.is_ok());
    }
}

/// What gives nobody a job disturbs nobody: claiming, renewing, reporting, looking, pruning, and what changed nothing.
pub async fn nothing_else_rings(f: Fixture) {
    f.job_completed().await;
    f.put(3).await;
    let mut bell = f.store.job_bell();
    fall_asleep(&f, &mut bell).await;
    let jobs = f.take(2).await;
    f.keep(WORKER, &job_refs(&jobs)).await;
    let progress = JsonText::default();
    assert!(ok(f
        .store
        .job_progress(WORKER, jobs[0].claim(), &progress)
        .await));
    let stranger = f
        .end_as("worker-2", jobs[0].claim(), JobEnd::GivenBack)
        .await;
    assert_eq!(stranger, JobFinished::LeaseLost);
    f.job_counts().await;
    ok(f.store
        .job_list(&JobFilter::default(), Page::first(10))
        .await);
    assert_eq!(f.sweep().await, []);
    f.advance(1);
    let prune = JobPrune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    ok(f.store.job_prune(&prune).await);
    assert!(is_silent(&mut bell).await);
}
