//! The job of a task node over HTTP: enqueued once, polled until it has ended. Knows no workflow.

use crate::activities::heartbeat;
use leasehold_client::api::Code;
use leasehold_client::api::job::{Job, NewJob};
use leasehold_client::api::queue::Backoff;
use leasehold_client::{Client, ClientError};
use leasehold_core::duration::millis;
use leasehold_core::queue_access::refusal_text;
use leasehold_core::{JobId, JobStatus};
use leasehold_engine_temporal::graph_payload::{JobProgress, NodeResult, TaskInput};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::error::ApplicationFailure;

/// The first interval between polls of a job.
const POLL_INTERVAL_FIRST: Duration = Duration::from_millis(50);
/// The longest interval.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// How long the deduplication key finds the same job, even after it ended. Needed only until a heartbeat has recorded the job in Temporal, so this is
/// how long all workers and servers may be down at that moment. Each key is a row in the store for that time.
const DEDUP_WINDOW: Duration = Duration::from_secs(86_400);

/// The last known progress of the job.
pub(crate) struct JobWait(Mutex<Option<JobProgress>>);

impl JobWait {
    pub(crate) fn new(earlier: Option<JobProgress>) -> Self {
        Self(Mutex::new(earlier))
    }

    pub(crate) fn progress(&self) -> Option<JobProgress> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the progress. Returns whether it changed.
    fn update(&self, progress: JobProgress) -> bool {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.replace(progress) != Some(progress)
    }
}

/// Enqueues the task's job, unless it is known, and polls it until it has ended.
pub(crate) async fn run_job(
    client: &Client,
    ctx: &ActivityContext,
    input: &TaskInput,
    job_wait: &JobWait,
) -> Result<NodeResult, ActivityError> {
    let job = match job_wait.progress() {
        Some(progress) => progress.job,
        None => enqueue(client, input).await?,
    };
    let mut wait = POLL_INTERVAL_FIRST;
    let mut attempts = 0;
    loop {
        if job_wait.update(JobProgress { job, attempts }) {
            heartbeat(ctx, job_wait.progress()).await;
        }
        let current = match client.job_get(job).await {
            Ok(current) => current,
            Err(error) if error.code() == Some(Code::NotFound) => {
                return Err(job_missing(job, input));
            }
            Err(error) => return Err(server_error(&error)),
        };
        attempts = current.attempts;
        match current.status.known() {
            Some(JobStatus::Completed) => {
                return Ok(NodeResult {
                    attempts,
                    job: Some(job),
                    output: current.result,
                });
            }
            Some(JobStatus::Failed) => return Err(job_failed(&current)),
            Some(JobStatus::Queued | JobStatus::Running) | None => {}
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(POLL_INTERVAL_MAX);
    }
}

async fn enqueue(client: &Client, input: &TaskInput) -> Result<JobId, ActivityError> {
    let job = NewJob {
        priority: input.priority,
        max_attempts: Some(input.retry.max_attempts),
        backoff: Some(Backoff {
            base_ms: input.retry.base_ms,
            factor: input.retry.factor,
            max_ms: input.retry.max_ms,
            jitter: input.retry.jitter,
        }),
        timeout_ms: input.timeout_ms,
        dedup_key: Some(format!("{}/{}", input.execution_id, input.node_id)),
        dedup_window_ms: Some(millis(DEDUP_WINDOW)),
        workspace_id: input.workspace_id,
        ..NewJob::new(input.kind.clone(), input.payload.clone())
    };
    let trace = input.trace.as_deref();
    match client.job_enqueue_traced(&input.queue, &job, trace).await {
        Ok(enqueued) => Ok(enqueued.id),
        Err(error) => Err(enqueue_error(&error, input)),
    }
}

/// A permanent failure: the job's own retry policy has already been applied.
fn job_failed(job: &Job) -> ActivityError {
    let error = job.last_error.as_deref().unwrap_or("the job failed");
    ApplicationFailure::builder(error)
        .non_retryable(true)
        .details(JobProgress {
            job: job.id,
            attempts: job.attempts,
        })
        .build()
        .into()
}

fn job_missing(job: JobId, input: &TaskInput) -> ActivityError {
    let queue = &input.queue;
    permanent(format!(
        "job {job} of queue `{queue}` not found: the queue does not keep completed jobs, or the job was pruned"
    ))
}

fn enqueue_error(error: &ClientError, input: &TaskInput) -> ActivityError {
    match error.code() {
        Some(Code::QueueNotShared) => permanent(refusal_text(&input.queue)),
        Some(Code::Forbidden | Code::NotFound) => permanent(format!(
            "failed to enqueue the job: the key of `leasehold worker` has no access to queue `{}`",
            input.queue
        )),
        // An invalid job is invalid at every attempt.
        Some(Code::Invalid | Code::InvalidParameter | Code::MalformedJson | Code::BodyTooLarge) => {
            permanent(format!(
                "failed to enqueue the job in queue `{}`: {error}",
                input.queue
            ))
        }
        _ => server_error(error),
    }
}

fn server_error(error: &ClientError) -> ActivityError {
    retryable(&error.to_string(), error.retry_after())
}

fn permanent(error: String) -> ActivityError {
    ApplicationFailure::non_retryable(error).into()
}

/// A failure that Temporal retries.
pub(crate) fn retryable(error: &str, after: Option<Duration>) -> ActivityError {
    ApplicationFailure::builder(error)
        .maybe_next_retry_delay(after)
        .build()
        .into()
}
