//! What a store promises about deduplication keys: one job while a key holds, exact under races.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, completed, failed, keyed, new_job, tried};
use leasehold_core::JobId;
use leasehold_core::job::{Again, JobEnd};
use leasehold_store::job::{EnqueuedJob, JobCancelled, JobFilter, JobPrune, NewJob};
use leasehold_store::queue::QueueChange;
use std::collections::BTreeSet;
use std::time::Duration;

fn held_by(id: JobId) -> [EnqueuedJob; 1] {
    [EnqueuedJob { id, existing: true }]
}

/// While its job has not ended, a key without a window answers that job: queued, running, tried again.
pub async fn a_key_answers_its_job_until_that_has_ended(f: Fixture) {
    let id = f.put_one(keyed("k", None)).await;
    assert_eq!(f.job(id).await.dedup_key.as_deref(), Some("k"));
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(id));
    let job = f.take_one().await;
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(id));
    f.end(&job, failed(Again::After(Duration::from_secs(5))))
        .await;
    f.advance(1_000_000);
    assert_eq!(f.offer(&[keyed("k", Some(1))]).await, held_by(id));
    let job = f.take_one().await;
    f.end(&job, completed()).await;
    let next = f.put_one(keyed("k", None)).await;
    assert_ne!(next, id);
    assert_eq!(f.all_jobs(&JobFilter::default(), 10).await.len(), 2);
}

/// Every end frees a key without a window: failed, exhausted by an expired lease, cancelled, completed and not kept.
pub async fn every_end_frees_a_key(f: Fixture) {
    f.put_one(keyed("k", None)).await;
    let job = f.take_one().await;
    f.end(&job, failed(Again::Never)).await;
    let exhausted = NewJob {
        max_attempts: Some(1),
        ..keyed("k", None)
    };
    f.put_one(exhausted).await;
    f.take_one().await;
    f.advance(15);
    f.sweep().await;
    let cancelled = f.put_one(keyed("k", None)).await;
    let outcome = ok(f.store.job_cancel(cancelled).await);
    assert_eq!(outcome, JobCancelled::Cancelled);
    let forget = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    f.set_queue(forget).await;
    f.put_one(keyed("k", None)).await;
    let job = f.take_one().await;
    f.end(&job, completed()).await;
    f.put_one(keyed("k", None)).await;
}

/// A key with a window holds so long from the enqueue on, whatever becomes of its job, and not longer.
pub async fn a_window_holds_whatever_becomes_of_the_job(f: Fixture) {
    let id = f.put_one(keyed("k", Some(60))).await;
    let job = f.take_one().await;
    f.end(&job, completed()).await;
    assert_eq!(f.offer(&[keyed("k", Some(60))]).await, held_by(id));
    f.advance(59);
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(id));
    f.advance(1);
    let next = f.put_one(keyed("k", Some(60))).await;
    assert_ne!(next, id);
    f.advance(59);
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(next));
}

/// A key whose window has passed is taken over although its job has not ended; that job's end frees nothing then.
pub async fn a_passed_window_is_taken_over(f: Fixture) {
    let first = f.put_one(keyed("k", Some(10))).await;
    f.advance(10);
    let second = f.put_one(keyed("k", None)).await;
    assert_ne!(first, second);
    assert_eq!(f.job(second).await.dedup_key.as_deref(), Some("k"));
    let job = f.take_one().await;
    assert_eq!(job.id, first);
    f.end(&job, completed()).await;
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(second));
}

/// A window outlives its job's row: pruned or not kept, the answer is still its id.
pub async fn a_window_outlives_its_job(f: Fixture) {
    let pruned = f.put_one(keyed("pruned", Some(60))).await;
    let job = f.take_one().await;
    f.end(&job, completed()).await;
    f.advance(1);
    let all = JobPrune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 100,
    };
    assert_eq!(ok(f.store.job_prune(&all).await).jobs, 1);
    let forget = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    f.set_queue(forget).await;
    let forgotten = f.put_one(keyed("forgotten", Some(60))).await;
    let job = f.take_one().await;
    f.end(&job, completed()).await;
    for (key, id) in [("pruned", pruned), ("forgotten", forgotten)] {
        assert_eq!(ok(f.store.job_get(id).await), None);
        assert_eq!(f.offer(&[keyed(key, None)]).await, held_by(id));
    }
    f.advance(60);
    f.put_all(&[keyed("pruned", None), keyed("forgotten", None)])
        .await;
}

