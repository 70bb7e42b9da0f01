//! Claiming jobs: content, order, due times and number.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{
    QUEUE, WORKER, completed, failed, finish_each, job_claim, job_ids, job_refs, job_with_priority,
    new_job, payload,
};
use leasehold_core::job::{
    ClaimedJob, JobClaim, JobEnd, JobFinished, JobRetry, JobStatus, RetryMode,
};
use leasehold_core::lease::{LEASE_MAX, LEASE_MIN};
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use std::collections::BTreeSet;
use std::time::Duration;

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn later(n: u64) -> NewJob {
    NewJob {
        start: JobStart::In(seconds(n)),
        ..new_job()
    }
}

/// A claim returns everything a handler needs, and the job shows its worker and lease end.
pub async fn claim_returns_everything_a_handler_needs(f: Fixture) {
    let new = NewJob {
        payload: payload(42),
        priority: 3,
        max_attempts: Some(9),
        timeout: Some(seconds(5)),
        trace_context: Some("trace".into()),
        ..new_job()
    };
    let id = f.enqueue_job(new.clone()).await;
    let created_at = f.now();
    f.advance(2);
    let job = f.claim_job().await;
    let expected = ClaimedJob {
        id,
        token: job.token,
        kind: new.kind,
        group: new.group,
        payload: new.payload,
        priority: 3,
        attempt: 1,
        retry: JobRetry {
            max_attempts: 9,
            ..JobRetry::default()
        },
        timeout: new.timeout,
        progress: None,
        last_error: None,
        trace_context: new.trace_context,
        created_at,
        lease: LEASE,
        lease_expires_at: f.now() + LEASE,
    };
    assert_eq!(job, expected);
    assert!(job.token > 0);
    let kept = f.job(id).await;
    assert_eq!(kept.status, JobStatus::Running);
    assert_eq!(kept.claimed_by.as_deref(), Some(WORKER));
    assert_eq!(kept.claimed_at, Some(f.now()));
    assert_eq!(kept.lease_expires_at, Some(f.now() + LEASE));
    assert_eq!((kept.attempts, kept.token), (1, job.token));
}

/// A later attempt has the progress and the error of the earlier ones.
pub async fn later_attempt_has_progress_and_error_of_earlier_ones(f: Fixture) {
    let first = f.enqueue_claimed_job(new_job()).await;
    let half = JsonText::from(&serde_json::json!({"done": 50}));
    assert!(ok(f.store.job_progress(WORKER, first.claim(), &half).await));
    f.finish_job(&first, failed(RetryMode::After(Duration::ZERO)))
        .await;
    let second = f.claim_job().await;
    assert_eq!(second.attempt, 2);
    assert!(second.token > first.token);
    assert_eq!(second.progress, Some(half));
    assert_eq!(second.last_error.as_deref(), Some("it broke"));
}

/// The lease is that of the claim, else that of the queue.
pub async fn lease_defaults_to_that_of_the_queue(f: Fixture) {
    f.enqueue_jobs(2).await;
    let default = JobClaim {
        lease: None,
        ..job_claim(WORKER, 1)
    };
    let job = ok(f.store.job_claim(&default).await).jobs.remove(0);
    assert_eq!(job.lease, seconds(30));
    assert_eq!(
        f.job(job.id).await.lease_expires_at,
        Some(f.now() + seconds(30))
    );
    let short = JobClaim {
        lease: Some(Duration::from_millis(1_500)),
        ..job_claim(WORKER, 1)
    };
    let job = ok(f.store.job_claim(&short).await).jobs.remove(0);
    assert_eq!(job.lease, Duration::from_millis(1_500));
    assert_eq!(job.lease_expires_at, f.now() + job.lease);
}

