//! Describes executions in the engine and finishes those that ended there. Nothing else frees the slot of a running execution.

use crate::error::Result;
use futures::StreamExt;
use leasehold_core::{ExecutionEnd, ExecutionId, RequestId, Timestamp};
use leasehold_engine::{Description, Engine, Error};
use leasehold_store::Store;
use leasehold_store::execution::{Execution, ExecutionFinish, ExecutionFinished};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How many ends one statement writes, so that a slot is freed before a long list is done.
const FLUSH_SIZE: usize = 100;
/// How long ends are collected before they are written.
const FLUSH_DELAY: Duration = Duration::from_millis(500);

/// Describes executions in the engine and finishes those that ended there.
pub(crate) struct ExecutionChecker {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) owner: String,
    pub(crate) concurrency: usize,
}

/// What the engine reported about executions that are RUNNING in the store.
#[derive(Debug, Default)]
pub(crate) struct CheckOutcome {
    /// Ended in the engine, and now finished in the store.
    pub(crate) ended: Vec<ExecutionId>,
    /// When each ended by the engine's clock, where the engine reported it.
    pub(crate) ended_at: HashMap<ExecutionId, Timestamp>,
    /// When the first of those that the engine knew, ended or not, was admitted.
    pub(crate) known_from: Option<Timestamp>,
    /// The requests of those that are open in the engine.
    pub(crate) open: Vec<RequestId>,
    /// Unknown to the engine.
    pub(crate) missing: Vec<Execution>,
    /// The error if the engine did not answer for some.
    pub(crate) error: Option<Error>,
    /// Not finished, because another transaction has locked their rows.
    pub(crate) busy: Vec<ExecutionId>,
}

/// What was written in the store.
#[derive(Debug, Default)]
pub(crate) struct EndsWritten {
    /// The executions that this call finished.
    pub(crate) ended: Vec<ExecutionId>,
    /// Not finished, because another transaction has locked their rows.
    pub(crate) busy: Vec<ExecutionId>,
}

impl CheckOutcome {
    fn knows(&mut self, execution: &Execution) {
        let first = self.known_from.get_or_insert(execution.started_at);
        *first = execution.started_at.min(*first);
    }

    fn add(&mut self, written: EndsWritten) {
        self.ended.extend(written.ended);
        self.busy.extend(written.busy);
    }
}

impl ExecutionChecker {
    /// Describes these executions and finishes the ended ones.
    pub(crate) async fn check(&self, executions: Vec<Execution>) -> Result<CheckOutcome> {
        let mut answers = futures::stream::iter(executions)
            .map(|execution| async {
                let answer = self.engine.describe(execution.id).await;
                (execution, answer)
            })
            .buffer_unordered(self.concurrency.max(1));
        let mut outcome = CheckOutcome::default();
        let mut ends = Vec::new();
        loop {
            let next = match timeout(FLUSH_DELAY, answers.next()).await {
                Ok(next) => next,
                // The other answers take long; write the known ends now.
                Err(_elapsed) => {
                    outcome.add(self.finish(std::mem::take(&mut ends)).await?);
                    continue;
                }
            };
            let Some((execution, answer)) = next else {
                break;
            };
            match answer {
                Ok(Description::Ended { end, error, at }) => {
                    outcome.knows(&execution);
                    outcome.ended_at.extend(at.map(|at| (execution.id, at)));
                    ends.push(ExecutionFinish {
                        execution: execution.id,
                        end,
                        error,
                    });
                }
                Ok(Description::Open) => {
                    outcome.knows(&execution);
                    outcome.open.push(execution.request);
                }
                Ok(Description::NotFound) => outcome.missing.push(execution),
                // One unusable answer must not block the others; the full sweep asks again.
                Err(Error::Failed(error)) => {
                    tracing::warn!(execution = %execution.id, error, "engine returned an unusable description of an execution; retrying");
                }
                Err(error @ Error::Unavailable(_)) => outcome.error = Some(error),
            }
            if ends.len() >= FLUSH_SIZE {
                outcome.add(self.finish(std::mem::take(&mut ends)).await?);
            }
        }
        outcome.add(self.finish(ends).await?);
        Ok(outcome)
    }

    /// Finishes executions in the store. One that cannot be written does not block the others.
    pub(crate) async fn finish(&self, ends: Vec<ExecutionFinish>) -> Result<EndsWritten> {
        match self.write(&ends).await {
            Ok(written) => return Ok(written),
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(_) => {}
        }
        let mut all = EndsWritten::default();
        for end in ends {
            match self.write(std::slice::from_ref(&end)).await {
                Ok(one) => {
                    all.ended.extend(one.ended);
                    all.busy.extend(one.busy);
                }
                Err(error) if error.is_retryable() => return Err(error.into()),
                Err(error) => tracing::error!(execution = %end.execution, %error,
                    "failed to write the end of an execution; it keeps its slot"),
            }
        }
        Ok(all)
    }

    async fn write(&self, ends: &[ExecutionFinish]) -> leasehold_store::Result<EndsWritten> {
        let mut written = EndsWritten::default();
        if ends.is_empty() {
            return Ok(written);
        }
        let outcomes = self.store.execution_finish(&self.owner, ends).await?;
        for (finish, outcome) in ends.iter().zip(outcomes) {
            if outcome == ExecutionFinished::Busy {
                written.busy.push(finish.execution);
            }
            if let ExecutionFinished::Finished {
                request, status, ..
            } = outcome
            {
                written.ended.push(finish.execution);
                if finish.end == ExecutionEnd::Lost {
                    tracing::error!(execution = %finish.execution, %request,
                        "engine no longer knows the execution; request failed as engine_lost");
                } else {
                    tracing::info!(execution = %finish.execution, %request, %status, end = ?finish.end,
                        "execution ended");
                }
            }
        }
        Ok(written)
    }
}
