//! What a store promises about expired leases: taken back by a sweep and by claims, once, and counted as attempts.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{
    QUEUE, WORKER, completed, job_claim, job_ids, job_refs, new_job, tried, urgent,
};
use leasehold_core::job::{JobClaim, JobFinished};
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{ExpiredJob, NewJob};
use leasehold_store::queue::QueueChange;
use std::collections::BTreeSet;
use std::time::Duration;

/// A sweep queues what has expired again at once, and says what it was.
pub async fn a_sweep_queues_it_again_at_once(f: Fixture) {
    let job = f.taken(new_job()).await;
    f.clock.advance(LEASE - Duration::from_micros(1));
    assert_eq!(f.sweep().await, []);
    f.clock.advance(Duration::from_micros(1));
    let expected = ExpiredJob {
        claim: job.claim(),
        queue: QUEUE.into(),
        worker: WORKER.into(),
        status: JobStatus::Queued,
    };
    assert_eq!(f.sweep().await, [expected]);
    let kept = f.job(job.id).await;
    assert_eq!((kept.status, kept.run_at), (JobStatus::Queued, f.now()));
    assert_eq!((kept.claimed_by, kept.claimed_at), (None, None));
    assert_eq!(kept.lease_expires_at, None);
    assert_eq!((kept.attempts, kept.token), (1, job.token));
    let error = format!("the lease of {WORKER} expired");
    assert_eq!(kept.last_error, Some(error.clone()));
    let again = f.take_as("worker-2", 1).await.remove(0);
    assert_eq!((again.id, again.attempt), (job.id, 2));
    assert_eq!(again.last_error, Some(error));
    assert!(again.token > job.token);
}

/// A lease that runs out on the last attempt is the end: a job that kills its workers ends too.
pub async fn on_the_last_attempt_it_fails(f: Fixture) {
    let id = f.put_one(tried(2)).await;
    f.take_one().await;
    f.advance(15);
    let second = f.take_as("worker-2", 1).await.remove(0);
    assert_eq!((second.id, second.attempt), (id, 2));
    f.advance(15);
    let expired = f.sweep().await;
    assert_eq!(expired.len(), 1);
    assert_eq!(expired[0].status, JobStatus::Failed);
    assert_eq!(expired[0].worker, "worker-2");
    let kept = f.job(id).await;
    assert_eq!((kept.status, kept.attempts), (JobStatus::Failed, 2));
    assert_eq!(kept.finished_at, Some(f.now()));
    assert_eq!(
        kept.last_error.as_deref(),
        Some("the lease of worker-2 expired")
    );
    assert_eq!((kept.claimed_by, kept.lease_expires_at), (None, None));
    assert_eq!(f.take(5).await, []);
    assert_eq!(f.sweep().await, []);
}

/// A claim that would bring fewer than asked takes expired leases back itself.
pub async fn a_claim_takes_it_back_itself(f: Fixture) {
    let first = f.put(3).await;
    f.take(3).await;
    f.advance(15);
    f.put_one(tried(1)).await;
    let claimed = f.take_as("worker-2", 10).await;
    assert_eq!(claimed.len(), 4);
    assert_eq!(job_ids(&claimed)[..3], first);
    assert_eq!(f.sweep().await, []);
}

/// A claim takes back what has expired on its last attempt too, as failed.
pub async fn a_claim_fails_what_is_exhausted(f: Fixture) {
    let job = f.taken(tried(1)).await;
    f.advance(15);
    assert_eq!(f.take(1).await, []);
    assert_eq!(f.job(job.id).await.status, JobStatus::Failed);
    assert_eq!(f.sweep().await, []);
}

/// At most its limit; asked again, a sweep goes on until nothing is left, and then finds nothing.
pub async fn takes_at_most_its_limit_and_is_idempotent(f: Fixture) {
    let ids: BTreeSet<JobId> = f.put(150).await.into_iter().collect();
    f.take(100).await;
    f.take_as("worker-2", 50).await;
    f.advance(15);
    let mut swept = Vec::new();
    for expected in [40, 40, 40, 30, 0, 0] {
        let expired = ok(f.store.job_requeue_expired(40).await);
        assert_eq!(expired.len(), expected);
        swept.extend(expired.iter().map(|e| e.claim.job));
    }
    assert_eq!(swept.len(), 150);
    assert_eq!(swept.into_iter().collect::<BTreeSet<_>>(), ids);
    assert_eq!(f.job_counts().await.ready, 150);
}

/// A sweep asked for everything ends.
pub async fn a_sweep_of_everything_ends(f: Fixture) {
    f.put(300).await;
    f.take(300).await;
    f.advance(15);
    let mut swept = 0;
    loop {
        let n = ok(f.store.job_requeue_expired(u32::MAX).await).len();
        if n == 0 {
            break;
        }
        swept += n;
    }
    assert_eq!(swept, 300);
}

