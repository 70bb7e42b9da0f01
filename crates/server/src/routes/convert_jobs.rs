//! Conversions between store types and JSON types for queues, jobs, locks and instances. Rejects contradictory fields; no other logic.

use crate::api_error::{ApiError, ApiResult};
use leasehold_api::instance::{Instance, Lock};
use leasehold_api::job::{self as api, FinishState};
use leasehold_api::queue::{AllWorkspaces, Backoff, JobCounts, Queue, SharedWith};
use leasehold_core::duration::millis;
use leasehold_core::job::{
    ClaimedJob, JobEnd, JobFinish, JobFinished, JobRef, JobsClaimed, RetryMode,
};
use leasehold_core::key::Payloads;
use leasehold_core::{JobId, JsonText, Timestamp, retry};
use leasehold_store as store;
use leasehold_store::job::{Dedup, JobStart};
use leasehold_store::queue::QueueOwnership;
use std::time::Duration;

pub(super) fn backoff(from: retry::Backoff) -> Backoff {
    Backoff {
        base_ms: millis(from.base),
        factor: from.factor,
        max_ms: millis(from.max),
        jitter: from.jitter,
    }
}

pub(super) fn to_backoff(from: Backoff) -> retry::Backoff {
    retry::Backoff {
        base: Duration::from_millis(from.base_ms),
        factor: from.factor,
        max: Duration::from_millis(from.max_ms),
        jitter: from.jitter,
    }
}

pub(super) fn queue(from: store::queue::Queue) -> Queue {
    let settings = from.settings;
    Queue {
        name: from.name,
        limit: settings.limit,
        paused: settings.paused,
        keep_completed: settings.keep_completed,
        lease_ms: millis(settings.lease),
        max_attempts: settings.retry.max_attempts,
        backoff: backoff(settings.retry.backoff),
        timeout_ms: settings.timeout.map(millis),
        created_at: from.created_at,
        owner: None,
        shared_with: None,
    }
}

/// A queue as administrators see it. None: the queue was just created, for the installation.
pub(super) fn queue_with(from: store::queue::Queue, ownership: Option<QueueOwnership>) -> Queue {
    let (owner, shared_with) = match ownership {
        Some(ownership) => (ownership.owner, shared_with(ownership.shared_with)),
        None => (None, SharedWith::Workspaces(Vec::new())),
    };
    Queue {
        owner: Some(owner),
        shared_with: Some(shared_with),
        ..queue(from)
    }
}

fn shared_with(from: store::queue::SharedWith) -> SharedWith {
    match from {
        store::queue::SharedWith::All => SharedWith::ALL,
        store::queue::SharedWith::Workspaces(names) => SharedWith::Workspaces(names),
    }
}

pub(super) fn to_shared_with(from: SharedWith) -> store::queue::SharedWith {
    match from {
        SharedWith::All(AllWorkspaces::All) => store::queue::SharedWith::All,
        SharedWith::Workspaces(names) => store::queue::SharedWith::Workspaces(names),
    }
}

pub(super) fn counts(from: store::queue::JobCounts) -> JobCounts {
    JobCounts {
        ready: from.ready,
        scheduled: from.scheduled,
        running: from.running,
        completed: from.completed,
        failed: from.failed,
    }
}

pub(super) fn job(from: store::job::Job, payloads: Payloads) -> api::Job {
    let hidden = payloads == Payloads::Hidden;
    let shown = |value: Option<JsonText>| value.filter(|_| !hidden);
    api::Job {
        id: from.id,
        queue: from.queue,
        kind: from.kind,
        status: from.status,
        priority: from.priority,
        payload: shown(Some(from.payload)).unwrap_or_default(),
        payload_hidden: hidden,
        run_at: from.run_at,
        attempts: from.attempts,
        max_attempts: from.retry.max_attempts,
        backoff: backoff(from.retry.backoff),
        timeout_ms: from.timeout.map(millis),
        dedup_key: from.dedup_key,
        claimed_by: from.claimed_by,
        claimed_at: from.claimed_at,
        lease_expires_at: from.lease_expires_at,
        token: from.token,
        progress: shown(from.progress),
        result: shown(from.result),
        last_error: from.last_error.filter(|_| !hidden),
        created_at: from.created_at,
        execution: from.execution,
        finished_at: from.finished_at,
    }
}

pub(super) fn claimed(from: JobsClaimed) -> api::ClaimedJobs {
    api::ClaimedJobs {
        jobs: from.jobs.into_iter().map(claimed_job).collect(),
        at_limit: from.at_limit,
        next_due_in_ms: from.next_due_in.map(millis),
    }
}

fn claimed_job(from: ClaimedJob) -> api::ClaimedJob {
    api::ClaimedJob {
        id: from.id,
        token: from.token,
        kind: from.kind,
        payload: from.payload,
        priority: from.priority,
        attempt: from.attempt,
        max_attempts: from.retry.max_attempts,
        backoff: backoff(from.retry.backoff),
        timeout_ms: from.timeout.map(millis),
        progress: from.progress,
        last_error: from.last_error,
        trace_context: from.trace_context,
        created_at: from.created_at,
        lease_ms: millis(from.lease),
        lease_expires_at: from.lease_expires_at,
    }
}