/// A lease outside its bounds is clamped, in a claim, a renewal and a queue's settings.
pub async fn lease_is_clamped_to_its_bounds(f: Fixture) {
    for (requested, given) in [(Duration::ZERO, LEASE_MIN), (Duration::MAX, LEASE_MAX)] {
        f.enqueue_jobs(2).await;
        let claim = JobClaim {
            lease: Some(requested),
            ..job_claim(WORKER, 1)
        };
        let job = ok(f.store.job_claim(&claim).await).jobs.remove(0);
        assert_eq!((job.lease, job.lease_expires_at), (given, f.now() + given));
        assert_eq!(f.renew_jobs(WORKER, &[job.claim()]).await, [job.id]);
        f.renew_jobs_for(WORKER, &[job.claim()], requested).await;
        let end = f.job(job.id).await.lease_expires_at;
        assert_eq!(end, Some(f.now() + given));
        let change = QueueChange {
            lease: Some(requested),
            ..QueueChange::default()
        };
        f.set_queue(change).await;
        let claim = JobClaim {
            lease: None,
            ..job_claim(WORKER, 1)
        };
        let job = ok(f.store.job_claim(&claim).await).jobs.remove(0);
        assert_eq!(job.lease, given);
    }
}

/// A claim returns at most the requested number of jobs, none twice.
pub async fn claims_at_most_the_requested_number(f: Fixture) {
    let ids = f.enqueue_jobs(5).await;
    assert_eq!(f.claim_jobs(0).await, []);
    assert_eq!(job_ids(&f.claim_jobs(2).await), ids[..2]);
    assert_eq!(job_ids(&f.claim_jobs(2).await), ids[2..4]);
    assert_eq!(job_ids(&f.claim_jobs(2).await), ids[4..]);
    assert_eq!(f.claim_jobs(2).await, []);
}

/// Jobs are claimed by priority, then age, then id.
pub async fn orders_by_priority_then_age_then_id(f: Fixture) {
    let mut line: Vec<(i16, usize, JobId)> = Vec::new();
    for (place, priorities) in [[0, 5, -5, 0], [5, 0, 0, 1000], [-1000, 5, 0, -5]]
        .iter()
        .enumerate()
    {
        let new = priorities.map(job_with_priority);
        let ids = f.enqueue_new_jobs(&new).await;
        line.extend(priorities.iter().zip(ids).map(|(p, id)| (-p, place, id)));
        f.advance(1);
    }
    line.sort_unstable();
    let expected: Vec<JobId> = line.into_iter().map(|(_, _, id)| id).collect();
    let mut claimed = job_ids(&f.claim_jobs(5).await);
    claimed.extend(job_ids(&f.claim_jobs(1).await));
    claimed.extend(job_ids(&f.claim_jobs(50).await));
    assert_eq!(claimed, expected);
}

/// Scheduled, retried, snoozed and returned jobs are claimed by priority and age among the fresh ones.
pub async fn retried_jobs_are_merged_with_fresh_ones(f: Fixture) {
    let scheduled = f.enqueue_job(later(3)).await;
    let [retried, snoozed, back] = f.enqueue_jobs(3).await[..] else {
        panic!("three jobs were enqueued");
    };
    f.advance(1);
    let fresh = f.enqueue_jobs(2).await;
    let urgent = f.enqueue_job(job_with_priority(9)).await;
    let claimed = f.claim_jobs(4).await;
    assert_eq!(job_ids(&claimed), [urgent, retried, snoozed, back]);
    f.finish_job(&claimed[0], JobEnd::Returned).await;
    f.finish_job(&claimed[1], failed(RetryMode::After(seconds(2))))
        .await;
    f.finish_job(&claimed[2], JobEnd::Snoozed(seconds(2))).await;
    f.finish_job(&claimed[3], JobEnd::Returned).await;
    f.advance(2);
    let newest = f.enqueue_jobs(1).await;
    let expected = [
        urgent, scheduled, retried, snoozed, back, fresh[0], fresh[1], newest[0],
    ];
    let mut line = job_ids(&f.claim_jobs(3).await);
    line.extend(job_ids(&f.claim_jobs(9).await));
    assert_eq!(line, expected);
}

/// Jobs of higher priority that are enqueued later go first, also after a claim has read the line.
pub async fn later_jobs_of_higher_priority_go_first(f: Fixture) {
    let low = f.enqueue_new_jobs(&vec![job_with_priority(0); 4]).await;
    assert_eq!(job_ids(&f.claim_jobs(1).await), low[..1]);
    let high = f.enqueue_new_jobs(&vec![job_with_priority(5); 2]).await;
    assert_eq!(job_ids(&f.claim_jobs(1).await), high[..1]);
    let higher = f.enqueue_job(job_with_priority(6)).await;
    let lowest = f.enqueue_job(job_with_priority(-1)).await;
    let last = f
        .enqueue_new_jobs(&[job_with_priority(5), job_with_priority(0)])
        .await;
    let expected = [
        higher, high[1], last[0], low[1], low[2], low[3], last[1], lowest,
    ];
    assert_eq!(job_ids(&f.claim_jobs(20).await), expected);
}

