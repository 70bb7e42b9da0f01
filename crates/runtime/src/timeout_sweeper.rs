//! Ends executions of the embedded engine that timed out or whose node lost its last lease. Logs each once.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::ExecutionEnd;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::graph::EndedExecution;
use std::sync::Arc;
use std::time::Duration;

/// How timed-out executions are ended.
#[derive(Clone, Debug)]
pub struct TimeoutSweeperOptions {
    /// Time between rounds.
    pub interval: Duration,
    /// How many executions one call ends, which keeps its transaction short.
    pub batch: u32,
}

impl Default for TimeoutSweeperOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            batch: 100,
        }
    }
}

/// Ends executions that timed out or whose node lost its last lease.
///
/// Every instance runs one, without a lock: the store ends each execution once.
pub struct TimeoutSweeper {
    store: Arc<dyn Store>,
    owner: String,
    options: TimeoutSweeperOptions,
}

impl TimeoutSweeper {
    /// Creates a timeout sweeper that writes as `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: TimeoutSweeperOptions) -> Self {
        Self {
            store,
            owner: owner.to_owned(),
            options,
        }
    }
}

#[async_trait]
impl Service for TimeoutSweeper {
    type Error = Error;

    fn name(&self) -> &'static str {
        "timeout sweeper"
    }

    async fn run_once(&self) -> Result<Next> {
        let TimeoutSweeperOptions { interval, batch } = self.options;
        let expired = self.store.graph_expire(&self.owner, batch).await?;
        expired.iter().for_each(log);
        if expired.len() < batch as usize {
            Ok(Next::After(interval))
        } else {
            Ok(Next::Now)
        }
    }
}

fn log(expired: &EndedExecution) {
    let why = match expired.end {
        ExecutionEnd::TimedOut => "timeout passed",
        ExecutionEnd::Completed
        | ExecutionEnd::Failed
        | ExecutionEnd::Cancelled
        | ExecutionEnd::Terminated
        | ExecutionEnd::Lost => "lease of a node's last attempt expired",
    };
    tracing::warn!(execution = %expired.execution, request = %expired.request, status = %expired.status, end = ?expired.end, error = expired.error,
        "execution ended: {why}");
}
