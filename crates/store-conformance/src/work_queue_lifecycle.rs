//! Each rule of the work queue in the reference design (4.2.1 to 4.2.5) and each step of its processing flow (6), by number. See W1 to W10 in docs/requirements.md.

use crate::Fixture;
use crate::factory::{LEASE, known, ok};
use crate::job_factory::{
    QUEUE, WORKER, completed, failed, job_claim, job_ids, job_with_dedup_key, job_with_priority,
    new_job,
};
use leasehold_core::job::{JobClaim, JobEnd, JobEvent, JobFinished, JobRef, JobStatus, RetryMode};
use leasehold_core::lease::heartbeat_interval;
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use std::collections::BTreeSet;
use std::time::Duration;

const OTHER: &str = "worker-2";

/// Status, owner and lease end of a job.
async fn lease_of(f: &Fixture, id: JobId) -> (JobStatus, Option<String>, bool) {
    let job = f.job(id).await;
    (
        known(&job.status),
        job.claimed_by,
        job.lease_expires_at.is_some(),
    )
}

fn free(status: JobStatus) -> (JobStatus, Option<String>, bool) {
    (status, None, false)
}

fn owned(by: &str) -> (JobStatus, Option<String>, bool) {
    (JobStatus::Running, Some(by.into()), true)
}

/// Valid states are queued, running, completed and failed: a job is in one of them at every moment, and each is reached.
pub async fn rule_4_2_1_the_states_are_queued_running_completed_failed(f: Fixture) {
    let names = JobStatus::ALL.map(JobStatus::as_str);
    assert_eq!(names, ["queued", "running", "completed", "failed"]);
    f.enqueue_jobs(3).await;
    let jobs = f.claim_jobs(2).await;
    f.enqueue_jobs(1).await;
    f.finish_job(&jobs[0], completed()).await;
    f.finish_job(&jobs[1], failed(RetryMode::Never)).await;
    f.claim_jobs(1).await;
    let mut seen: Vec<JobStatus> = Vec::new();
    for job in crate::job_invariants::check(&f).await {
        seen.push(known(&job.status));
    }
    seen.sort();
    assert_eq!(seen, JobStatus::ALL);
}

/// A worker starts work only by moving a job from queued to running, and only one worker moves it.
pub async fn rule_4_2_1_work_starts_by_moving_one_job_from_queued_to_running(f: Fixture) {
    let ids = f.enqueue_jobs(2).await;
    assert_eq!(lease_of(&f, ids[0]).await, free(JobStatus::Queued));
    let job = f.claim_job().await;
    assert_eq!(job.id, ids[0]);
    assert_eq!(lease_of(&f, ids[0]).await, owned(WORKER));
    assert_eq!(lease_of(&f, ids[1]).await, free(JobStatus::Queued));
    assert_eq!(job_ids(&f.claim_jobs_as(OTHER, 5).await), [ids[1]]);
    f.finish_job(&job, completed()).await;
    assert_eq!(f.claim_jobs_as(OTHER, 5).await, []);
}

/// Running becomes completed or failed only by the worker that owns the lease.
pub async fn rule_4_2_1_only_the_lease_owner_completes_or_fails(f: Fixture) {
    for (end, status) in [
        (completed(), JobStatus::Completed),
        (failed(RetryMode::Never), JobStatus::Failed),
    ] {
        let job = f.enqueue_claimed_job(new_job()).await;
        let answer = f.finish_job_as(OTHER, job.claim(), end.clone()).await;
        assert_eq!(answer, JobFinished::LeaseLost);
        assert_eq!(lease_of(&f, job.id).await, owned(WORKER));
        assert_ne!(f.finish_job(&job, end).await, JobFinished::LeaseLost);
        assert_eq!(lease_of(&f, job.id).await, free(status));
    }
}

