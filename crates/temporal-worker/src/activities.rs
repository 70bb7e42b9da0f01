//! The activities of a graph's workflow: a call, a job to have done, a word at the end. Decides nothing about a graph.

use crate::policy::HEARTBEAT;
use crate::task::{self, Waiting};
use leasehold_client::Client;
use leasehold_engine_temporal::TemporalEngine;
use leasehold_engine_temporal::graph_payload::{CallInput, Done, EndedInput, JobSeen, TaskInput};
use leasehold_outbound::Outbound;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use temporalio_sdk::activities::{ActivityContext, ActivityError, activities};
use temporalio_sdk::error::ApplicationFailure;
use tokio_util::sync::CancellationToken;

/// What the activities need.
pub(crate) struct Activities {
    pub(crate) client: Client,
    pub(crate) outbound: Outbound,
    /// Tells whether a workflow has ended.
    pub(crate) engine: TemporalEngine,
    /// The worker is told to stop.
    pub(crate) stop: CancellationToken,
}

#[activities]
impl Activities {
    /// Makes a call.
    #[activity(name = "http")]
    pub(crate) async fn call(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: CallInput,
    ) -> Result<Done, ActivityError> {
        let timeout = Duration::from_millis(input.timeout_ms);
        let trace = input.trace.as_deref();
        let call = self.outbound.call_traced(&input.call, timeout, trace);
        let Some(answer) = alive(&ctx, || None, call).await else {
            return Err(self.unwanted());
        };
        match answer {
            Ok(output) => Ok(Done {
                attempts: ctx.info().attempt,
                job: None,
                output: Some(output),
            }),
            Err(error) => Err(ApplicationFailure::builder(error.message)
                .non_retryable(!error.again)
                .maybe_next_retry_delay(error.after)
                .build()
                .into()),
        }
    }

    /// Has a job done: puts it into its queue and waits for its end.
    #[activity(name = "task")]
    pub(crate) async fn task(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: TaskInput,
    ) -> Result<Done, ActivityError> {
        // An earlier attempt may have told which job it is.
        let earlier: Option<JobSeen> = ctx.heartbeat_details().deserialize().unwrap_or_default();
        let waiting = Waiting::new(earlier);
        let work = async {
            tokio::select! {
                end = task::done(&self.client, &ctx, &input, &waiting) => end,
                () = self.stop.cancelled() => Err(task::again("the worker stops; another goes on", None)),
            }
        };
        let end = alive(&ctx, || waiting.seen(), work).await;
        match end {
            Some(end) => end,
            None => {
                self.give_up(&input, &waiting).await;
                Err(self.unwanted())
            }
        }
    }

    /// Tells the server that an execution is about to end.
    #[activity(name = "ended")]
    pub(crate) async fn ended(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: EndedInput,
    ) -> Result<(), ActivityError> {
        // Nothing depends on it: the server looks by itself.
        if let Err(error) = self.client.execution_ended(input.execution_id).await {
            tracing::debug!(execution = %input.execution_id, %error, "the server was not told of an end");
        }
        Ok(())
    }

    /// Temporal also takes an activity away that it has not heard of in time; its next attempt wants the same job. So the job is only cancelled
    /// when the workflow has certainly ended.
    async fn give_up(&self, input: &TaskInput, waiting: &Waiting) {
        let Some(seen) = waiting.seen() else {
            return;
        };
        if self.stop.is_cancelled() || !self.has_ended(input).await {
            return;
        }
        if let Err(error) = self.client.job_cancel(seen.job).await {
            tracing::debug!(job = %seen.job, %error, "the job of an ended execution was not cancelled");
        }
    }

    async fn has_ended(&self, input: &TaskInput) -> bool {
        use leasehold_engine::{Description, Engine};
        matches!(
            self.engine.describe(input.execution_id).await,
            Ok(Description::Ended { .. } | Description::NotFound)
        )
    }

    /// Whoever has been cancelled says so; a worker that stops is no reason to give a node up.
    fn unwanted(&self) -> ActivityError {
        if self.stop.is_cancelled() {
            return task::again("the worker stopped before it was done", None);
        }
        ActivityError::cancelled()
    }
}

/// Does the work, and tells Temporal every few seconds that it goes on and how far it is; none once it is no longer wanted.
async fn alive<T>(
    ctx: &ActivityContext,
    seen: impl Fn() -> Option<JobSeen>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = ctx.cancelled() => return None,
            () = tokio::time::sleep(HEARTBEAT) => beat(ctx, seen()).await,
        }
    }
}

/// What cannot be written down is not told; the next is.
pub(crate) async fn beat(ctx: &ActivityContext, seen: Option<JobSeen>) {
    let told = match seen {
        Some(seen) => ctx.record_heartbeat(seen).await,
        None => ctx.record_heartbeat(()).await,
    };
    if let Err(error) = told {
        tracing::debug!(%error, "a heartbeat could not be written");
    }
}
