//! A task's job over HTTP: put into its queue once, waited for until it has ended. Knows no workflow.

use crate::activities::beat;
use leasehold_client::api::Code;
use leasehold_client::api::job::{Job, NewJob};
use leasehold_client::api::queue::Backoff;
use leasehold_client::{Client, ClientError};
use leasehold_core::duration::millis;
use leasehold_core::{JobId, JobStatus};
use leasehold_engine_temporal::graph_payload::{Done, JobSeen, TaskInput};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::error::ApplicationFailure;

/// The first wait between two looks at a job.
const LOOK_FIRST: Duration = Duration::from_millis(50);
/// The longest.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// How long a repetition finds the same job by its key, also when that has ended. It is needed only until a heartbeat has told Temporal which job it is, so this is
/// how long all workers and servers may be away at that very moment; each key is a row that is kept for so long.
const DEDUP_WINDOW: Duration = Duration::from_secs(86_400);

/// What is known of the job that is waited for.
pub(crate) struct Waiting(Mutex<Option<JobSeen>>);

impl Waiting {
    pub(crate) fn new(earlier: Option<JobSeen>) -> Self {
        Self(Mutex::new(earlier))
    }

    pub(crate) fn seen(&self) -> Option<JobSeen> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, seen: JobSeen) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.replace(seen) != Some(seen)
    }
}

/// Waits for the end of the task's job, which is put into its queue unless it is there.
pub(crate) async fn done(
    client: &Client,
    ctx: &ActivityContext,
    input: &TaskInput,
    waiting: &Waiting,
) -> Result<Done, ActivityError> {
    let job = match waiting.seen() {
        Some(seen) => seen.job,
        None => enqueue(client, input).await?,
    };
    let mut wait = LOOK_FIRST;
    let mut attempts = 0;
    loop {
        if waiting.see(JobSeen { job, attempts }) {
            beat(ctx, waiting.seen()).await;
        }
        let seen = match client.job_get(job).await {
            Ok(seen) => seen,
            Err(error) if error.code() == Some(Code::NotFound) => return Err(gone(job, input)),
            Err(error) => return Err(unreached(&error)),
        };
        attempts = seen.attempts;
        match seen.status {
            JobStatus::Completed => {
                return Ok(Done {
                    attempts,
                    job: Some(job),
                    output: seen.result,
                });
            }
            JobStatus::Failed => return Err(failed(&seen)),
            JobStatus::Queued | JobStatus::Running => {}
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LOOK_MAX);
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
        ..NewJob::new(input.kind.clone(), input.payload.clone())
    };
    let trace = input.trace.as_deref();
    match client.job_enqueue_traced(&input.queue, &job, trace).await {
        Ok(enqueued) => Ok(enqueued.id),
        Err(error) => Err(refused(&error, input)),
    }
}

/// What the job's own retry policy has decided is final.
fn failed(job: &Job) -> ActivityError {
    let error = job.last_error.as_deref().unwrap_or("the job failed");
    ApplicationFailure::builder(error)
        .non_retryable(true)
        .details(JobSeen {
            job: job.id,
            attempts: job.attempts,
        })
        .build()
        .into()
}

fn gone(job: JobId, input: &TaskInput) -> ActivityError {
    let queue = &input.queue;
    never(format!(
        "job {job} of queue `{queue}` is no longer there: its queue does not keep completed jobs, or it was pruned"
    ))
}

fn refused(error: &ClientError, input: &TaskInput) -> ActivityError {
    match error.code() {
        Some(Code::Forbidden | Code::NotFound) => never(format!(
            "the key of `leasehold worker` does not open the queue `{}`",
            input.queue
        )),
        // What is wrong with the job itself is wrong at every attempt.
        Some(Code::Invalid | Code::InvalidParameter | Code::MalformedJson | Code::BodyTooLarge) => {
            never(format!("the queue `{}` refuses it: {error}", input.queue))
        }
        _ => unreached(error),
    }
}

fn unreached(error: &ClientError) -> ActivityError {
    again(&error.to_string(), error.retry_after())
}

fn never(error: String) -> ActivityError {
    ApplicationFailure::non_retryable(error).into()
}

/// A failure after which Temporal tries again.
pub(crate) fn again(error: &str, after: Option<Duration>) -> ActivityError {
    ApplicationFailure::builder(error)
        .maybe_next_retry_delay(after)
        .build()
        .into()
}