/// Claiming sets `claimed_by` and a lease that ends `lease_duration` from now.
pub async fn rule_4_2_2_claiming_sets_owner_and_lease_end(f: Fixture) {
    f.enqueue_jobs(1).await;
    let lease = Duration::from_secs(30);
    let claim = JobClaim {
        lease: Some(lease),
        ..job_claim(WORKER, 1)
    };
    let job = ok(f.store.job_claim(&claim).await).jobs.remove(0);
    let row = f.job(job.id).await;
    assert_eq!(row.claimed_by.as_deref(), Some(WORKER));
    assert_eq!(row.lease_expires_at, Some(f.now() + lease));
    assert_eq!(job.lease_expires_at, f.now() + lease);
}

/// A worker that renews at a third of the lease keeps it indefinitely.
pub async fn rule_4_2_2_renewing_before_expiry_keeps_the_lease(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    for _ in 0..30 {
        f.clock.advance(heartbeat_interval(LEASE));
        assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
        assert_eq!(f.claim_jobs_as(OTHER, 1).await, []);
    }
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::Completed
    );
}

/// A heartbeat is guarded by id, owner, status and token: only the owner renews.
pub async fn rule_4_2_2_heartbeat_is_guarded_by_owner_status_and_token(f: Fixture) {
    let queued = f.enqueue_job(job_with_priority(-1)).await;
    let job = f.enqueue_claimed_job(new_job()).await;
    let before = f.job(job.id).await;
    let with_token = |token| JobRef {
        token,
        ..job.claim()
    };
    assert_eq!(f.renew_jobs(OTHER, &[job.claim()]).await, []);
    assert_eq!(f.renew_jobs(WORKER, &[with_token(job.token - 1)]).await, []);
    assert_eq!(f.renew_jobs(WORKER, &[with_token(job.token + 1)]).await, []);
    let not_running = JobRef {
        job: queued,
        token: job.token,
    };
    assert_eq!(f.renew_jobs(WORKER, &[not_running]).await, []);
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
    f.finish_job(&job, completed()).await;
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
}

/// A heartbeat that renews nothing means a lost lease: the worker can no longer change the job.
pub async fn rule_4_2_2_heartbeat_that_renews_nothing_is_a_lost_lease(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    f.claim_jobs_as(OTHER, 1).await;
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
    for end in [completed(), failed(RetryMode::Policy), JobEnd::Returned] {
        assert_eq!(f.finish_job(&job, end).await, JobFinished::LeaseLost);
    }
    let report = JsonText::default();
    let reported = f.store.job_progress(WORKER, job.claim(), &report);
    assert!(!ok(reported.await));
    assert_eq!(lease_of(&f, job.id).await, owned(OTHER));
}

/// A running job whose lease has ended is expired and has no owner, even before it is requeued.
pub async fn rule_4_2_3_expired_lease_has_no_owner(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    assert_eq!(f.job(job.id).await.lease_expires_at, Some(f.now()));
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    assert_eq!(f.requeue_expired_jobs().await.len(), 1);
}

/// Requeueing moves an expired job to queued and clears owner and lease.
pub async fn rule_4_2_3_requeue_clears_owner_and_lease(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    f.requeue_expired_jobs().await;
    assert_eq!(lease_of(&f, job.id).await, free(JobStatus::Queued));
    assert_eq!(f.job(job.id).await.claimed_at, None);
}

/// Requeueing runs in a sweep and inline in a claim.
pub async fn rule_4_2_3_requeue_runs_in_a_sweep_and_in_a_claim(f: Fixture) {
    let swept = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    assert_eq!(f.requeue_expired_jobs().await[0].claim, swept.claim());
    assert_eq!(job_ids(&f.claim_jobs(1).await), [swept.id]);
    f.clock.advance(LEASE);
    assert_eq!(job_ids(&f.claim_jobs_as(OTHER, 1).await), [swept.id]);
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// Requeueing is idempotent and safe under concurrency: many sweeps requeue each expired job once, and no other.
pub async fn rule_4_2_3_requeue_is_idempotent_and_safe_under_concurrency(f: Fixture) {
    f.enqueue_jobs(40).await;
    let dead = f.claim_jobs_as("dead", 20).await;
    f.advance(10);
    let alive = f.claim_jobs(20).await;
    f.advance(5);
    let sweeps = (0..10).map(|_| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.job_requeue_expired(100).await) })
    });
    let mut swept = Vec::new();
    for sweep in futures::future::join_all(sweeps).await {
        let expired = sweep.expect("the sweep did not panic");
        swept.extend(expired.iter().map(|expired| expired.claim.job));
    }
    swept.sort_unstable();
    assert_eq!(swept, job_ids(&dead));
    assert_eq!(f.requeue_expired_jobs().await, []);
    for job in alive {
        assert_eq!(lease_of(&f, job.id).await, owned(WORKER));
    }
}

