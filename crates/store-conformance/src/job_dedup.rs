//! Deduplication keys: one job per key, exact under races.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{
    QUEUE, completed, failed, job_with_dedup_key, job_with_max_attempts, new_job,
};
use leasehold_core::JobId;
use leasehold_core::job::{JobEnd, RetryMode};
use leasehold_store::job::{EnqueuedJob, JobCancelled, JobFilter, JobPrune, NewJob};
use leasehold_store::queue::QueueChange;
use std::collections::BTreeSet;
use std::time::Duration;

fn held_by(id: JobId) -> [EnqueuedJob; 1] {
    [EnqueuedJob { id, existing: true }]
}

/// Until its job ends, a key without a window returns that job: queued, running or retrying.
pub async fn key_without_a_window_returns_its_job_until_it_ends(f: Fixture) {
    let id = f.enqueue_job(job_with_dedup_key("k", None)).await;
    assert_eq!(f.job(id).await.dedup_key.as_deref(), Some("k"));
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(id)
    );
    let job = f.claim_job().await;
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(id)
    );
    f.finish_job(&job, failed(RetryMode::After(Duration::from_secs(5))))
        .await;
    f.advance(1_000_000);
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", Some(1))])
            .await,
        held_by(id)
    );
    let job = f.claim_job().await;
    f.finish_job(&job, completed()).await;
    let next = f.enqueue_job(job_with_dedup_key("k", None)).await;
    assert_ne!(next, id);
    assert_eq!(f.all_jobs(&JobFilter::default(), 10).await.len(), 2);
}

/// Every end releases a key without a window: failed, exhausted by an expired lease, cancelled, completed and deleted.
pub async fn every_end_releases_the_key(f: Fixture) {
    f.enqueue_job(job_with_dedup_key("k", None)).await;
    let job = f.claim_job().await;
    f.finish_job(&job, failed(RetryMode::Never)).await;
    let exhausted = NewJob {
        max_attempts: Some(1),
        ..job_with_dedup_key("k", None)
    };
    f.enqueue_job(exhausted).await;
    f.claim_job().await;
    f.advance(15);
    f.requeue_expired_jobs().await;
    let cancelled = f.enqueue_job(job_with_dedup_key("k", None)).await;
    let outcome = ok(f.store.job_cancel(cancelled).await);
    assert_eq!(outcome, JobCancelled::Cancelled);
    let forget = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    f.set_queue(forget).await;
    f.enqueue_job(job_with_dedup_key("k", None)).await;
    let job = f.claim_job().await;
    f.finish_job(&job, completed()).await;
    f.enqueue_job(job_with_dedup_key("k", None)).await;
}

/// A key with a window holds for the window from the enqueue on, regardless of its job, and not longer.
pub async fn window_holds_regardless_of_the_job(f: Fixture) {
    let id = f.enqueue_job(job_with_dedup_key("k", Some(60))).await;
    let job = f.claim_job().await;
    f.finish_job(&job, completed()).await;
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", Some(60))])
            .await,
        held_by(id)
    );
    f.advance(59);
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(id)
    );
    f.advance(1);
    let next = f.enqueue_job(job_with_dedup_key("k", Some(60))).await;
    assert_ne!(next, id);
    f.advance(59);
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(next)
    );
}

/// A key whose window has passed is taken over even if its job has not ended; that job's end then releases nothing.
pub async fn expired_window_is_taken_over(f: Fixture) {
    let first = f.enqueue_job(job_with_dedup_key("k", Some(10))).await;
    f.advance(10);
    let second = f.enqueue_job(job_with_dedup_key("k", None)).await;
    assert_ne!(first, second);
    assert_eq!(f.job(second).await.dedup_key.as_deref(), Some("k"));
    let job = f.claim_job().await;
    assert_eq!(job.id, first);
    f.finish_job(&job, completed()).await;
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(second)
    );
}

/// A window outlives its job's row: the key still returns the id of a pruned or deleted job.
pub async fn window_outlives_its_job(f: Fixture) {
    let pruned = f.enqueue_job(job_with_dedup_key("pruned", Some(60))).await;
    let job = f.claim_job().await;
    f.finish_job(&job, completed()).await;
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
    let forgotten = f
        .enqueue_job(job_with_dedup_key("forgotten", Some(60)))
        .await;
    let job = f.claim_job().await;
    f.finish_job(&job, completed()).await;
    for (key, id) in [("pruned", pruned), ("forgotten", forgotten)] {
        assert_eq!(ok(f.store.job_get(id).await), None);
        assert_eq!(
            f.try_enqueue_jobs(&[job_with_dedup_key(key, None)]).await,
            held_by(id)
        );
    }
    f.advance(60);
    f.enqueue_new_jobs(&[
        job_with_dedup_key("pruned", None),
        job_with_dedup_key("forgotten", None),
    ])
    .await;
}

/// Of equal keys in one call the first is inserted, and the others return it.
pub async fn first_of_equal_keys_in_one_call_is_inserted(f: Fixture) {
    let held = f.enqueue_job(job_with_dedup_key("held", None)).await;
    let new = [
        job_with_dedup_key("a", None),
        new_job(),
        job_with_dedup_key("held", None),
        job_with_dedup_key("a", Some(5)),
        job_with_max_attempts(3),
        job_with_dedup_key("b", None),
        job_with_dedup_key("a", None),
    ];
    let answers = f.try_enqueue_jobs(&new).await;
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
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("a", None)]).await,
        held_by(answers[0].id)
    );
}

