//! What a store promises about claiming jobs: what a claim brings, in which order, when, and how many.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{
    QUEUE, WORKER, all_end, completed, failed, job_claim, job_ids, job_refs, new_job, payload,
    urgent,
};
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinished, JobRetry, JobStatus};
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

/// A claim brings all that a handler needs, and the job shows who has it and until when.
pub async fn brings_all_that_is_needed_to_work(f: Fixture) {
    let new = NewJob {
        payload: payload(42),
        priority: 3,
        max_attempts: Some(9),
        timeout: Some(seconds(5)),
        trace_context: Some("trace".into()),
        ..new_job()
    };
    let id = f.put_one(new.clone()).await;
    let created_at = f.now();
    f.advance(2);
    let job = f.take_one().await;
    let expected = ClaimedJob {
        id,
        token: job.token,
        kind: new.kind,
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

/// A later attempt is told what the earlier ones reported and what went wrong.
pub async fn a_later_attempt_knows_of_the_earlier(f: Fixture) {
    let first = f.taken(new_job()).await;
    let half = JsonText::from(&serde_json::json!({"done": 50}));
    assert!(ok(f.store.job_progress(WORKER, first.claim(), &half).await));
    f.end(&first, failed(Again::After(Duration::ZERO))).await;
    let second = f.take_one().await;
    assert_eq!(second.attempt, 2);
    assert!(second.token > first.token);
    assert_eq!(second.progress, Some(half));
    assert_eq!(second.last_error.as_deref(), Some("it broke"));
}

/// The lease is the one asked for, else the queue's.
pub async fn the_lease_is_the_claims_or_the_queues(f: Fixture) {
    f.put(2).await;
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

/// A lease too short or too long to mean becomes the nearest that is allowed, in a claim, a renewal and a queue's settings.
pub async fn a_lease_out_of_bounds_is_the_nearest(f: Fixture) {
    for (wished, given) in [(Duration::ZERO, LEASE_MIN), (Duration::MAX, LEASE_MAX)] {
        f.put(2).await;
        let claim = JobClaim {
            lease: Some(wished),
            ..job_claim(WORKER, 1)
        };
        let job = ok(f.store.job_claim(&claim).await).jobs.remove(0);
        assert_eq!((job.lease, job.lease_expires_at), (given, f.now() + given));
        assert_eq!(f.keep(WORKER, &[job.claim()]).await, [job.id]);
        f.keep_for(WORKER, &[job.claim()], wished).await;
        let end = f.job(job.id).await.lease_expires_at;
        assert_eq!(end, Some(f.now() + given));
        let change = QueueChange {
            lease: Some(wished),
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

/// At most as many as asked for, none twice.
pub async fn takes_at_most_what_was_asked_for(f: Fixture) {
    let ids = f.put(5).await;
    assert_eq!(f.take(0).await, []);
    assert_eq!(job_ids(&f.take(2).await), ids[..2]);
    assert_eq!(job_ids(&f.take(2).await), ids[2..4]);
    assert_eq!(job_ids(&f.take(2).await), ids[4..]);
    assert_eq!(f.take(2).await, []);
}

/// Priority first, then oldest, then lowest id.
pub async fn priority_then_oldest_then_id(f: Fixture) {
    let mut line: Vec<(i16, usize, JobId)> = Vec::new();
    for (place, priorities) in [[0, 5, -5, 0], [5, 0, 0, 1000], [-1000, 5, 0, -5]]
        .iter()
        .enumerate()
    {
        let new = priorities.map(urgent);
        let ids = f.put_all(&new).await;
        line.extend(priorities.iter().zip(ids).map(|(p, id)| (-p, place, id)));
        f.advance(1);
    }
    line.sort_unstable();
    let expected: Vec<JobId> = line.into_iter().map(|(_, _, id)| id).collect();
    let mut claimed = job_ids(&f.take(5).await);
    claimed.extend(job_ids(&f.take(1).await));
    claimed.extend(job_ids(&f.take(50).await));
    assert_eq!(claimed, expected);
}

/// What waited, was tried before, snoozed or given back stands in line by its priority and age, among the fresh.
pub async fn what_waited_is_merged_with_what_is_fresh(f: Fixture) {
    let scheduled = f.put_one(later(3)).await;
    let [retried, snoozed, back] = f.put(3).await[..] else {
        panic!("three were put in");
    };
    f.advance(1);
    let fresh = f.put(2).await;
    let urgent = f.put_one(urgent(9)).await;
    let claimed = f.take(4).await;
    assert_eq!(job_ids(&claimed), [urgent, retried, snoozed, back]);
    f.end(&claimed[0], JobEnd::GivenBack).await;
    f.end(&claimed[1], failed(Again::After(seconds(2)))).await;
    f.end(&claimed[2], JobEnd::Snoozed(seconds(2))).await;
    f.end(&claimed[3], JobEnd::GivenBack).await;
    f.advance(2);
    let newest = f.put(1).await;
    let expected = [
        urgent, scheduled, retried, snoozed, back, fresh[0], fresh[1], newest[0],
    ];
    let mut line = job_ids(&f.take(3).await);
    line.extend(job_ids(&f.take(9).await));
    assert_eq!(line, expected);
}

/// Jobs of a higher priority that come later go first, also when a claim has been at the line before.
pub async fn a_line_that_was_read_is_not_closed(f: Fixture) {
    let low = f.put_all(&vec![urgent(0); 4]).await;
    assert_eq!(job_ids(&f.take(1).await), low[..1]);
    let high = f.put_all(&vec![urgent(5); 2]).await;
    assert_eq!(job_ids(&f.take(1).await), high[..1]);
    let higher = f.put_one(urgent(6)).await;
    let lowest = f.put_one(urgent(-1)).await;
    let last = f.put_all(&[urgent(5), urgent(0)]).await;
    let expected = [
        higher, high[1], last[0], low[1], low[2], low[3], last[1], lowest,
    ];
    assert_eq!(job_ids(&f.take(20).await), expected);
}

/// Nothing is claimed before its time, and what is not due stands in nobody's way.
pub async fn takes_nothing_before_its_time(f: Fixture) {
    let first = NewJob {
        priority: 1000,
        ..later(10)
    };
    let waits = f.put_one(first).await;
    let fresh = f.put(2).await;
    assert_eq!(job_ids(&f.take(5).await), fresh);
    f.advance(9);
    assert_eq!(f.take(5).await, []);
    f.advance(1);
    assert_eq!(job_ids(&f.take(5).await), [waits]);
}

/// A claim that brings fewer than asked tells when the next waiting job is due; one that brings all does not.
pub async fn tells_when_the_next_is_due(f: Fixture) {
    assert_eq!(f.look(1).await.next_due_in, None);
    let new = [later(30), later(10), later(20), new_job()];
    f.put_all(&new).await;
    let other = NewJob {
        queue: "other".into(),
        ..later(1)
    };
    f.put_one(other).await;
    assert_eq!(f.look(1).await.next_due_in, None);
    assert_eq!(f.look(1).await.next_due_in, Some(seconds(10)));
    f.advance(4);
    assert_eq!(f.look(5).await.next_due_in, Some(seconds(6)));
    f.advance(7);
    let claimed = f.look(5).await;
    assert_eq!(claimed.jobs.len(), 1);
    assert_eq!(claimed.next_due_in, Some(seconds(9)));
    f.end(&claimed.jobs[0], JobEnd::Snoozed(seconds(3))).await;
    assert_eq!(f.look(5).await.next_due_in, Some(seconds(3)));
    f.advance(3);
    f.take(5).await;
    f.advance(100);
    let rest = f.look(5).await;
    assert_eq!(rest.next_due_in, None);
}

/// A due time to the microsecond is kept: not before, and told exactly.
pub async fn due_times_are_exact(f: Fixture) {
    let wait = Duration::from_micros(1_500_001);
    let new = NewJob {
        start: JobStart::In(wait),
        ..new_job()
    };
    let id = f.put_one(new).await;
    assert_eq!(f.look(1).await.next_due_in, Some(wait));
    f.clock.advance(wait - Duration::from_micros(1));
    assert_eq!(f.look(1).await.next_due_in, Some(Duration::from_micros(1)));
    f.clock.advance(Duration::from_micros(1));
    assert_eq!(f.take_one().await.id, id);
}

/// The token of a job rises with each claim, also where the claim does not count as an attempt.
pub async fn the_token_rises_with_each_claim(f: Fixture) {
    let id = f.put(1).await[0];
    let mut tokens = Vec::new();
    let ends = [
        JobEnd::GivenBack,
        JobEnd::Snoozed(Duration::ZERO),
        failed(Again::After(Duration::ZERO)),
    ];
    let mut attempts = Vec::new();
    for end in ends {
        let job = f.take_one().await;
        assert_eq!(job.id, id);
        tokens.push(job.token);
        attempts.push(job.attempt);
        f.end(&job, end).await;
    }
    let job = f.take_one().await;
    tokens.push(job.token);
    attempts.push(job.attempt);
    f.advance(15);
    let job = f.take_one().await;
    tokens.push(job.token);
    attempts.push(job.attempt);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(attempts, [1, 1, 1, 2, 3]);
    assert_eq!(f.job(id).await.token, job.token);
}

/// Claims of many are whole: each job of one can be kept, finished and given back alone.
pub async fn two_hundred_at_once_are_claimed_and_ended_alone(f: Fixture) {
    let ids = f.put(200).await;
    let claimed = f.take(200).await;
    assert_eq!(job_ids(&claimed), ids);
    assert_eq!(f.job_counts().await.running, 200);
    let finishes = all_end(&claimed[..70], &completed());
    let answers = f.end_all(WORKER, &finishes).await;
    assert!(answers.iter().all(|a| *a == JobFinished::Completed));
    let backs = all_end(&claimed[70..100], &JobEnd::GivenBack);
    f.end_all(WORKER, &backs).await;
    f.advance(10);
    let kept = f.keep(WORKER, &job_refs(&claimed[100..150])).await;
    assert_eq!(kept, ids[100..150]);
    f.advance(5);
    let expired = f.sweep().await;
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
    let again = f.take_as("worker-2", 500).await;
    let expected: Vec<JobId> = ids[70..100].iter().chain(&ids[150..]).copied().collect();
    assert_eq!(job_ids(&again), expected);
    let answers = f
        .end_all(WORKER, &all_end(&claimed[100..], &completed()))
        .await;
    let held = answers.iter().filter(|a| **a == JobFinished::Completed);
    assert_eq!(held.count(), 50);
    assert_eq!(f.job_counts().await.running, 80);
}

/// One claim takes at most what one may, and asked again goes on in order.
pub async fn takes_no_more_than_one_may(f: Fixture) {
    let n = leasehold_core::limits::JOB_MAX_BATCH + 50;
    let ids = f.put(n).await;
    let first = job_ids(&f.take(u32::MAX).await);
    assert!(first.len() <= leasehold_core::limits::JOB_MAX_BATCH);
    let mut all = first;
    loop {
        let more = job_ids(&f.take(u32::MAX).await);
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    assert_eq!(all, ids);
}

/// A backlog of scheduled jobs that all become due at once is claimed whole and in order.
pub async fn many_that_become_due_at_once_are_all_claimed(f: Fixture) {
    let waiting: Vec<NewJob> = (0..2_500).map(|n| urgent((n % 3) as i16)).collect();
    let waiting: Vec<NewJob> = waiting
        .into_iter()
        .map(|new| NewJob {
            start: JobStart::In(seconds(60)),
            ..new
        })
        .collect();
    let ids: BTreeSet<JobId> = f.put_all(&waiting).await.into_iter().collect();
    f.advance(61);
    let mut claimed = BTreeSet::new();
    for _ in 0..100 {
        let jobs = f.take(400).await;
        claimed.extend(job_ids(&jobs));
        if claimed.len() == ids.len() {
            break;
        }
    }
    assert_eq!(claimed, ids);
}

/// Jobs of many priorities are claimed in their order, however many lines that makes.
pub async fn every_priority_has_its_line(f: Fixture) {
    let priorities: Vec<i16> = (-1000..=1000).step_by(40).collect();
    for priority in priorities.iter().rev().step_by(2) {
        f.put_one(urgent(*priority)).await;
    }
    for priority in priorities.iter().rev().skip(1).step_by(2) {
        f.put_one(urgent(*priority)).await;
    }
    let claimed = f.take(1_000).await;
    let order: Vec<i16> = claimed.iter().map(|job| job.priority).rev().collect();
    assert_eq!(order, priorities);
}

/// A queue that is paused meanwhile gives nothing, and nothing is lost.
pub async fn of_a_paused_queue_is_nothing(f: Fixture) {
    let ids = f.put(2).await;
    let pause = |paused| QueueChange {
        paused: Some(paused),
        ..QueueChange::default()
    };
    let queue = f.set_queue(pause(true)).await;
    assert_eq!((queue.name.as_str(), queue.settings.paused), (QUEUE, true));
    assert_eq!(f.look(5).await, Default::default());
    f.set_queue(pause(false)).await;
    assert_eq!(job_ids(&f.take(5).await), ids);
}