/// A worker that crashes stops renewing; when its lease has ended the job is claimed again.
pub async fn rule_4_2_4_a_crashed_workers_job_is_claimed_again(f: Fixture) {
    let crashed = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE - Duration::from_micros(1));
    assert_eq!(f.claim_jobs_as(OTHER, 1).await, []);
    f.clock.advance(Duration::from_micros(1));
    let again = f.claim_jobs_as(OTHER, 1).await.remove(0);
    assert_eq!((again.id, again.attempt), (crashed.id, 2));
    let answer = f.finish_job_as(OTHER, again.claim(), completed()).await;
    assert_eq!(answer, JobFinished::Completed);
}

/// Recovery depends only on the lease: no worker is declared dead, and a slow worker can continue.
pub async fn rule_4_2_4_recovery_is_driven_by_the_lease_alone(f: Fixture) {
    f.enqueue_jobs(2).await;
    let jobs = f.claim_jobs(2).await;
    f.advance(14);
    f.renew_jobs(WORKER, &[jobs[1].claim()]).await;
    f.advance(1);
    assert_eq!(job_ids(&f.claim_jobs_as(OTHER, 5).await), [jobs[0].id]);
    assert_eq!(
        f.finish_job(&jobs[1], completed()).await,
        JobFinished::Completed
    );
    assert_eq!(f.enqueue_claimed_job(new_job()).await.attempt, 1);
}

/// At most W jobs run at any time because of claims, of one queue or of all.
pub async fn rule_4_2_4_at_most_w_jobs_run(f: Fixture) {
    const W: u32 = 3;
    ok(f.store
        .job_limit_set(Some(W), &leasehold_store::Actor::Local)
        .await);
    f.enqueue_jobs(10).await;
    let other = NewJob {
        queue: "other".into(),
        ..new_job()
    };
    f.enqueue_new_jobs(&vec![other; 10]).await;
    let claims = (0..12u32).map(|n| {
        let store = f.store.clone();
        let claim = JobClaim {
            queue: [QUEUE, "other"][n as usize % 2].into(),
            ..job_claim(&format!("worker-{n}"), 2)
        };
        tokio::spawn(async move { ok(store.job_claim(&claim).await).jobs.len() })
    });
    let mut running = 0;
    for claim in futures::future::join_all(claims).await {
        running += claim.expect("the claim did not panic");
    }
    assert_eq!(running, W as usize);
    assert!(f.claim_outcome(1).await.at_limit);
}

/// Expired running jobs take no capacity once a claim or a sweep finds them.
pub async fn rule_4_2_4_capacity_of_expired_leases_comes_back(f: Fixture) {
    f.set_queue_limit(Some(2)).await;
    f.enqueue_jobs(6).await;
    f.claim_jobs(2).await;
    assert_eq!(f.claim_jobs(1).await, []);
    f.clock.advance(LEASE);
    assert_eq!(f.claim_jobs_as(OTHER, 5).await.len(), 2);
    f.clock.advance(LEASE);
    assert_eq!(f.requeue_expired_jobs().await.len(), 2);
    assert_eq!(f.job_counts().await.running, 0);
    assert_eq!(f.claim_jobs_as("worker-3", 5).await.len(), 2);
}

/// A claim is one transaction: its result is exactly what is running, with owner and token.
pub async fn rule_4_2_5_a_claim_is_one_transaction(f: Fixture) {
    f.enqueue_jobs(100).await;
    let claimed = f.claim_jobs(70).await;
    assert_eq!(f.job_counts().await.running, 70);
    for job in &claimed {
        let row = f.job(job.id).await;
        assert_eq!(row.claimed_by.as_deref(), Some(WORKER));
        assert_eq!((row.token, row.attempts), (job.token, 1));
        assert_eq!(row.lease_expires_at, Some(job.lease_expires_at));
    }
}