/// Of jobs claimed together, those that ended, were renewed or given back are not taken back with the rest.
pub async fn takes_only_what_has_expired(f: Fixture) {
    let ids = f.put(6).await;
    let jobs = f.take(6).await;
    f.end(&jobs[0], completed()).await;
    f.end(&jobs[1], leasehold_core::job::JobEnd::GivenBack)
        .await;
    f.advance(10);
    f.keep(WORKER, &job_refs(&jobs[2..4])).await;
    f.advance(5);
    let expired: Vec<JobId> = f.sweep().await.iter().map(|e| e.claim.job).collect();
    assert_eq!(expired, ids[4..]);
    let counts = f.job_counts().await;
    assert_eq!((counts.ready, counts.running, counts.completed), (3, 2, 1));
    assert_eq!(f.keep(WORKER, &job_refs(&jobs)).await, ids[2..4]);
    f.advance(15);
    let expired: Vec<JobId> = f.sweep().await.iter().map(|e| e.claim.job).collect();
    assert_eq!(expired, ids[2..4]);
}

/// Leases of one claim that were renewed to different ends expire one by one.
pub async fn leases_of_one_claim_expire_one_by_one(f: Fixture) {
    let ids = f.put(5).await;
    let jobs = f.take(5).await;
    for (n, job) in jobs.iter().enumerate() {
        let lease = Duration::from_secs(10 * (n as u64 + 1));
        f.keep_for(WORKER, &[job.claim()], lease).await;
    }
    for (n, id) in ids.iter().enumerate() {
        f.advance(9);
        assert_eq!(f.sweep().await, []);
        assert_eq!(f.keep_for(WORKER, &job_refs(&jobs[..n]), LEASE).await, []);
        f.advance(1);
        let expired = f.sweep().await;
        assert_eq!(expired.len(), 1, "{n}");
        assert_eq!(expired[0].claim.job, *id);
    }
    assert_eq!(f.job_counts().await.ready, 5);
}

/// A job that was taken back keeps its place in line by priority and age.
pub async fn what_was_taken_back_keeps_its_place(f: Fixture) {
    let low = f.put_one(new_job()).await;
    let high = f.put_one(urgent(5)).await;
    f.take(2).await;
    f.advance(15);
    let younger = f.put_all(&[urgent(5), new_job()]).await;
    assert_eq!(f.sweep().await.len(), 2);
    let line = job_ids(&f.take(10).await);
    assert_eq!(line, [high, younger[0], low, younger[1]]);
}

/// A sweep takes back of every queue, a paused one included; a claim of another queue leaves them alone or takes them back, but never takes them.
pub async fn every_queue_is_swept(f: Fixture) {
    let other = NewJob {
        queue: "other".into(),
        ..new_job()
    };
    let there = f.put_one(other).await;
    f.take_from("other", 1).await;
    let here = f.taken(new_job()).await;
    let paused = QueueChange {
        paused: Some(true),
        ..QueueChange::default()
    };
    ok(f.store.queue_update("other", &paused).await);
    f.advance(15);
    assert_eq!(job_ids(&f.take(5).await), [here.id]);
    f.advance(15);
    let expired: BTreeSet<JobId> = f.sweep().await.iter().map(|e| e.claim.job).collect();
    assert!(expired.contains(&here.id));
    assert_eq!(f.job(there).await.status, JobStatus::Queued);
}

/// Many sweeps and claims at once take each expired lease back once.
pub async fn from_many_places_at_once_takes_each_back_once(f: Fixture) {
    let ids: BTreeSet<JobId> = f.put(120).await.into_iter().collect();
    for n in 0..4 {
        f.take_as(&format!("dead-{n}"), 30).await;
    }
    f.advance(15);
    let sweeps = (0..8).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move {
            let mut swept = Vec::new();
            loop {
                let expired = ok(store.job_requeue_expired(7).await);
                if expired.is_empty() {
                    return swept;
                }
                swept.extend(expired.into_iter().map(|e| e.claim.job));
            }
        })
    });
    let claims = (0..4).map(|n| {
        let store = f.store.clone();
        let claim = JobClaim {
            lease: Some(Duration::from_secs(60)),
            ..job_claim(&format!("alive-{n}"), 200)
        };
        tokio::spawn(async move { job_ids(&ok(store.job_claim(&claim).await).jobs) })
    });
    let (sweeps, claims): (Vec<_>, Vec<_>) = (sweeps.collect(), claims.collect());
    let mut swept = Vec::new();
    for sweep in sweeps {
        swept.extend(sweep.await.expect("no sweep panicked"));
    }
    let mut claimed = Vec::new();
    for claim in claims {
        claimed.extend(claim.await.expect("no claim panicked"));
    }
    let distinct: BTreeSet<JobId> = swept.iter().copied().collect();
    assert_eq!(distinct.len(), swept.len(), "none is taken back twice");
    claimed.extend(job_ids(&f.take_as("last", 500).await));
    assert_eq!(claimed.len(), 120, "each is claimed once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), ids);
    for job in ids {
        assert_eq!(f.job(job).await.attempts, 2);
    }
}

/// Who was slow and who took over cannot both end a job: exactly one finish counts.
pub async fn the_slow_worker_cannot_end_what_another_took_over(f: Fixture) {
    let slow = f.taken(new_job()).await;
    f.advance(15);
    let taken = f.take_as("worker-2", 1).await.remove(0);
    let (late, right) = tokio::join!(
        f.end(&slow, completed()),
        f.end_as("worker-2", taken.claim(), completed())
    );
    assert_eq!(
        (late, right),
        (JobFinished::LeaseLost, JobFinished::Completed)
    );
}
