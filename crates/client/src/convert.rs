//! Conversions between the worker's types and the API's JSON types.

use leasehold_api::job::{self as api, FinishState, JobOutcome};
use leasehold_core::duration::millis;
use leasehold_core::job::{
    ClaimedJob, JobEnd, JobFinish, JobFinished, JobRef, JobRetry, JobsClaimed, RetryMode,
};
use leasehold_core::retry::Backoff;
use std::time::Duration;

pub(crate) fn claim_ref(from: JobRef) -> api::JobRef {
    api::JobRef {
        id: from.job,
        token: from.token,
    }
}

pub(crate) fn claimed(from: api::ClaimedJobs) -> JobsClaimed {
    JobsClaimed {
        jobs: from.jobs.into_iter().map(job).collect(),
        at_limit: from.at_limit,
        next_due_in: from.next_due_in_ms.map(Duration::from_millis),
    }
}

fn job(from: api::ClaimedJob) -> ClaimedJob {
    let backoff = Backoff {
        base: Duration::from_millis(from.backoff.base_ms),
        factor: from.backoff.factor,
        max: Duration::from_millis(from.backoff.max_ms),
        jitter: from.backoff.jitter,
    };
    ClaimedJob {
        id: from.id,
        token: from.token,
        kind: from.kind,
        payload: from.payload,
        priority: from.priority,
        attempt: from.attempt,
        retry: JobRetry {
            max_attempts: from.max_attempts,
            backoff,
        },
        timeout: from.timeout_ms.map(Duration::from_millis),
        progress: from.progress,
        last_error: from.last_error,
        trace_context: from.trace_context,
        created_at: from.created_at,
        lease: Duration::from_millis(from.lease_ms),
        lease_expires_at: from.lease_expires_at,
        group: None,
    }
}

pub(crate) fn finish(from: &JobFinish) -> api::Finish {
    let mut finish = api::Finish {
        id: from.claim.job,
        token: from.claim.token,
        outcome: JobOutcome::GivenBack,
        result: None,
        error: None,
        retry: None,
        after_ms: None,
    };
    match &from.end {
        JobEnd::Completed { result } => {
            finish.outcome = JobOutcome::Completed;
            finish.result.clone_from(result);
        }
        JobEnd::Failed { error, retry_mode } => {
            finish.outcome = JobOutcome::Failed;
            finish.error = Some(error.clone());
            match retry_mode {
                RetryMode::Policy => {}
                RetryMode::After(wait) => finish.after_ms = Some(millis(*wait)),
                RetryMode::Never => finish.retry = Some(false),
            }
        }
        JobEnd::Snoozed(wait) => {
            finish.outcome = JobOutcome::Snoozed;
            finish.after_ms = Some(millis(*wait));
        }
        JobEnd::Returned => {}
    }
    finish
}

pub(crate) fn finished(from: &api::FinishResult) -> JobFinished {
    match (from.state, from.run_at) {
        (FinishState::Completed, _) => JobFinished::Completed,
        (FinishState::Failed, _) => JobFinished::Failed,
        (FinishState::Queued, run_at) => JobFinished::Queued {
            run_at: run_at.unwrap_or_default(),
        },
        (FinishState::LeaseLost, _) => JobFinished::LeaseLost,
        (FinishState::NotWritten, _) => JobFinished::NotWritten,
    }
}