/// Two workers never move the same job from queued to running.
pub async fn rule_4_2_5_two_workers_never_claim_the_same_job(f: Fixture) {
    let ids: BTreeSet<JobId> = f.enqueue_jobs(400).await.into_iter().collect();
    let claimers = (0..16).map(|n| {
        let store = f.store.clone();
        let claim = job_claim(&format!("worker-{n}"), 1 + n % 5);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let jobs = ok(store.job_claim(&claim).await).jobs;
                if jobs.is_empty() {
                    return mine;
                }
                mine.extend(job_ids(&jobs));
            }
        })
    });
    let mut all = Vec::new();
    for claimer in futures::future::join_all(claimers).await {
        all.extend(claimer.expect("the claimer did not panic"));
    }
    assert_eq!(all.len(), 400);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), ids);
}

/// Heartbeat, complete and fail change a row only by its id, its owner and while it runs.
pub async fn rule_4_2_5_owner_updates_need_id_owner_and_running(f: Fixture) {
    let waits = f.enqueue_job(job_with_priority(-5)).await;
    let running = f.enqueue_claimed_job(new_job()).await;
    let done = f.enqueue_claimed_job(new_job()).await;
    f.finish_job(&done, completed()).await;
    let wrong_id = JobRef {
        job: waits,
        ..running.claim()
    };
    let refused = [
        (OTHER, running.claim()),
        (WORKER, wrong_id),
        (WORKER, done.claim()),
    ];
    let ids = [waits, running.id, done.id];
    let mut before = Vec::new();
    for id in ids {
        before.push(f.job(id).await);
    }
    for (worker, claim) in refused {
        assert_eq!(f.renew_jobs(worker, &[claim]).await, []);
        for end in [completed(), failed(RetryMode::Never)] {
            let answer = f.finish_job_as(worker, claim, end).await;
            assert_eq!(answer, JobFinished::LeaseLost);
        }
    }
    for (id, before) in ids.into_iter().zip(before) {
        assert_eq!(f.job(id).await, before);
    }
}

/// Candidates are queued and due, ordered by priority, then age; a claim without candidates claims nothing.
pub async fn rule_4_2_5_candidates_are_due_and_ordered_by_priority_and_age(f: Fixture) {
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(5)),
        ..job_with_priority(100)
    };
    let first = f.enqueue_job(new_job()).await;
    let later = f.enqueue_job(later).await;
    f.advance(1);
    let rest = f.enqueue_new_jobs(&[new_job(), job_with_priority(1)]).await;
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(f.claim_job().await.id);
    }
    assert_eq!(order, [rest[1], first, rest[0]]);
    assert_eq!(f.claim_jobs(1).await, []);
    f.advance(4);
    assert_eq!(f.claim_job().await.id, later);
}

/// Step 1, lease cleanup: expired jobs become queued without owner and lease; repeated, it changes nothing.
pub async fn step_6_1_cleanup_requeues_expired_leases(f: Fixture) {
    f.enqueue_jobs(3).await;
    let jobs = f.claim_jobs(3).await;
    f.advance(10);
    f.renew_jobs(WORKER, &[jobs[2].claim()]).await;
    f.advance(5);
    assert_eq!(f.requeue_expired_jobs().await.len(), 2);
    for job in &jobs[..2] {
        assert_eq!(lease_of(&f, job.id).await, free(JobStatus::Queued));
    }
    assert_eq!(lease_of(&f, jobs[2].id).await, owned(WORKER));
    assert_eq!(f.requeue_expired_jobs().await, []);
}