pub(super) fn enqueued(from: store::job::EnqueuedJob) -> api::EnqueuedJob {
    api::EnqueuedJob {
        id: from.id,
        inserted: !from.existing,
    }
}

pub(super) fn finished(id: JobId, from: JobFinished) -> api::FinishResult {
    let (state, run_at) = match from {
        JobFinished::Completed => (FinishState::Completed, None),
        JobFinished::Failed => (FinishState::Failed, None),
        JobFinished::Queued { run_at } => (FinishState::Queued, Some(run_at)),
        JobFinished::LeaseLost => (FinishState::LeaseLost, None),
        JobFinished::NotWritten => (FinishState::NotWritten, None),
    };
    api::FinishResult { id, state, run_at }
}

pub(super) fn lock(from: store::lock::LockState, now: Timestamp) -> Lock {
    Lock {
        held: from.until > now,
        name: from.name,
        owner: from.owner,
        locked_at: from.locked_at,
        until: from.until,
        token: from.token,
    }
}

pub(super) fn instance(from: store::instance::Instance) -> Instance {
    Instance {
        id: from.id,
        version: from.version,
        dispatches: from.dispatches,
        listens: from.listens,
        started_at: from.started_at,
        seen_at: from.seen_at,
    }
}

/// Builds a job to enqueue. `at` is its JSON pointer in the body.
pub(super) fn new_job(
    at: &str,
    queue: &str,
    from: api::NewJob,
    trace_context: Option<&str>,
) -> ApiResult<store::job::NewJob> {
    let start = match (from.run_at, from.run_in_ms) {
        (None, None) => JobStart::Now,
        (Some(moment), None) => JobStart::At(moment),
        (None, Some(wait)) => JobStart::In(Duration::from_millis(wait)),
        (Some(_), Some(_)) => {
            return Err(invalid_field(
                at,
                "run_in_ms",
                "cannot be combined with run_at",
            ));
        }
    };
    let window = from.dedup_window_ms.map(Duration::from_millis);
    let dedup = from.dedup_key.map(|key| Dedup { key, window });
    if window.is_some() && dedup.is_none() {
        return Err(invalid_field(at, "dedup_window_ms", "requires dedup_key"));
    }
    Ok(store::job::NewJob {
        queue: queue.to_owned(),
        kind: from.kind,
        group: None,
        payload: from.payload,
        priority: from.priority,
        start,
        max_attempts: from.max_attempts,
        backoff: from.backoff.map(to_backoff),
        timeout: from.timeout_ms.map(Duration::from_millis),
        dedup,
        trace_context: trace_context.map(str::to_owned),
    })
}

/// Builds a finish. `at` is its JSON pointer in the body.
pub(super) fn finish(at: &str, from: api::Finish) -> ApiResult<JobFinish> {
    let outcome = from.outcome;
    let check_allowed = |field: &str, given: bool, with: &[api::JobOutcome]| {
        if given && !with.contains(&outcome) {
            return Err(invalid_field(at, field, "is not allowed with this outcome"));
        }
        Ok(())
    };
    check_allowed(
        "result",
        from.result.is_some(),
        &[api::JobOutcome::Completed],
    )?;
    check_allowed("error", from.error.is_some(), &[api::JobOutcome::Failed])?;
    check_allowed("retry", from.retry.is_some(), &[api::JobOutcome::Failed])?;
    let waits = [api::JobOutcome::Failed, api::JobOutcome::Snoozed];
    check_allowed("after_ms", from.after_ms.is_some(), &waits)?;
    let after = from.after_ms.map(Duration::from_millis);
    let end = match outcome {
        api::JobOutcome::Completed => JobEnd::Completed {
            result: from.result,
        },
        api::JobOutcome::Failed => {
            let error = from
                .error
                .ok_or_else(|| invalid_field(at, "error", "is required with the outcome failed"))?;
            let retry_mode = match (from.retry, after) {
                (Some(false), None) => RetryMode::Never,
                (Some(false), Some(_)) => {
                    return Err(invalid_field(
                        at,
                        "after_ms",
                        "cannot be combined with `retry: false`",
                    ));
                }
                (None | Some(true), Some(wait)) => RetryMode::After(wait),
                (None | Some(true), None) => RetryMode::Policy,
            };
            JobEnd::Failed { error, retry_mode }
        }
        api::JobOutcome::Snoozed => JobEnd::Snoozed(after.ok_or_else(|| {
            invalid_field(at, "after_ms", "is required with the outcome snoozed")
        })?),
        api::JobOutcome::GivenBack => JobEnd::Returned,
    };
    Ok(JobFinish {
        claim: JobRef {
            job: from.id,
            token: from.token,
        },
        end,
    })
}

fn invalid_field(at: &str, field: &str, why: &str) -> ApiError {
    ApiError::invalid(format!("{at}/{field}"), format!("{field} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, to_value};

    #[test]
    fn unwritten_finish_and_lost_lease_have_different_states() {
        let shown = |answer| to_value(finished(JobId(7), answer)).ok();
        let unwritten = shown(JobFinished::NotWritten);
        assert_eq!(unwritten, Some(json!({"id": 7, "state": "not_written"})));
        let lost = shown(JobFinished::LeaseLost);
        assert_eq!(lost, Some(json!({"id": 7, "state": "lease_lost"})));
    }
}
