//! Finishing jobs: each end, who may finish, and which of two ends counts.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{
    WORKER, completed, failed, finish_each, job_ids, job_with_max_attempts, new_job,
};
use leasehold_core::job::{
    JobEnd, JobFinish, JobFinished, JobRef, JobRetry, JobStatus, RetryMode, jitter,
};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::retry::Backoff;
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::{Job, NewJob};
use leasehold_store::queue::QueueChange;
use std::time::Duration;

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn assert_unclaimed(job: &Job) {
    assert_eq!((&job.claimed_by, job.claimed_at), (&None, None));
    assert_eq!(job.lease_expires_at, None);
}

/// A completed job keeps its result and has no lease.
pub async fn completed_job_keeps_its_result(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.advance(3);
    let result = JsonText::parse("{ \"sent\" : true }").expect("valid JSON");
    let end = JobEnd::Completed {
        result: Some(result.clone()),
    };
    assert_eq!(f.finish_job(&job, end).await, JobFinished::Completed);
    let kept = f.job(job.id).await;
    assert_eq!(kept.status, JobStatus::Completed);
    assert_eq!(
        (kept.finished_at, kept.result),
        (Some(f.now()), Some(result))
    );
    let kept = f.job(job.id).await;
    assert_unclaimed(&kept);
    assert_eq!((kept.attempts, kept.token), (1, job.token));
    assert_eq!(kept.last_error, None);
    assert_eq!(f.claim_jobs(5).await, []);
}

/// A permanently failed job keeps its error.
pub async fn permanently_failed_job_keeps_its_error(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.advance(3);
    assert_eq!(
        f.finish_job(&job, failed(RetryMode::Never)).await,
        JobFinished::Failed
    );
    let kept = f.job(job.id).await;
    assert_eq!(kept.status, JobStatus::Failed);
    assert_eq!(kept.finished_at, Some(f.now()));
    assert_eq!(kept.last_error.as_deref(), Some("it broke"));
    assert_eq!((kept.attempts, kept.result.clone()), (1, None));
    assert_unclaimed(&kept);
    assert_eq!(f.claim_jobs(5).await, []);
}

/// A failed attempt is retried after the backoff of its policy, and the job fails after the last attempt.
pub async fn failed_attempt_is_retried_by_the_policy(f: Fixture) {
    let backoff = Backoff {
        base: seconds(2),
        factor: 3.0,
        max: seconds(10),
        jitter: 0.0,
    };
    let new = NewJob {
        max_attempts: Some(4),
        backoff: Some(backoff),
        ..new_job()
    };
    let id = f.enqueue_job(new).await;
    for (attempt, wait) in [(1, 2), (2, 6), (3, 10)] {
        let job = f.claim_job().await;
        assert_eq!((job.id, job.attempt), (id, attempt));
        let run_at = f.now() + seconds(wait);
        let end = f.finish_job(&job, failed(RetryMode::Policy)).await;
        assert_eq!(end, JobFinished::Queued { run_at });
        let kept = f.job(id).await;
        assert_eq!(kept.status, JobStatus::Queued);
        assert_eq!(kept.run_at, run_at);
        assert_eq!((kept.attempts, kept.token), (attempt, job.token));
        assert_eq!(kept.last_error.as_deref(), Some("it broke"));
        assert_unclaimed(&kept);
        f.advance(wait - 1);
        assert_eq!(f.claim_outcome(1).await.next_due_in, Some(seconds(1)));
        f.advance(1);
    }
    let job = f.claim_job().await;
    assert_eq!(
        f.finish_job(&job, failed(RetryMode::Policy)).await,
        JobFinished::Failed
    );
    assert_eq!(f.job(id).await.attempts, 4);
    assert_eq!(f.job(id).await.status, JobStatus::Failed);
}

