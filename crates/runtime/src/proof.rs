//! Asks the engine what became of executions, and ends those that it says have ended. Nothing else frees a slot of what runs.

use crate::error::Result;
use futures::StreamExt;
use leasehold_core::{ExecutionEnd, ExecutionId, Timestamp};
use leasehold_engine::{Description, Engine, Error};
use leasehold_store::Store;
use leasehold_store::execution::{Execution, ExecutionFinish, ExecutionFinished};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Ends written at once: a slot need not wait until all of a long list is proven.
const WRITE_EVERY: usize = 100;
/// How long ends wait for others to be written with them.
const WRITE_AFTER: Duration = Duration::from_millis(500);

pub(crate) struct Proof {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) owner: String,
    pub(crate) concurrency: usize,
}

/// What the engine said of executions that were RUNNING here.
#[derive(Debug, Default)]
pub(crate) struct Proven {
    /// Ended there, and here now.
    pub(crate) ended: Vec<ExecutionId>,
    /// When each ended by the engine's clock, as far as it said so.
    pub(crate) ended_at: HashMap<ExecutionId, Timestamp>,
    /// How many it knew, ended or not.
    pub(crate) known: usize,
    /// Unknown there.
    pub(crate) missing: Vec<Execution>,
    /// Why the engine was not there to answer for some.
    pub(crate) failed: Option<Error>,
}

impl Proof {
    pub(crate) async fn of(&self, executions: Vec<Execution>) -> Result<Proven> {
        let mut answers = futures::stream::iter(executions)
            .map(|execution| async {
                let answer = self.engine.describe(execution.id).await;
                (execution, answer)
            })
            .buffer_unordered(self.concurrency.max(1));
        let mut proven = Proven::default();
        let mut ends = Vec::new();
        loop {
            let next = match timeout(WRITE_AFTER, answers.next()).await {
                Ok(next) => next,
                // The others take their time; what is known need not wait for them.
                Err(_elapsed) => {
                    let ended = self.finish(std::mem::take(&mut ends)).await?;
                    proven.ended.extend(ended);
                    continue;
                }
            };
            let Some((execution, answer)) = next else {
                break;
            };
            match answer {
                Ok(Description::Ended { end, error, at }) => {
                    proven.known += 1;
                    proven.ended_at.extend(at.map(|at| (execution.id, at)));
                    ends.push(ExecutionFinish {
                        execution: execution.id,
                        end,
                        error,
                    });
                }
                Ok(Description::Open) => proven.known += 1,
                Ok(Description::NotFound) => proven.missing.push(execution),
                // One strange answer must not hold up the others for ever; the sweep asks again.
                Err(Error::Failed(error)) => {
                    tracing::warn!(execution = %execution.id, error, "the engine's answer about an execution cannot be used");
                }
                Err(error @ Error::Unavailable(_)) => proven.failed = Some(error),
            }
            if ends.len() >= WRITE_EVERY {
                let ended = self.finish(std::mem::take(&mut ends)).await?;
                proven.ended.extend(ended);
            }
        }
        proven.ended.extend(self.finish(ends).await?);
        Ok(proven)
    }

    /// Ends executions here, and says which this call has ended. One that cannot be written does not keep the others from it.
    pub(crate) async fn finish(&self, ends: Vec<ExecutionFinish>) -> Result<Vec<ExecutionId>> {
        match self.write(&ends).await {
            Ok(ended) => return Ok(ended),
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(_) => {}
        }
        let mut ended = Vec::new();
        for end in ends {
            match self.write(std::slice::from_ref(&end)).await {
                Ok(one) => ended.extend(one),
                Err(error) if error.is_retryable() => return Err(error.into()),
                Err(error) => tracing::error!(execution = %end.execution, %error,
                    "the execution has ended, but its end cannot be written; it keeps its slot"),
            }
        }
        Ok(ended)
    }

    async fn write(&self, ends: &[ExecutionFinish]) -> leasehold_store::Result<Vec<ExecutionId>> {
        let mut ended = Vec::new();
        if ends.is_empty() {
            return Ok(ended);
        }
        let outcomes = self.store.execution_finish(&self.owner, ends).await?;
        for (finish, outcome) in ends.iter().zip(outcomes) {
            if let ExecutionFinished::Finished {
                request, status, ..
            } = outcome
            {
                ended.push(finish.execution);
                if finish.end == ExecutionEnd::Lost {
                    tracing::error!(execution = %finish.execution, %request,
                        "the engine no longer knows the execution; its request failed as engine_lost");
                } else {
                    tracing::info!(execution = %finish.execution, %request, %status, end = ?finish.end,
                        "execution ended");
                }
            }
        }
        Ok(ended)
    }
}
