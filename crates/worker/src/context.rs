//! What a handler is told of its job, and what it can say of it while it works.

use crate::held::Held;
use crate::outcome::JobError;
use crate::shared::Shared;
use leasehold_core::limits::PAYLOAD_MAX_BYTES;
use leasehold_core::{JobId, JsonText, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What became of a report of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is kept.
    Kept,
    /// The lease was lost: the handler is dropped where it waits next, and nothing it does counts.
    LeaseLost,
}

/// The job that a handler works on.
#[derive(Clone)]
pub struct JobContext {
    held: Arc<Held>,
    shared: Arc<Shared>,
    deadline: Option<Instant>,
}

impl JobContext {
    pub(crate) fn new(held: Arc<Held>, shared: Arc<Shared>, deadline: Option<Instant>) -> Self {
        Self {
            held,
            shared,
            deadline,
        }
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.held.job.id
    }

    /// The queue it came from.
    pub fn queue(&self) -> &str {
        &self.held.queue
    }

    /// What sort of work it is.
    pub fn kind(&self) -> &str {
        &self.held.job.kind
    }

    /// The name of the worker that has it.
    pub fn worker(&self) -> &str {
        &self.shared.options.name
    }

    /// Its payload, read as another type.
    ///
    /// # Errors
    /// If it is not of that type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.held.job.payload.read()
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.held.job.attempt
    }

    /// How many attempts there are at most.
    pub fn max_attempts(&self) -> u32 {
        self.held.job.retry.max_attempts
    }

    /// Whether the job has failed for good if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// The fencing token: higher than that of every earlier owner of the job. Whatever is written outside shows it, and whoever keeps what was
    /// written refuses a lower one than the highest it has seen.
    pub fn token(&self) -> i64 {
        self.held.job.token
    }

    /// When the job was enqueued, by the store's clock.
    pub fn created_at(&self) -> Timestamp {
        self.held.job.created_at
    }

    /// The trace context of whoever enqueued it.
    pub fn trace_context(&self) -> Option<&str> {
        self.held.job.trace_context.as_deref()
    }

    /// What went wrong at the last attempt.
    pub fn last_error(&self) -> Option<&str> {
        self.held.job.last_error.as_deref()
    }

    /// What an earlier attempt reported last, if it can be read as this.
    ///
    /// # Errors
    /// If it was of another type.
    pub fn last_progress<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.held
            .job
            .progress
            .as_ref()
            .map(JsonText::read)
            .transpose()
    }

    /// When the attempt counts as timed out, by this process's monotonic clock; none if it may take any time.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns when the handler shall stop: its lease is lost, its time is up, or the worker stops and has waited long enough.
    ///
    /// After a lost lease or at the deadline the handler is dropped at once, so this is for what it has set going elsewhere. After a
    /// stop it has a short while to save what it can and answer.
    pub async fn cancelled(&self) {
        self.held.cancel.cancelled().await;
    }

    /// The same as a token, for tasks and threads that the handler sets going.
    pub fn cancellation(&self) -> CancellationToken {
        self.held.cancel.clone()
    }

    /// Returns when the worker begins to stop: a long handler may save its progress and snooze, to go on elsewhere.
    pub async fn stopping(&self) {
        self.shared.stopping.cancelled().await;
    }

    /// Whether the worker is stopping.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.is_cancelled()
    }

    /// Keeps what the handler says of its progress, for people and for the next attempt.
    ///
    /// # Errors
    /// If it is no JSON, too large, or the store did not take it.
    pub async fn progress<T: Serialize + ?Sized>(
        &self,
        progress: &T,
    ) -> Result<Progress, JobError> {
        let text = JsonText::of(progress)?;
        let bytes = text.as_str().len();
        if bytes > PAYLOAD_MAX_BYTES {
            let message = format!(
                "the progress has {bytes} bytes of JSON, more than {PAYLOAD_MAX_BYTES} are not kept"
            );
            return Err(JobError::new(message));
        }
        let claim = self.held.claim();
        let kept = self.shared.source.progress(self.worker(), claim, &text);
        if kept.await? {
            return Ok(Progress::Kept);
        }
        self.shared.lose(&self.held, "its progress was refused");
        Ok(Progress::LeaseLost)
    }
}