/// The backoff has the jitter that the core computes for this job and claim.
pub async fn backoff_has_the_jitter_that_the_core_computes(f: Fixture) {
    let backoff = Backoff {
        base: seconds(100),
        factor: 2.0,
        max: seconds(1_000),
        jitter: 0.5,
    };
    let retry = JobRetry {
        max_attempts: 9,
        backoff,
    };
    let change = QueueChange {
        retry: Some(retry),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    f.enqueue_jobs(20).await;
    let jobs = f.claim_jobs(20).await;
    let mut waits = Vec::new();
    for job in &jobs {
        let JobFinished::Queued { run_at } = f.finish_job(job, failed(RetryMode::Policy)).await
        else {
            panic!("the job is retried");
        };
        let wait = retry.after_failure(1, jitter(job.id, job.token));
        let expected = f.now() + wait.expect("the job is retried");
        // Databases have microsecond precision.
        let off = (run_at.as_microsecond() - expected.as_microsecond()).abs();
        assert!(off <= 1, "{run_at} is not {expected}");
        assert_eq!(f.job(job.id).await.run_at, run_at);
        waits.push(run_at);
    }
    waits.sort();
    waits.dedup();
    assert!(waits.len() > 10, "the backoffs differ");
}

/// For a job without its own policy, the current policy of its queue applies.
pub async fn current_policy_of_the_queue_applies(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let own = {
        f.enqueue_job(job_with_max_attempts(3)).await;
        f.claim_job().await
    };
    let change = QueueChange {
        retry: Some(JobRetry {
            max_attempts: 1,
            backoff: Backoff::default(),
        }),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    assert_eq!(
        f.finish_job(&job, failed(RetryMode::Policy)).await,
        JobFinished::Failed
    );
    let again = f.finish_job(&own, failed(RetryMode::Policy)).await;
    assert!(matches!(again, JobFinished::Queued { .. }), "{again:?}");
}

/// A worker can choose the retry delay while attempts are left.
pub async fn worker_can_choose_the_retry_delay(f: Fixture) {
    let first = f.enqueue_claimed_job(job_with_max_attempts(2)).await;
    let run_at = f.now() + seconds(7);
    let end = f
        .finish_job(&first, failed(RetryMode::After(seconds(7))))
        .await;
    assert_eq!(end, JobFinished::Queued { run_at });
    f.advance(6);
    assert_eq!(f.claim_jobs(1).await, []);
    f.advance(1);
    let second = f.claim_job().await;
    let end = f
        .finish_job(&second, failed(RetryMode::After(seconds(7))))
        .await;
    assert_eq!(end, JobFinished::Failed);
    assert_eq!(f.job(second.id).await.attempts, 2);
}

/// A snoozed job is due later, a returned job at once; neither counts as an attempt or an error.
pub async fn snoozed_and_returned_jobs_count_no_attempt(f: Fixture) {
    let id = f.enqueue_job(job_with_max_attempts(1)).await;
    for round in 1..=3u64 {
        let job = f.claim_job().await;
        assert_eq!(job.attempt, 1);
        let run_at = f.now() + seconds(round);
        let end = f.finish_job(&job, JobEnd::Snoozed(seconds(round))).await;
        assert_eq!(end, JobFinished::Queued { run_at });
        let kept = f.job(id).await;
        assert_eq!((kept.attempts, kept.token), (0, job.token));
        assert_eq!((kept.run_at, kept.last_error.clone()), (run_at, None));
        assert_unclaimed(&kept);
        assert_eq!(f.claim_jobs(1).await, []);
        f.advance(round);
        let job = f.claim_job().await;
        let end = f.finish_job(&job, JobEnd::Returned).await;
        assert_eq!(end, JobFinished::Queued { run_at: f.now() });
        assert_eq!(f.job(id).await.attempts, 0);
    }
    let job = f.claim_job().await;
    assert_eq!(job.attempt, 1);
    assert_eq!(
        f.finish_job(&job, failed(RetryMode::Policy)).await,
        JobFinished::Failed
    );
}

/// An oversized delay is capped: a store that cannot represent it would leave the job with its worker for ever.
pub async fn oversized_delay_is_capped(f: Fixture) {
    let year = seconds(365 * 86_400);
    for end in [
        JobEnd::Snoozed(Duration::MAX),
        failed(RetryMode::After(Duration::MAX)),
    ] {
        let job = f.enqueue_claimed_job(new_job()).await;
        let JobFinished::Queued { run_at } = f.finish_job(&job, end).await else {
            panic!("the job is retried");
        };
        assert!(run_at > f.now() + year, "{run_at}");
        assert_eq!(f.job(job.id).await.run_at, run_at);
        assert!(f.claim_outcome(1).await.next_due_in > Some(year));
    }
    assert_eq!(f.job_counts().await.scheduled, 2);
}

/// A queue that does not keep completed jobs deletes them at once, but keeps failed ones.
pub async fn completed_jobs_are_deleted_if_the_queue_does_not_keep_them(f: Fixture) {
    let before = f.enqueue_completed_job().await;
    let change = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    let gone = f.enqueue_claimed_job(new_job()).await;
    let claim = gone.claim();
    let progress = JsonText::default();
    assert!(ok(f.store.job_progress(WORKER, claim, &progress).await));
    assert_eq!(
        f.finish_job(&gone, completed()).await,
        JobFinished::Completed
    );
    assert_eq!(ok(f.store.job_get(gone.id).await), None);
    let failed = f.enqueue_failed_job().await;
    assert_eq!(
        f.finish_job(&gone, completed()).await,
        JobFinished::LeaseLost
    );
    let counts = f.job_counts().await;
    assert_eq!((counts.completed, counts.failed), (1, 1));
    assert_eq!(f.job(before).await.status, JobStatus::Completed);
    assert_eq!(f.job(failed).await.status, JobStatus::Failed);
    let retried = f.enqueue_claimed_job(new_job()).await;
    f.finish_job(&retried, JobEnd::Returned).await;
    let retried = f.claim_job().await;
    assert_eq!(
        f.finish_job(&retried, completed()).await,
        JobFinished::Completed
    );
    assert_eq!(ok(f.store.job_get(retried.id).await), None);
}

/// Outcomes are in the order of the call.
pub async fn outcomes_are_in_order(f: Fixture) {
    f.enqueue_jobs(150).await;
    let jobs = f.claim_jobs(150).await;
    let end_of = |n: usize| match n % 5 {
        0 => completed(),
        1 => failed(RetryMode::Never),
        2 => JobEnd::Snoozed(seconds(5)),
        3 => JobEnd::Returned,
        _ => completed(),
    };
    let token_offset = |n: usize| i64::from(n % 5 == 4) * 1_000_000;
    let finishes: Vec<JobFinish> = jobs
        .iter()
        .enumerate()
        .rev()
        .map(|(n, job)| JobFinish {
            claim: JobRef {
                job: job.id,
                token: job.token + token_offset(n),
            },
            end: end_of(n),
        })
        .collect();
    let mut answers = f.finish_jobs(WORKER, &finishes).await;
    answers.reverse();
    for (n, answer) in answers.into_iter().enumerate() {
        let expected = match n % 5 {
            0 => JobFinished::Completed,
            1 => JobFinished::Failed,
            2 => JobFinished::Queued {
                run_at: f.now() + seconds(5),
            },
            3 => JobFinished::Queued { run_at: f.now() },
            _ => JobFinished::LeaseLost,
        };
        assert_eq!(answer, expected, "{n}");
    }
    let counts = f.job_counts().await;
    assert_eq!(
        (counts.completed, counts.failed, counts.running),
        (30, 30, 30)
    );
    assert_eq!((counts.ready, counts.scheduled), (30, 30));
}

/// Of two ends of one claim, in one call or in two, the first counts.
pub async fn first_of_two_ends_counts(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let finishes = [
        JobFinish {
            claim: job.claim(),
            end: completed(),
        },
        JobFinish {
            claim: job.claim(),
            end: failed(RetryMode::Never),
        },
    ];
    let answers = f.finish_jobs(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::Completed, JobFinished::LeaseLost]);
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    assert_eq!(f.job(job.id).await.status, JobStatus::Completed);
    assert_eq!(f.job(job.id).await.last_error, None);
    let job = f.enqueue_claimed_job(new_job()).await;
    let one = std::slice::from_ref(&job);
    let mut twice = finish_each(one, &JobEnd::Returned);
    twice.extend(finish_each(one, &completed()));
    let answers = f.finish_jobs(WORKER, &twice).await;
    assert_eq!(answers[1], JobFinished::LeaseLost);
    assert_eq!(job_ids(&f.claim_jobs(5).await), [job.id]);
}

/// A finish without the lease changes nothing: another worker, another token, a queued job, an unknown job.
pub async fn finish_without_the_lease_changes_nothing(f: Fixture) {
    let queued = f.enqueue_job(new_job()).await;
    let job = {
        f.enqueue_job(crate::job_factory::job_with_priority(5))
            .await;
        f.claim_job().await
    };
    let before = (f.job(job.id).await, f.job(queued).await);
    for end in [
        completed(),
        failed(RetryMode::Policy),
        JobEnd::Snoozed(seconds(1)),
        JobEnd::Returned,
    ] {
        let claims = [
            ("worker-2", job.claim()),
            (
                WORKER,
                JobRef {
                    token: job.token + 1,
                    ..job.claim()
                },
            ),
            (
                WORKER,
                JobRef {
                    token: 0,
                    job: queued,
                },
            ),
            (
                WORKER,
                JobRef {
                    job: queued,
                    ..job.claim()
                },
            ),
            (
                WORKER,
                JobRef {
                    job: JobId(987_654_321),
                    token: 1,
                },
            ),
        ];
        for (worker, claim) in claims {
            let answer = f.finish_job_as(worker, claim, end.clone()).await;
            assert_eq!(answer, JobFinished::LeaseLost);
        }
    }
    assert_eq!((f.job(job.id).await, f.job(queued).await), before);
    assert_eq!(f.finish_jobs(WORKER, &[]).await, []);
}

/// An expired lease cannot finish a job, before and after the lease is taken back.
pub async fn expired_lease_cannot_finish_a_job(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    f.clock.advance(LEASE);
    let before = f.job(job.id).await;
    for end in [completed(), failed(RetryMode::Never), JobEnd::Returned] {
        assert_eq!(f.finish_job(&job, end).await, JobFinished::LeaseLost);
    }
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.requeue_expired_jobs().await.len(), 1);
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    let again = f.claim_jobs_as("worker-2", 1).await.remove(0);
    assert_eq!(
        f.finish_job(&job, completed()).await,
        JobFinished::LeaseLost
    );
    let answer = f
        .finish_job_as("worker-2", again.claim(), completed())
        .await;
    assert_eq!(answer, JobFinished::Completed);
}

/// A long error is clipped, and characters that databases cannot store are removed.
pub async fn long_error_is_clipped(f: Fixture) {
    let job = f.enqueue_claimed_job(new_job()).await;
    let end = JobEnd::Failed {
        error: format!("ä\0{}", "ö".repeat(2 * ERROR_MAX_CHARS)),
        retry_mode: RetryMode::Never,
    };
    assert_eq!(f.finish_job(&job, end).await, JobFinished::Failed);
    let error = f.job(job.id).await.last_error.expect("the job failed");
    assert_eq!(error.chars().count(), ERROR_MAX_CHARS);
    assert!(error.starts_with("äö"));
}
