//! Ends the executions of the embedded engine that time has ended: their timeout has passed, or a node's last lease ran out. Logs each once.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::ExecutionEnd;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::graph::EndedExecution;
use std::sync::Arc;
use std::time::Duration;

/// How executions that time has ended are ended.
#[derive(Clone, Debug)]
pub struct SettlerOptions {
    /// How often to look.
    pub interval: Duration,
    /// How many executions one call ends: one transaction stays short.
    pub batch: u32,
}

impl Default for SettlerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            batch: 100,
        }
    }
}

/// Ends executions whose graph can go no further.
///
/// Every instance looks, without a lock: the store ends each execution once.
pub struct Settler {
    store: Arc<dyn Store>,
    owner: String,
    options: SettlerOptions,
}

impl Settler {
    /// A settler that signs as `owner`.
    pub fn new(store: Arc<dyn Store>, owner: &str, options: SettlerOptions) -> Self {
        Self {
            store,
            owner: owner.to_owned(),
            options,
        }
    }
}

#[async_trait]
impl Service for Settler {
    type Error = Error;

    fn name(&self) -> &'static str {
        "settler"
    }

    async fn run_once(&self) -> Result<Next> {
        let SettlerOptions { interval, batch } = self.options;
        let settled = self.store.graph_settle(&self.owner, batch).await?;
        settled.iter().for_each(log);
        if settled.len() < batch as usize {
            Ok(Next::After(interval))
        } else {
            Ok(Next::Again)
        }
    }
}

fn log(settled: &EndedExecution) {
    let why = match settled.end {
        ExecutionEnd::TimedOut => "its timeout has passed",
        ExecutionEnd::Completed
        | ExecutionEnd::Failed
        | ExecutionEnd::Cancelled
        | ExecutionEnd::Terminated
        | ExecutionEnd::Lost => "a node was given up when the lease of its last attempt ran out",
    };
    tracing::warn!(execution = %settled.execution, request = %settled.request, status = %settled.status, end = ?settled.end, error = settled.error,
        "execution ended: {why}");
}