/// No job is claimed before it is due, and jobs that are not due do not block others.
pub async fn nothing_is_claimed_before_it_is_due(f: Fixture) {
    let first = NewJob {
        priority: 1000,
        ..later(10)
    };
    let waits = f.enqueue_job(first).await;
    let fresh = f.enqueue_jobs(2).await;
    assert_eq!(job_ids(&f.claim_jobs(5).await), fresh);
    f.advance(9);
    assert_eq!(f.claim_jobs(5).await, []);
    f.advance(1);
    assert_eq!(job_ids(&f.claim_jobs(5).await), [waits]);
}

/// A claim that returns fewer jobs than requested reports when the next job is due; a full claim does not.
pub async fn partial_claim_reports_when_the_next_job_is_due(f: Fixture) {
    assert_eq!(f.claim_outcome(1).await.next_due_in, None);
    let new = [later(30), later(10), later(20), new_job()];
    f.enqueue_new_jobs(&new).await;
    let other = NewJob {
        queue: "other".into(),
        ..later(1)
    };
    f.enqueue_job(other).await;
    assert_eq!(f.claim_outcome(1).await.next_due_in, None);
    assert_eq!(f.claim_outcome(1).await.next_due_in, Some(seconds(10)));
    f.advance(4);
    assert_eq!(f.claim_outcome(5).await.next_due_in, Some(seconds(6)));
    f.advance(7);
    let claimed = f.claim_outcome(5).await;
    assert_eq!(claimed.jobs.len(), 1);
    assert_eq!(claimed.next_due_in, Some(seconds(9)));
    f.finish_job(&claimed.jobs[0], JobEnd::Snoozed(seconds(3)))
        .await;
    assert_eq!(f.claim_outcome(5).await.next_due_in, Some(seconds(3)));
    f.advance(3);
    f.claim_jobs(5).await;
    f.advance(100);
    let rest = f.claim_outcome(5).await;
    assert_eq!(rest.next_due_in, None);
}

/// Due times are exact to the microsecond: no job is claimed earlier, and the reported time is exact.
pub async fn due_times_are_exact(f: Fixture) {
    let wait = Duration::from_micros(1_500_001);
    let new = NewJob {
        start: JobStart::In(wait),
        ..new_job()
    };
    let id = f.enqueue_job(new).await;
    assert_eq!(f.claim_outcome(1).await.next_due_in, Some(wait));
    f.clock.advance(wait - Duration::from_micros(1));
    assert_eq!(
        f.claim_outcome(1).await.next_due_in,
        Some(Duration::from_micros(1))
    );
    f.clock.advance(Duration::from_micros(1));
    assert_eq!(f.claim_job().await.id, id);
}

/// The fencing token of a job rises with each claim, also if the claim does not count as an attempt.
pub async fn token_rises_with_each_claim(f: Fixture) {
    let id = f.enqueue_jobs(1).await[0];
    let mut tokens = Vec::new();
    let ends = [
        JobEnd::Returned,
        JobEnd::Snoozed(Duration::ZERO),
        failed(RetryMode::After(Duration::ZERO)),
    ];
    let mut attempts = Vec::new();
    for end in ends {
        let job = f.claim_job().await;
        assert_eq!(job.id, id);
        tokens.push(job.token);
        attempts.push(job.attempt);
        f.finish_job(&job, end).await;
    }
    let job = f.claim_job().await;
    tokens.push(job.token);
    attempts.push(job.attempt);
    f.advance(15);
    let job = f.claim_job().await;
    tokens.push(job.token);
    attempts.push(job.attempt);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(attempts, [1, 1, 1, 2, 3]);
    assert_eq!(f.job(id).await.token, job.token);
}

