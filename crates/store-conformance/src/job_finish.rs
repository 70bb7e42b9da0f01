//! What a store promises about finishing jobs: each end, who may, and what of two counts.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::job_factory::{WORKER, all_end, completed, failed, job_ids, new_job, tried};
use leasehold_core::job::{
    Again, JobEnd, JobFinish, JobFinished, JobRef, JobRetry, JobStatus, jitter,
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

fn assert_nobody_has(job: &Job) {
    assert_eq!((&job.claimed_by, job.claimed_at), (&None, None));
    assert_eq!(job.lease_expires_at, None);
}

/// A completed job keeps its result, and nobody has it.
pub async fn completed_keeps_its_result(f: Fixture) {
    let job = f.taken(new_job()).await;
    f.advance(3);
    let result = JsonText::parse("{ \"sent\" : true }").expect("it is JSON");
    let end = JobEnd::Completed {
        result: Some(result.clone()),
    };
    assert_eq!(f.end(&job, end).await, JobFinished::Completed);
    let kept = f.job(job.id).await;
    assert_eq!(kept.status, JobStatus::Completed);
    assert_eq!(
        (kept.finished_at, kept.result),
        (Some(f.now()), Some(result))
    );
    let kept = f.job(job.id).await;
    assert_nobody_has(&kept);
    assert_eq!((kept.attempts, kept.token), (1, job.token));
    assert_eq!(kept.last_error, None);
    assert_eq!(f.take(5).await, []);
}

/// A job that failed for good keeps its error.
pub async fn failed_for_good_keeps_its_error(f: Fixture) {
    let job = f.taken(new_job()).await;
    f.advance(3);
    assert_eq!(f.end(&job, failed(Again::Never)).await, JobFinished::Failed);
    let kept = f.job(job.id).await;
    assert_eq!(kept.status, JobStatus::Failed);
    assert_eq!(kept.finished_at, Some(f.now()));
    assert_eq!(kept.last_error.as_deref(), Some("it broke"));
    assert_eq!((kept.attempts, kept.result.clone()), (1, None));
    assert_nobody_has(&kept);
    assert_eq!(f.take(5).await, []);
}

/// A failed attempt is tried again after the wait its policy says, and failed for good after the last.
pub async fn failed_is_tried_again_by_its_policy(f: Fixture) {
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
    let id = f.put_one(new).await;
    for (attempt, wait) in [(1, 2), (2, 6), (3, 10)] {
        let job = f.take_one().await;
        assert_eq!((job.id, job.attempt), (id, attempt));
        let run_at = f.now() + seconds(wait);
        let end = f.end(&job, failed(Again::Policy)).await;
        assert_eq!(end, JobFinished::Queued { run_at });
        let kept = f.job(id).await;
        assert_eq!((kept.status, kept.run_at), (JobStatus::Queued, run_at));
        assert_eq!((kept.attempts, kept.token), (attempt, job.token));
        assert_eq!(kept.last_error.as_deref(), Some("it broke"));
        assert_nobody_has(&kept);
        f.advance(wait - 1);
        assert_eq!(f.look(1).await.next_due_in, Some(seconds(1)));
        f.advance(1);
    }
    let job = f.take_one().await;
    assert_eq!(
        f.end(&job, failed(Again::Policy)).await,
        JobFinished::Failed
    );
    assert_eq!(f.job(id).await.attempts, 4);
    assert_eq!(f.job(id).await.status, JobStatus::Failed);
}

/// The wait has the jitter that the core computes for this job and claim.
pub async fn waits_are_jittered_as_the_core_says(f: Fixture) {
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
    f.put(20).await;
    let jobs = f.take(20).await;
    let mut waits = Vec::new();
    for job in &jobs {
        let JobFinished::Queued { run_at } = f.end(job, failed(Again::Policy)).await else {
            panic!("attempts are left");
        };
        let wait = retry.after_failure(1, jitter(job.id, job.token));
        let expected = f.now() + wait.expect("attempts are left");
        // Databases keep microseconds.
        let off = (run_at.as_microsecond() - expected.as_microsecond()).abs();
        assert!(off <= 1, "{run_at} is not {expected}");
        assert_eq!(f.job(job.id).await.run_at, run_at);
        waits.push(run_at);
    }
    waits.sort();
    waits.dedup();
    assert!(waits.len() > 10, "they do not all come back at once");
}

/// Where the job says nothing, the policy its queue has now holds.
pub async fn the_queues_policy_of_now_holds(f: Fixture) {
    let job = f.taken(new_job()).await;
    let own = {
        f.put_one(tried(3)).await;
        f.take_one().await
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
        f.end(&job, failed(Again::Policy)).await,
        JobFinished::Failed
    );
    let again = f.end(&own, failed(Again::Policy)).await;
    assert!(matches!(again, JobFinished::Queued { .. }), "{again:?}");
}

/// A worker may say when to try again, as long as attempts are left.
pub async fn failed_is_tried_again_when_the_worker_says(f: Fixture) {
    let first = f.taken(tried(2)).await;
    let run_at = f.now() + seconds(7);
    let end = f.end(&first, failed(Again::After(seconds(7)))).await;
    assert_eq!(end, JobFinished::Queued { run_at });
    f.advance(6);
    assert_eq!(f.take(1).await, []);
    f.advance(1);
    let second = f.take_one().await;
    let end = f.end(&second, failed(Again::After(seconds(7)))).await;
    assert_eq!(end, JobFinished::Failed);
    assert_eq!(f.job(second.id).await.attempts, 2);
}

/// A snoozed job comes back later, a job given back at once; neither counts as an attempt nor as an error.
pub async fn snoozed_and_given_back_are_no_attempts(f: Fixture) {
    let id = f.put_one(tried(1)).await;
    for round in 1..=3u64 {
        let job = f.take_one().await;
        assert_eq!(job.attempt, 1);
        let run_at = f.now() + seconds(round);
        let end = f.end(&job, JobEnd::Snoozed(seconds(round))).await;
        assert_eq!(end, JobFinished::Queued { run_at });
        let kept = f.job(id).await;
        assert_eq!((kept.attempts, kept.token), (0, job.token));
        assert_eq!((kept.run_at, kept.last_error.clone()), (run_at, None));
        assert_nobody_has(&kept);
        assert_eq!(f.take(1).await, []);
        f.advance(round);
        let job = f.take_one().await;
        let end = f.end(&job, JobEnd::GivenBack).await;
        assert_eq!(end, JobFinished::Queued { run_at: f.now() });
        assert_eq!(f.job(id).await.attempts, 0);
    }
    let job = f.take_one().await;
    assert_eq!(job.attempt, 1);
    assert_eq!(
        f.end(&job, failed(Again::Policy)).await,
        JobFinished::Failed
    );
}

/// A wait too long to mean is a long one: a store that cannot keep it would leave the job with its worker for ever.
pub async fn a_wait_for_ever_is_a_long_one(f: Fixture) {
    let year = seconds(365 * 86_400);
    for end in [
        JobEnd::Snoozed(Duration::MAX),
        failed(Again::After(Duration::MAX)),
    ] {
        let job = f.taken(new_job()).await;
        let JobFinished::Queued { run_at } = f.end(&job, end).await else {
            panic!("attempts are left");
        };
        assert!(run_at > f.now() + year, "{run_at}");
        assert_eq!(f.job(job.id).await.run_at, run_at);
        assert!(f.look(1).await.next_due_in > Some(year));
    }
    assert_eq!(f.job_counts().await.scheduled, 2);
}

/// A queue that does not keep completed jobs forgets them at once; failed ones it keeps.
pub async fn completed_ones_are_forgotten_where_the_queue_says_so(f: Fixture) {
    let before = f.job_completed().await;
    let change = QueueChange {
        keep_completed: Some(false),
        ..QueueChange::default()
    };
    f.set_queue(change).await;
    let gone = f.taken(new_job()).await;
    let claim = gone.claim();
    let progress = JsonText::default();
    assert!(ok(f.store.job_progress(WORKER, claim, &progress).await));
    assert_eq!(f.end(&gone, completed()).await, JobFinished::Completed);
    assert_eq!(ok(f.store.job_get(gone.id).await), None);
    let failed = f.job_failed().await;
    assert_eq!(f.end(&gone, completed()).await, JobFinished::LeaseLost);
    let counts = f.job_counts().await;
    assert_eq!((counts.completed, counts.failed), (1, 1));
    assert_eq!(f.job(before).await.status, JobStatus::Completed);
    assert_eq!(f.job(failed).await.status, JobStatus::Failed);
    let retried = f.taken(new_job()).await;
    f.end(&retried, JobEnd::GivenBack).await;
    let retried = f.take_one().await;
    assert_eq!(f.end(&retried, completed()).await, JobFinished::Completed);
    assert_eq!(ok(f.store.job_get(retried.id).await), None);
}

/// Answers are in the order asked, whatever each is.
pub async fn answers_each_in_order(f: Fixture) {
    f.put(150).await;
    let jobs = f.take(150).await;
    let end_of = |n: usize| match n % 5 {
        0 => completed(),
        1 => failed(Again::Never),
        2 => JobEnd::Snoozed(seconds(5)),
        3 => JobEnd::GivenBack,
        _ => completed(),
    };
    let stranger = |n: usize| i64::from(n % 5 == 4) * 1_000_000;
    let finishes: Vec<JobFinish> = jobs
        .iter()
        .enumerate()
        .rev()
        .map(|(n, job)| JobFinish {
            claim: JobRef {
                job: job.id,
                token: job.token + stranger(n),
            },
            end: end_of(n),
        })
        .collect();
    let mut answers = f.end_all(WORKER, &finishes).await;
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
pub async fn the_first_of_two_counts(f: Fixture) {
    let job = f.taken(new_job()).await;
    let finishes = [
        JobFinish {
            claim: job.claim(),
            end: completed(),
        },
        JobFinish {
            claim: job.claim(),
            end: failed(Again::Never),
        },
    ];
    let answers = f.end_all(WORKER, &finishes).await;
    assert_eq!(answers, [JobFinished::Completed, JobFinished::LeaseLost]);
    assert_eq!(f.end(&job, completed()).await, JobFinished::LeaseLost);
    assert_eq!(f.job(job.id).await.status, JobStatus::Completed);
    assert_eq!(f.job(job.id).await.last_error, None);
    let job = f.taken(new_job()).await;
    let one = std::slice::from_ref(&job);
    let mut twice = all_end(one, &JobEnd::GivenBack);
    twice.extend(all_end(one, &completed()));
    let answers = f.end_all(WORKER, &twice).await;
    assert_eq!(answers[1], JobFinished::LeaseLost);
    assert_eq!(job_ids(&f.take(5).await), [job.id]);
}

/// Who does not hold the lease changes nothing: another worker, another token, a queued job, an unknown one.
pub async fn without_the_lease_changes_nothing(f: Fixture) {
    let queued = f.put_one(new_job()).await;
    let job = {
        f.put_one(crate::job_factory::urgent(5)).await;
        f.take_one().await
    };
    let before = (f.job(job.id).await, f.job(queued).await);
    for end in [
        completed(),
        failed(Again::Policy),
        JobEnd::Snoozed(seconds(1)),
        JobEnd::GivenBack,
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
            let answer = f.end_as(worker, claim, end.clone()).await;
            assert_eq!(answer, JobFinished::LeaseLost);
        }
    }
    assert_eq!((f.job(job.id).await, f.job(queued).await), before);
    assert_eq!(f.end_all(WORKER, &[]).await, []);
}

/// A lease that has ended is nobody's: its worker can end nothing, before it is taken back and after.
pub async fn an_expired_lease_cannot_finish(f: Fixture) {
    let job = f.taken(new_job()).await;
    f.clock.advance(LEASE);
    let before = f.job(job.id).await;
    for end in [completed(), failed(Again::Never), JobEnd::GivenBack] {
        assert_eq!(f.end(&job, end).await, JobFinished::LeaseLost);
    }
    assert_eq!(f.job(job.id).await, before);
    assert_eq!(f.sweep().await.len(), 1);
    assert_eq!(f.end(&job, completed()).await, JobFinished::LeaseLost);
    let again = f.take_as("worker-2", 1).await.remove(0);
    assert_eq!(f.end(&job, completed()).await, JobFinished::LeaseLost);
    let answer = f.end_as("worker-2", again.claim(), completed()).await;
    assert_eq!(answer, JobFinished::Completed);
}

/// A long error is clipped, and characters that no database holds are dropped.
pub async fn a_long_error_is_clipped(f: Fixture) {
    let job = f.taken(new_job()).await;
    let end = JobEnd::Failed {
        error: format!("ä\0{}", "ö".repeat(2 * ERROR_MAX_CHARS)),
        again: Again::Never,
    };
    assert_eq!(f.end(&job, end).await, JobFinished::Failed);
    let error = f.job(job.id).await.last_error.expect("it failed");
    assert_eq!(error.chars().count(), ERROR_MAX_CHARS);
    assert!(error.starts_with("äö"));
}