/// Step 2, atomic claim: a worker gets a job, or learns that there is none and how long it may sleep.
pub async fn step_6_2_claim_returns_a_job_or_the_time_to_sleep(f: Fixture) {
    assert_eq!(f.claim_outcome(1).await, Default::default());
    f.enqueue_jobs(1).await;
    assert_eq!(f.claim_jobs(1).await.len(), 1);
    let later = NewJob {
        start: JobStart::In(Duration::from_secs(9)),
        ..new_job()
    };
    f.enqueue_job(later).await;
    let none = f.claim_outcome(1).await;
    assert_eq!(
        (none.jobs.len(), none.next_due_in),
        (0, Some(Duration::from_secs(9)))
    );
}

/// Step 3, process under lease: heartbeats by the owner move the lease's end to now + its duration, and nothing else.
pub async fn step_6_3_heartbeats_move_the_end_of_the_lease(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let before = f.job(job.id).await;
    f.advance(7);
    assert_eq!(f.renew_jobs(OTHER, &[job.claim()]).await, []);
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
    let after = f.job(job.id).await;
    assert_eq!(after.lease_expires_at, Some(f.now() + LEASE));
    let same = leasehold_store::job::Job {
        lease_expires_at: before.lease_expires_at,
        ..after
    };
    assert_eq!(same, before);
}

/// Step 4, finalize: success completes, terminal failure fails, another failure schedules a retry; the lease is cleared.
pub async fn step_6_4_finalizing_clears_the_lease(f: Fixture) {
    for (end, status) in [
        (completed(), JobStatus::Completed),
        (failed(RetryMode::Never), JobStatus::Failed),
        (failed(RetryMode::Policy), JobStatus::Queued),
    ] {
        let job = f.enqueue_claimed_job(new_job()).await;
        assert_ne!(f.finish_job(&job, end).await, JobFinished::LeaseLost);
        assert_eq!(lease_of(&f, job.id).await, free(status));
    }
}

/// Step 5, lease loss: a heartbeat or finalization that changes nothing reports it as a value, and the new owner is unaffected.
pub async fn step_6_5_lease_loss_is_a_value_and_changes_nothing(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    let stolen = f.claim_jobs_as(OTHER, 1).await.remove(0);
    let before = f.job(job.id).await;
    assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, []);
    for end in [
        completed(),
        failed(RetryMode::Never),
        JobEnd::Snoozed(LEASE),
    ] {
        assert_eq!(f.finish_job(&job, end).await, JobFinished::LeaseLost);
    }
    assert_eq!(f.job(job.id).await, before);
    let answer = f.finish_job_as(OTHER, stolen.claim(), completed()).await;
    assert_eq!(answer, JobFinished::Completed);
}

/// Step 6, crash recovery: after the lease's end another worker gets the job with a higher token and the next attempt; a deduplication key keeps it
/// one job.
pub async fn step_6_6_a_crash_leads_to_another_attempt_under_a_higher_token(f: Fixture) {
    let id = f.enqueue_job(job_with_dedup_key("once", None)).await;
    let crashed = f.claim_job().await;
    f.clock.advance(LEASE);
    assert!(
        f.try_enqueue_jobs(&[job_with_dedup_key("once", None)])
            .await[0]
            .existing
    );
    let again = f.claim_jobs_as(OTHER, 1).await.remove(0);
    assert_eq!((again.id, again.attempt), (id, 2));
    assert!(again.token > crashed.token);
    assert!(
        f.try_enqueue_jobs(&[job_with_dedup_key("once", None)])
            .await[0]
            .existing
    );
    assert_eq!(
        JobStatus::Running.after(JobEvent::Expire),
        Ok(JobStatus::Queued)
    );
}

/// Step 7, concurrency bound: claims respect the limit, and only leases that have not expired count.
pub async fn step_6_7_only_unexpired_leases_count_against_the_limit(f: Fixture) {
    f.set_queue_limit(Some(2)).await;
    f.enqueue_jobs(5).await;
    let jobs = f.claim_jobs(5).await;
    assert_eq!(jobs.len(), 2);
    f.advance(10);
    f.renew_jobs(WORKER, &[jobs[0].claim()]).await;
    f.advance(5);
    let more = f.claim_jobs_as(OTHER, 5).await;
    assert_eq!(job_ids(&more), [jobs[1].id]);
    assert_eq!(f.job_counts().await.running, 2);
}
