//! The overview of queues: running and waiting jobs, counted up to a bound, the busiest first.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, job_with_priority, new_job};
use leasehold_core::job::{JobEnd, RetryMode};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::{QueueChange, QueueUse};
use std::time::Duration;

impl Fixture {
    async fn queues(&self, limit: u32, up_to: u32) -> Vec<QueueUse> {
        ok(self.store.queue_overview(limit, up_to).await)
    }
}

fn job_of(queue: &str) -> NewJob {
    NewJob {
        queue: queue.into(),
        ..new_job()
    }
}

/// A store without queues has an empty overview.
pub async fn empty_store_has_an_empty_overview(f: Fixture) {
    assert_eq!(f.queues(10, 10).await, []);
}

/// A queue is shown with its settings, its running jobs and the jobs that could be claimed now, paused or not.
pub async fn shows_running_and_waiting_jobs(f: Fixture) {
    let change = QueueChange {
        limit: Some(Some(7)),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    f.enqueue_jobs(5).await;
    f.claim_jobs(2).await;
    let pause = QueueChange {
        paused: Some(true),
        ..QueueChange::default()
    };
    let queue = f.set_queue(pause).await;
    let expected = QueueUse {
        queue,
        running: 2,
        waiting: 3,
        more_waiting: false,
    };
    assert_eq!(f.queues(10, 10).await, [expected]);
}

/// Waiting jobs are counted up to the given bound, and the overview reports whether there are more.
pub async fn waiting_jobs_are_counted_up_to_a_bound(f: Fixture) {
    f.enqueue_jobs(5).await;
    for (up_to, waiting, more) in [
        (0, 0, true),
        (4, 4, true),
        (5, 5, false),
        (10_000, 5, false),
    ] {
        let shown = f.queues(1, up_to).await.remove(0);
        assert_eq!((shown.waiting, shown.more_waiting), (waiting, more));
    }
}

/// A due job counts as waiting whatever its history: never claimed, returned, retried, snoozed, of any priority. Scheduled and ended jobs do not
/// count.
pub async fn counts_every_due_job(f: Fixture) {
    f.enqueue_jobs(6).await;
    let jobs = f.claim_jobs(5).await;
    f.finish_job(&jobs[0], JobEnd::Snoozed(Duration::from_secs(10)))
        .await;
    f.finish_job(&jobs[1], failed(RetryMode::After(Duration::from_secs(20))))
        .await;
    f.finish_job(&jobs[2], completed()).await;
    f.finish_job(&jobs[3], failed(RetryMode::Never)).await;
    f.enqueue_new_jobs(&[job_with_priority(3), job_with_priority(-3)])
        .await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(10)),
        ..new_job()
    };
    f.enqueue_job(later).await;
    let seen = async || {
        let shown = f.queues(1, 100).await.remove(0);
        let counts = f.job_counts().await;
        assert_eq!(
            (shown.running, shown.waiting),
            (counts.running, counts.ready)
        );
        (shown.running, shown.waiting)
    };
    assert_eq!(seen().await, (1, 3));
    f.advance(10);
    assert_eq!(seen().await, (1, 5));
    f.advance(10);
    f.requeue_expired_jobs().await;
    assert_eq!(seen().await, (0, 7));
    for up_to in 0..7 {
        let shown = f.queues(1, up_to).await.remove(0);
        assert_eq!((shown.waiting, shown.more_waiting), (up_to.into(), true));
    }
}

/// Queues with the most running jobs come first, then by name, up to the limit.
pub async fn shows_the_busiest_first_up_to_the_limit(f: Fixture) {
    for queue in ["d", "b", "c", QUEUE, "a"] {
        f.enqueue_new_jobs(&vec![job_of(queue); 3]).await;
    }
    f.claim_jobs_from("c", 1).await;
    f.claim_jobs_from(QUEUE, 2).await;
    let names = async |limit| -> Vec<String> {
        let shown = f.queues(limit, 10).await;
        shown.into_iter().map(|one| one.queue.name).collect()
    };
    assert_eq!(names(10).await, [QUEUE, "c", "a", "b", "d"]);
    assert_eq!(names(3).await, [QUEUE, "c", "a"]);
    assert_eq!(names(0).await, [""; 0]);
}
