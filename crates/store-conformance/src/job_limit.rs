//! What a store promises about limits of running jobs, of a queue and of all: never exceeded by a claim, changed at any time.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{WORKER, all_end, completed, failed, job_ids, new_job, tried};
use leasehold_core::JobStatus;
use leasehold_core::job::{Again, JobEnd};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;

fn other() -> NewJob {
    NewJob {
        queue: "other".into(),
        ..new_job()
    }
}

/// A queue's limit is exact, and a claim that it cut short says so.
pub async fn a_queues_limit_is_exact(f: Fixture) {
    f.set_queue_limit(Some(5)).await;
    let ids = f.put(9).await;
    let first = f.look(3).await;
    assert_eq!((first.jobs.len(), first.at_limit), (3, false));
    let second = f.look(10).await;
    assert_eq!(
        (job_ids(&second.jobs), second.at_limit),
        (ids[3..5].to_vec(), true)
    );
    let none = f.look(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    assert_eq!(f.job_counts().await.running, 5);
}

/// Without a limit no claim says that it was at one.
pub async fn without_a_limit_there_is_no_end(f: Fixture) {
    f.put(300).await;
    let all = f.look(400).await;
    assert_eq!((all.jobs.len(), all.at_limit), (300, false));
    assert!(!f.look(1).await.at_limit);
    assert_eq!(ok(f.store.job_limit().await), None);
}

/// A limit that is not reached is not told of.
pub async fn a_limit_that_is_not_reached_is_not_told(f: Fixture) {
    f.set_queue_limit(Some(5)).await;
    ok(f.store.job_limit_set(Some(6)).await);
    f.put(2).await;
    let all = f.look(4).await;
    assert_eq!((all.jobs.len(), all.at_limit), (2, false));
    assert!(!f.look(2).await.at_limit);
}

/// Whatever ends a claim makes room: completed, failed, tried again, snoozed, given back.
pub async fn every_end_makes_room(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    ok(f.store.job_limit_set(Some(1)).await);
    for end in [
        completed(),
        failed(Again::Never),
        failed(Again::Policy),
        JobEnd::Snoozed(Duration::from_secs(60)),
        JobEnd::GivenBack,
    ] {
        f.put(1).await;
        let job = f.take_one().await;
        assert_eq!(f.take(1).await, []);
        f.end(&job, end).await;
    }
    assert_eq!(f.take(10).await.len(), 1);
}

/// Room for some brings some, and ends in between make room for exactly as many.
pub async fn room_is_counted_job_by_job(f: Fixture) {
    f.set_queue_limit(Some(100)).await;
    f.put(300).await;
    let jobs = f.take(200).await;
    assert_eq!(jobs.len(), 100);
    f.end_all(WORKER, &all_end(&jobs[10..47], &completed()))
        .await;
    let more = f.look(200).await;
    assert_eq!((more.jobs.len(), more.at_limit), (37, true));
    assert_eq!(f.job_counts().await.running, 100);
}

/// A lower limit lets what runs finish, and admits nothing until fewer than it run.
pub async fn lowered_below_what_runs_it_admits_nothing(f: Fixture) {
    f.put(10).await;
    let jobs = f.take(5).await;
    f.set_queue_limit(Some(2)).await;
    for job in &jobs[..3] {
        let none = f.look(5).await;
        assert_eq!((none.jobs.len(), none.at_limit), (0, true));
        assert_eq!(f.keep(WORKER, &[job.claim()]).await, [job.id]);
        f.end(job, completed()).await;
    }
    assert_eq!(f.take(5).await, []);
    f.end(&jobs[3], completed()).await;
    assert_eq!(f.take(5).await.len(), 1);
    f.set_queue_limit(Some(4)).await;
    assert_eq!(f.take(5).await.len(), 2);
    f.set_queue_limit(None).await;
    assert_eq!(f.take(5).await.len(), 2);
}

/// A limit of nothing admits nothing.
pub async fn of_nothing_admits_nothing(f: Fixture) {
    f.put(1).await;
    f.set_queue_limit(Some(0)).await;
    let none = f.look(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    f.set_queue_limit(None).await;
    ok(f.store.job_limit_set(Some(0)).await);
    let none = f.look(1).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    ok(f.store.job_limit_set(None).await);
    assert_eq!(f.take(1).await.len(), 1);
}

/// The limit of all holds over all queues together, and is read back.
pub async fn the_limit_of_all_holds_over_queues(f: Fixture) {
    ok(f.store.job_limit_set(Some(4)).await);
    assert_eq!(ok(f.store.job_limit().await), Some(4));
    f.put(5).await;
    f.put_all(&vec![other(); 5]).await;
    assert_eq!(f.take(3).await.len(), 3);
    let there = f.take_from("other", 3).await;
    assert_eq!((there.jobs.len(), there.at_limit), (1, true));
    let here = f.look(1).await;
    assert_eq!((here.jobs.len(), here.at_limit), (0, true));
    f.end(&there.jobs[0], completed()).await;
    assert_eq!(f.take(3).await.len(), 1);
    ok(f.store.job_limit_set(Some(6)).await);
    assert_eq!(f.take_from("other", 9).await.jobs.len(), 2);
    ok(f.store.job_limit_set(None).await);
    assert_eq!(ok(f.store.job_limit().await), None);
    assert_eq!(f.take_from("other", 9).await.jobs.len(), 2);
}

/// Of two limits the one with less room counts.
pub async fn the_tighter_of_two_limits_counts(f: Fixture) {
    f.set_queue_limit(Some(3)).await;
    ok(f.store.job_limit_set(Some(5)).await);
    f.put(9).await;
    f.put_all(&vec![other(); 9]).await;
    assert_eq!(f.take(9).await.len(), 3);
    assert_eq!(f.take_from("other", 9).await.jobs.len(), 2);
    f.set_queue_limit(Some(9)).await;
    let none = f.look(9).await;
    assert_eq!((none.jobs.len(), none.at_limit), (0, true));
    ok(f.store.job_limit_set(Some(20)).await);
    assert_eq!(f.take(9).await.len(), 6);
}

/// An expired lease takes room until it is taken back, which a claim at the limit does itself.
pub async fn an_expired_lease_makes_room_for_a_claim(f: Fixture) {
    f.set_queue_limit(Some(2)).await;
    let ids = f.put(4).await;
    f.take(2).await;
    f.advance(15);
    assert_eq!(f.job_counts().await.running, 2);
    let claimed = f.take_as("worker-2", 5).await;
    assert_eq!(job_ids(&claimed), ids[..2]);
    assert_eq!(f.job_counts().await.running, 2);
}

/// What expired on its last attempt makes room too.
pub async fn an_exhausted_lease_makes_room_for_a_claim(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    let dead = f.taken(tried(1)).await;
    let next = f.put(1).await;
    f.advance(15);
    assert_eq!(job_ids(&f.take(5).await), next);
    assert_eq!(f.job(dead.id).await.status, JobStatus::Failed);
}

/// The limit of all gets the room of expired leases of other queues back, also of paused ones.
pub async fn an_expired_lease_elsewhere_makes_room_under_the_limit_of_all(f: Fixture) {
    ok(f.store.job_limit_set(Some(2)).await);
    f.put_all(&vec![other(); 2]).await;
    assert_eq!(f.take_from("other", 2).await.jobs.len(), 2);
    let paused = QueueChange {
        paused: Some(true),
        ..QueueChange::default()
    };
    ok(f.store.queue_update("other", &paused).await);
    let ids = f.put(3).await;
    assert_eq!(f.take(1).await, []);
    f.advance(15);
    assert_eq!(job_ids(&f.take(5).await), ids[..2]);
    let counts = ok(f.store.queue_counts("other").await);
    assert_eq!((counts.running, counts.ready), (0, 2));
}

/// At its limit a claim takes nothing out of its line: the order is kept for the next.
pub async fn what_the_limit_held_back_keeps_its_place(f: Fixture) {
    f.set_queue_limit(Some(1)).await;
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(1)),
        ..new_job()
    };
    let mut ids = f.put_all(&[later]).await;
    ids.extend(f.put(3).await);
    f.advance(1);
    for id in ids {
        let job = f.look(9).await.jobs.remove(0);
        assert_eq!(job.id, id);
        assert_eq!(f.take(9).await, []);
        f.end(&job, completed()).await;
    }
}