/// Each job of a large claim can be renewed, finished and returned individually.
pub async fn jobs_of_one_large_claim_end_individually(f: Fixture) {
    let ids = f.enqueue_jobs(200).await;
    let claimed = f.claim_jobs(200).await;
    assert_eq!(job_ids(&claimed), ids);
    assert_eq!(f.job_counts().await.running, 200);
    let finishes = finish_each(&claimed[..70], &completed());
    let answers = f.finish_jobs(WORKER, &finishes).await;
    assert!(answers.iter().all(|a| *a == JobFinished::Completed));
    let backs = finish_each(&claimed[70..100], &JobEnd::Returned);
    f.finish_jobs(WORKER, &backs).await;
    f.advance(10);
    let kept = f.renew_jobs(WORKER, &job_refs(&claimed[100..150])).await;
    assert_eq!(kept, ids[100..150]);
    f.advance(5);
    let expired = f.requeue_expired_jobs().await;
    let lost: Vec<JobId> = expired.iter().map(|e| e.claim.job).collect();
    assert_eq!(lost, ids[150..]);
    for (expired, claimed) in expired.iter().zip(&claimed[150..]) {
        assert_eq!(expired.claim, claimed.claim());
    }
    let counts = f.job_counts().await;
    assert_eq!(
        (counts.ready, counts.running, counts.completed),
        (80, 50, 70)
    );
    let again = f.claim_jobs_as("worker-2", 500).await;
    let expected: Vec<JobId> = ids[70..100].iter().chain(&ids[150..]).copied().collect();
    assert_eq!(job_ids(&again), expected);
    let answers = f
        .finish_jobs(WORKER, &finish_each(&claimed[100..], &completed()))
        .await;
    let held = answers.iter().filter(|a| **a == JobFinished::Completed);
    assert_eq!(held.count(), 50);
    assert_eq!(f.job_counts().await.running, 80);
}

/// One claim returns at most the maximum number of jobs; further claims continue in order.
pub async fn claim_is_capped_at_the_maximum(f: Fixture) {
    let n = leasehold_core::limits::JOB_MAX_BATCH + 50;
    let ids = f.enqueue_jobs(n).await;
    let first = job_ids(&f.claim_jobs(u32::MAX).await);
    assert!(first.len() <= leasehold_core::limits::JOB_MAX_BATCH);
    let mut all = first;
    loop {
        let more = job_ids(&f.claim_jobs(u32::MAX).await);
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    assert_eq!(all, ids);
}

/// A backlog of scheduled jobs that become due at the same time is claimed completely and in order.
pub async fn backlog_that_becomes_due_at_once_is_claimed_in_order(f: Fixture) {
    let waiting: Vec<NewJob> = (0..2_500)
        .map(|n| job_with_priority((n % 3) as i16))
        .collect();
    let waiting: Vec<NewJob> = waiting
        .into_iter()
        .map(|new| NewJob {
            start: JobStart::In(seconds(60)),
            ..new
        })
        .collect();
    let ids: BTreeSet<JobId> = f.enqueue_new_jobs(&waiting).await.into_iter().collect();
    f.advance(61);
    let mut claimed = BTreeSet::new();
    for _ in 0..100 {
        let jobs = f.claim_jobs(400).await;
        claimed.extend(job_ids(&jobs));
        if claimed.len() == ids.len() {
            break;
        }
    }
    assert_eq!(claimed, ids);
}

/// Jobs of many priorities are claimed in order.
pub async fn many_priorities_are_claimed_in_order(f: Fixture) {
    let priorities: Vec<i16> = (-1000..=1000).step_by(40).collect();
    for priority in priorities.iter().rev().step_by(2) {
        f.enqueue_job(job_with_priority(*priority)).await;
    }
    for priority in priorities.iter().rev().skip(1).step_by(2) {
        f.enqueue_job(job_with_priority(*priority)).await;
    }
    let claimed = f.claim_jobs(1_000).await;
    let order: Vec<i16> = claimed.iter().map(|job| job.priority).rev().collect();
    assert_eq!(order, priorities);
}

/// A paused queue yields no jobs and loses none.
pub async fn paused_queue_yields_nothing(f: Fixture) {
    let ids = f.enqueue_jobs(2).await;
    let pause = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    let queue = f.set_queue(pause(true)).await;
    assert_eq!((queue.name.as_str(), queue.settings.paused), (QUEUE, true));
    assert_eq!(f.claim_outcome(5).await, Default::default());
    f.set_queue(pause(false)).await;
    assert_eq!(job_ids(&f.claim_jobs(5).await), ids);
}