/// Of equal keys in one call the first is put in, and the others are answered with it.
pub async fn of_equal_keys_in_one_call_the_first_is_put_in(f: Fixture) {
    let held = f.put_one(keyed("held", None)).await;
    let new = [
        keyed("a", None),
        new_job(),
        keyed("held", None),
        keyed("a", Some(5)),
        tried(3),
        keyed("b", None),
        keyed("a", None),
    ];
    let answers = f.offer(&new).await;
    let existing: Vec<bool> = answers.iter().map(|a| a.existing).collect();
    assert_eq!(existing, [false, false, true, true, false, false, true]);
    assert_eq!(answers[2].id, held);
    assert_eq!(
        (answers[3].id, answers[6].id),
        (answers[0].id, answers[0].id)
    );
    let ids: BTreeSet<JobId> = answers.iter().map(|a| a.id).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(f.job_counts().await.ready, 5);
    f.advance(5);
    assert_eq!(f.offer(&[keyed("a", None)]).await, held_by(answers[0].id));
}

/// A key is its queue's own.
pub async fn a_key_is_its_queues_own(f: Fixture) {
    let other = NewJob {
        queue: "other".into(),
        ..keyed("k", None)
    };
    let ids = f.put_all(&[keyed("k", None), other.clone()]).await;
    assert_eq!(f.offer(&[other]).await, held_by(ids[1]));
    assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(ids[0]));
    assert_eq!(f.job(ids[0]).await.queue, QUEUE);
}

/// Keys are compared to the letter.
pub async fn keys_are_compared_to_the_letter(f: Fixture) {
    let keys = ["k", "K", "k ", "é", "e\u{301}"];
    f.put_all(&keys.map(|key| keyed(key, None))).await;
}

/// A job with a key is a job like any other: given back, snoozed and claimed again it keeps its key.
pub async fn a_key_is_kept_through_the_queue(f: Fixture) {
    let id = f.put_one(keyed("k", None)).await;
    for end in [JobEnd::GivenBack, JobEnd::Snoozed(Duration::ZERO)] {
        let job = f.take_one().await;
        f.end(&job, end).await;
        assert_eq!(f.job(id).await.dedup_key.as_deref(), Some("k"));
        assert_eq!(f.offer(&[keyed("k", None)]).await, held_by(id));
    }
}

/// Many callers at once with one key make one job, and all are answered with it.
pub async fn a_hundred_at_once_with_one_key_make_one_job(f: Fixture) {
    for round in 0..3 {
        let key = format!("key-{round}");
        let calls = (0..100).map(|_| {
            let (store, new) = (f.store.clone(), [keyed(&key, None)]);
            tokio::spawn(async move { ok(store.job_enqueue(&new).await)[0] })
        });
        let mut answers = Vec::new();
        for call in futures::future::join_all(calls).await {
            answers.push(call.expect("no call panicked"));
        }
        let ids: BTreeSet<JobId> = answers.iter().map(|a| a.id).collect();
        assert_eq!(ids.len(), 1);
        let new = answers.iter().filter(|a| !a.existing);
        assert_eq!(new.count(), 1);
    }
    assert_eq!(f.job_counts().await.ready, 3);
}

/// Calls with the same keys in opposite orders do not wait for each other for ever.
pub async fn keys_in_opposite_orders_do_not_deadlock(f: Fixture) {
    let calls = (0..24).map(|n| {
        let store = f.store.clone();
        let mut new: Vec<NewJob> = (0..20).map(|k| keyed(&format!("k{k}"), None)).collect();
        for job in new.iter_mut().step_by(2) {
            job.queue = "other".into();
        }
        match n % 3 {
            0 => new.reverse(),
            1 => new.rotate_left(n % 20),
            _ => {}
        }
        tokio::spawn(async move {
            let answers = ok(store.job_enqueue(&new).await);
            answers.into_iter().map(|a| a.id).collect::<BTreeSet<_>>()
        })
    });
    let mut all: BTreeSet<JobId> = BTreeSet::new();
    for call in futures::future::join_all(calls).await {
        let ids = call.expect("no call panicked");
        assert_eq!(ids.len(), 20);
        all.extend(ids);
    }
    assert_eq!(all.len(), 20);
}

/// While a key's job ends, repeated enqueues make a new job or answer the old, and never two that live.
pub async fn an_enqueue_that_races_the_end_makes_at_most_one(f: Fixture) {
    for round in 0..10 {
        let key = format!("k{round}");
        let first = f.put_one(keyed(&key, None)).await;
        let job = f.take_one().await;
        let calls = (0..8).map(|_| {
            let (store, new) = (f.store.clone(), [keyed(&key, None)]);
            tokio::spawn(async move { ok(store.job_enqueue(&new).await)[0] })
        });
        let calls: Vec<_> = calls.collect();
        f.end(&job, completed()).await;
        let mut new = BTreeSet::new();
        for call in calls {
            let answer = call.await.expect("no call panicked");
            if answer.id != first {
                new.insert(answer.id);
            }
        }
        assert!(new.len() <= 1, "{new:?}");
        while let Some(job) = f.take(1).await.pop() {
            f.end(&job, completed()).await;
        }
    }
}
