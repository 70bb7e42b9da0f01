//! The activities of the graph workflow: an HTTP call, a job, and the end hint. Decides nothing about a graph.

use crate::policy::HEARTBEAT;
use crate::task::{self, JobWait};
use leasehold_client::Client;
use leasehold_engine_temporal::TemporalEngine;
use leasehold_engine_temporal::graph_payload::{
    CallInput, EndedInput, JobProgress, NodeResult, TaskInput,
};
use leasehold_outbound::Outbound;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use temporalio_sdk::activities::{ActivityContext, ActivityError, activities};
use temporalio_sdk::error::ApplicationFailure;
use tokio_util::sync::CancellationToken;

/// The dependencies of the activities.
pub(crate) struct Activities {
    pub(crate) client: Client,
    pub(crate) outbound: Outbound,
    /// Describes workflows.
    pub(crate) engine: TemporalEngine,
    /// Cancelled when the worker stops.
    pub(crate) stop: CancellationToken,
}

#[activities]
impl Activities {
    /// Makes an HTTP call.
    #[activity(name = "http")]
    pub(crate) async fn call(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: CallInput,
    ) -> Result<NodeResult, ActivityError> {
        let timeout = Duration::from_millis(input.timeout_ms);
        let trace = input.trace.as_deref();
        let call = self.outbound.call_traced(&input.call, timeout, trace);
        let Some(result) = with_heartbeats(&ctx, || None, call).await else {
            return Err(self.cancelled_error());
        };
        match result {
            Ok(output) => Ok(NodeResult {
                attempts: ctx.info().attempt,
                job: None,
                output: Some(output),
            }),
            Err(error) => Err(ApplicationFailure::builder(error.message)
                .non_retryable(!error.is_retryable)
                .maybe_next_retry_delay(error.retry_after)
                .build()
                .into()),
        }
    }

    /// Enqueues a job and waits for its end.
    #[activity(name = "task")]
    pub(crate) async fn task(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: TaskInput,
    ) -> Result<NodeResult, ActivityError> {
        // An earlier attempt may have recorded the job in its heartbeat.
        let earlier: Option<JobProgress> =
            ctx.heartbeat_details().deserialize().unwrap_or_default();
        let wait = JobWait::new(earlier);
        let work = async {
            tokio::select! {
                end = task::run_job(&self.client, &ctx, &input, &wait) => end,
                () = self.stop.cancelled() => Err(task::retryable("the worker stops; another worker continues", None)),
            }
        };
        let end = with_heartbeats(&ctx, || wait.progress(), work).await;
        match end {
            Some(end) => end,
            None => {
                self.cancel_job(&input, &wait).await;
                Err(self.cancelled_error())
            }
        }
    }

    /// Hints to the server that an execution is about to end.
    #[activity(name = "ended")]
    pub(crate) async fn ended(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: EndedInput,
    ) -> Result<(), ActivityError> {
        // Only a hint: the server's reconciler finds the end anyway.
        if let Err(error) = self.client.execution_ended(input.execution_id).await {
            tracing::debug!(execution = %input.execution_id, %error, "failed to send the end hint to the server");
        }
        Ok(())
    }

    /// Cancels the job if the workflow has ended. Temporal also cancels an activity after a missed heartbeat, and its next attempt needs the job, so
    /// the activity describes the workflow first.
    async fn cancel_job(&self, input: &TaskInput, wait: &JobWait) {
        let Some(progress) = wait.progress() else {
            return;
        };
        if self.stop.is_cancelled() || !self.has_ended(input).await {
            return;
        }
        if let Err(error) = self.client.job_cancel(progress.job).await {
            tracing::debug!(job = %progress.job, %error, "failed to cancel the job of an ended execution");
        }
    }

    async fn has_ended(&self, input: &TaskInput) -> bool {
        use leasehold_engine::{Description, Engine};
        matches!(
            self.engine.describe(input.execution_id).await,
            Ok(Description::Ended { .. } | Description::NotFound)
        )
    }

    /// Returns the error of a cancelled activity. If the worker stops, the error is retryable, so that the node is not lost.
    fn cancelled_error(&self) -> ActivityError {
        if self.stop.is_cancelled() {
            return task::retryable("the worker stopped before the activity was done", None);
        }
        ActivityError::cancelled()
    }
}

/// Runs the work and sends a heartbeat with the job's progress every few seconds. Returns `None` if the activity was cancelled.
async fn with_heartbeats<T>(
    ctx: &ActivityContext,
    progress: impl Fn() -> Option<JobProgress>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = ctx.cancelled() => return None,
            () = tokio::time::sleep(HEARTBEAT) => heartbeat(ctx, progress()).await,
        }
    }
}

/// Sends a heartbeat. A failed one is dropped; the next one follows.
pub(crate) async fn heartbeat(ctx: &ActivityContext, progress: Option<JobProgress>) {
    let sent = match progress {
        Some(progress) => ctx.record_heartbeat(progress).await,
        None => ctx.record_heartbeat(()).await,
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "failed to send a heartbeat");
    }
}
