//! What a store promises about the overview of queues: what runs and what waits now, counted as far as asked, the busiest first.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, new_job, urgent};
use leasehold_core::job::{Again, JobEnd};
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

/// A store without a queue has an overview of nothing.
pub async fn of_nothing_is_empty(f: Fixture) {
    assert_eq!(f.queues(10, 10).await, []);
}

/// A queue is shown with its settings, what workers have of it, and what they could have now; its pause does not change that.
pub async fn says_what_runs_and_what_waits(f: Fixture) {
    let change = QueueChange {
        limit: Some(Some(7)),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    f.put(5).await;
    f.take(2).await;
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

/// What waits is counted as far as asked, and whether there is more is said.
pub async fn counts_what_waits_as_far_as_asked(f: Fixture) {
    f.put(5).await;
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

/// A job waits when its time has come, whatever became of it before: never claimed, given back, tried again, snoozed, of any priority. One that is for
/// later or has ended does not.
pub async fn counts_what_waits_in_every_place(f: Fixture) {
    f.put(6).await;
    let jobs = f.take(5).await;
    f.end(&jobs[0], JobEnd::Snoozed(Duration::from_secs(10)))
        .await;
    f.end(&jobs[1], failed(Again::After(Duration::from_secs(20))))
        .await;
    f.end(&jobs[2], completed()).await;
    f.end(&jobs[3], failed(Again::Never)).await;
    f.put_all(&[urgent(3), urgent(-3)]).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(10)),
        ..new_job()
    };
    f.put_one(later).await;
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
    f.sweep().await;
    assert_eq!(seen().await, (0, 7));
    for up_to in 0..7 {
        let shown = f.queues(1, up_to).await.remove(0);
        assert_eq!((shown.waiting, shown.more_waiting), (up_to.into(), true));
    }
}

/// Queues with the most running come first, then by name, and as many as are asked for.
pub async fn shows_the_busiest_first_and_no_more_than_asked(f: Fixture) {
    for queue in ["d", "b", "c", QUEUE, "a"] {
        f.put_all(&vec![job_of(queue); 3]).await;
    }
    f.take_from("c", 1).await;
    f.take_from(QUEUE, 2).await;
    let names = async |limit| -> Vec<String> {
        let shown = f.queues(limit, 10).await;
        shown.into_iter().map(|one| one.queue.name).collect()
    };
    assert_eq!(names(10).await, [QUEUE, "c", "a", "b", "d"]);
    assert_eq!(names(3).await, [QUEUE, "c", "a"]);
    assert_eq!(names(0).await, [""; 0]);
}