/// A key is scoped to its queue.
pub async fn key_is_scoped_to_its_queue(f: Fixture) {
    let other = NewJob {
        queue: "other".into(),
        ..job_with_dedup_key("k", None)
    };
    let ids = f
        .enqueue_new_jobs(&[job_with_dedup_key("k", None), other.clone()])
        .await;
    assert_eq!(f.try_enqueue_jobs(&[other]).await, held_by(ids[1]));
    assert_eq!(
        f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
        held_by(ids[0])
    );
    assert_eq!(f.job(ids[0]).await.queue, QUEUE);
}

/// Keys are compared exactly.
pub async fn keys_are_compared_exactly(f: Fixture) {
    let keys = ["k", "K", "k ", "é", "e\u{301}"];
    f.enqueue_new_jobs(&keys.map(|key| job_with_dedup_key(key, None)))
        .await;
}

/// A job keeps its key when it is returned, snoozed and claimed again.
pub async fn key_survives_returns_and_snoozes(f: Fixture) {
    let id = f.enqueue_job(job_with_dedup_key("k", None)).await;
    for end in [JobEnd::Returned, JobEnd::Snoozed(Duration::ZERO)] {
        let job = f.claim_job().await;
        f.finish_job(&job, end).await;
        assert_eq!(f.job(id).await.dedup_key.as_deref(), Some("k"));
        assert_eq!(
            f.try_enqueue_jobs(&[job_with_dedup_key("k", None)]).await,
            held_by(id)
        );
    }
}

/// Concurrent enqueues with one key insert one job, and all return it.
pub async fn concurrent_enqueues_with_one_key_insert_one_job(f: Fixture) {
    for round in 0..3 {
        let key = format!("key-{round}");
        let calls = (0..100).map(|_| {
            let (store, new) = (f.store.clone(), [job_with_dedup_key(&key, None)]);
            tokio::spawn(async move { ok(store.job_enqueue(&new).await)[0] })
        });
        let mut answers = Vec::new();
        for call in futures::future::join_all(calls).await {
            answers.push(call.expect("the call did not panic"));
        }
        let ids: BTreeSet<JobId> = answers.iter().map(|a| a.id).collect();
        assert_eq!(ids.len(), 1);
        let new = answers.iter().filter(|a| !a.existing);
        assert_eq!(new.count(), 1);
    }
    assert_eq!(f.job_counts().await.ready, 3);
}

/// Calls with the same keys in opposite orders do not deadlock.
pub async fn keys_in_opposite_orders_do_not_deadlock(f: Fixture) {
    let calls = (0..24).map(|n| {
        let store = f.store.clone();
        let mut new: Vec<NewJob> = (0..20)
            .map(|k| job_with_dedup_key(&format!("k{k}"), None))
            .collect();
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
        let ids = call.expect("the call did not panic");
        assert_eq!(ids.len(), 20);
        all.extend(ids);
    }
    assert_eq!(all.len(), 20);
}

/// While a key's job ends, enqueues insert a new job or return the old one; two live jobs never have the same key.
pub async fn enqueues_that_race_the_end_insert_at_most_one_job(f: Fixture) {
    for round in 0..10 {
        let key = format!("k{round}");
        let first = f.enqueue_job(job_with_dedup_key(&key, None)).await;
        let job = f.claim_job().await;
        let calls = (0..8).map(|_| {
            let (store, new) = (f.store.clone(), [job_with_dedup_key(&key, None)]);
            tokio::spawn(async move { ok(store.job_enqueue(&new).await)[0] })
        });
        let calls: Vec<_> = calls.collect();
        f.finish_job(&job, completed()).await;
        let mut new = BTreeSet::new();
        for call in calls {
            let answer = call.await.expect("the call did not panic");
            if answer.id != first {
                new.insert(answer.id);
            }
        }
        assert!(new.len() <= 1, "{new:?}");
        while let Some(job) = f.claim_jobs(1).await.pop() {
            f.finish_job(&job, completed()).await;
        }
    }
}

/// A lookup returns the holder of each key now, and creates nothing, also no queue.
pub async fn holders_of_keys_are_looked_up(f: Fixture) {
    let id = f.enqueue_job(job_with_dedup_key("k", None)).await;
    let windowed = f.enqueue_job(job_with_dedup_key("w", Some(60))).await;
    let elsewhere = NewJob {
        queue: "elsewhere".to_owned(),
        ..job_with_dedup_key("k", None)
    };
    let looked_up = [
        job_with_dedup_key("w", None),
        new_job(),
        job_with_dedup_key("free", None),
        job_with_dedup_key("k", None),
        elsewhere,
        job_with_dedup_key("k", Some(5)),
    ];
    let before = f.dump().await;
    let holders = || async { ok(f.store.job_key_holders(&looked_up).await) };
    let expected = [Some(windowed), None, None, Some(id), None, Some(id)];
    assert_eq!(holders().await, expected);
    f.advance(60);
    let expected = [None, None, None, Some(id), None, Some(id)];
    assert_eq!(holders().await, expected);
    assert_eq!(f.dump().await, before);
    assert_eq!(ok(f.store.queue_get("elsewhere").await), None);
    assert_eq!(ok(f.store.job_key_holders(&[]).await), []);
}
