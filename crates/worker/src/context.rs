//! The context that a handler gets: the job's properties, cancellation and progress reports.

use crate::leased_job::LeasedJob;
use crate::outcome::JobError;
use crate::shared::Shared;
use leasehold_core::limits::PAYLOAD_MAX_BYTES;
use leasehold_core::{JobId, JsonText, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The answer to a progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressResult {
    /// The store saved it.
    Saved,
    /// The lease is lost: the worker drops the handler at its next await, and its result does not count.
    LeaseLost,
}

/// The job that a handler runs.
#[derive(Clone)]
pub struct JobContext {
    job: Arc<LeasedJob>,
    shared: Arc<Shared>,
    deadline: Option<Instant>,
}

impl JobContext {
    pub(crate) fn new(job: Arc<LeasedJob>, shared: Arc<Shared>, deadline: Option<Instant>) -> Self {
        Self {
            job,
            shared,
            deadline,
        }
    }

    /// Returns the job's id.
    pub fn id(&self) -> JobId {
        self.job.claimed.id
    }

    /// Returns the queue the job came from.
    pub fn queue(&self) -> &str {
        &self.job.queue
    }

    /// Returns the job's kind, which chose the handler.
    pub fn kind(&self) -> &str {
        &self.job.claimed.kind
    }

    /// Returns the name of the worker that runs the job.
    pub fn worker(&self) -> &str {
        &self.shared.options.name
    }

    /// Deserializes the payload.
    ///
    /// # Errors
    /// Fails if the payload is not of that type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.job.claimed.payload.read()
    }

    /// Returns the number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.job.claimed.attempt
    }

    /// Returns the maximum number of attempts.
    pub fn max_attempts(&self) -> u32 {
        self.job.claimed.retry.max_attempts
    }

    /// Whether the job fails permanently if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// Returns the fencing token, which is higher than that of every earlier lease on the job. Send it with every external write; the external
    /// system must reject a token lower than the highest it has seen.
    pub fn token(&self) -> i64 {
        self.job.claimed.token
    }

    /// Returns when the job was enqueued, by the store's clock.
    pub fn created_at(&self) -> Timestamp {
        self.job.claimed.created_at
    }

    /// Returns the trace context of the caller that enqueued the job.
    pub fn trace_context(&self) -> Option<&str> {
        self.job.claimed.trace_context.as_deref()
    }

    /// Returns the error of the last attempt.
    pub fn last_error(&self) -> Option<&str> {
        self.job.claimed.last_error.as_deref()
    }

    /// Deserializes the last progress that an earlier attempt reported.
    ///
    /// # Errors
    /// Fails if the progress is not of that type.
    pub fn last_progress<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.job
            .claimed
            .progress
            .as_ref()
            .map(JsonText::read)
            .transpose()
    }

    /// Returns when the attempt times out, by this process's monotonic clock; `None` without a timeout.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns when the handler must stop: the lease is lost, the attempt timed out, or the worker shuts down and its drain timeout has passed.
    ///
    /// After a lost lease or a timeout the worker drops the handler at once; use this in tasks that the handler has spawned. After a
    /// shutdown the handler has the cancel grace period to save its progress and return.
    pub async fn cancelled(&self) {
        self.job.cancel.cancelled().await;
    }

    /// Returns the same signal as a token, for tasks and threads that the handler spawns.
    pub fn cancellation(&self) -> CancellationToken {
        self.job.cancel.clone()
    }

    /// Returns when the worker begins to stop. A long handler can save its progress and snooze, so that another worker continues.
    pub async fn stopping(&self) {
        self.shared.stopping.cancelled().await;
    }

    /// Whether the worker is stopping.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.is_cancelled()
    }

    /// Saves the progress of the job, for operators and for the next attempt.
    ///
    /// # Errors
    /// Fails if the progress does not serialize to JSON, is too large, or the store did not save it.
    pub async fn progress<T: Serialize + ?Sized>(
        &self,
        progress: &T,
    ) -> Result<ProgressResult, JobError> {
        let text = JsonText::of(progress)?;
        let bytes = text.as_str().len();
        if bytes > PAYLOAD_MAX_BYTES {
            let message = format!(
                "failed to save progress: {bytes} bytes of JSON, the limit is {PAYLOAD_MAX_BYTES}"
            );
            return Err(JobError::new(message));
        }
        let claim = self.job.claim();
        let saved = self.shared.source.progress(self.worker(), claim, &text);
        if saved.await? {
            return Ok(ProgressResult::Saved);
        }
        self.shared.lose_lease(&self.job, "progress_rejected");
        Ok(ProgressResult::LeaseLost)
    }
}
