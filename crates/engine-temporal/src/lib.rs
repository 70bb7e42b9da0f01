//! The engine port on Temporal: starts, follows and stops executions through its gRPC API. Keeps nothing.
//!
//! An execution is the workflow `execution-{id}`. Every call goes out once, with a deadline: what to do about one that failed
//! is decided by whoever asked, and [`StartOutcome`] tells what may have happened. The codes behind it are in `codes.rs`.

mod codes;
mod connect;
mod describe;
#[cfg(test)]
mod faults;
pub mod graph_payload;
mod input;
mod nodes;
mod options;
mod proto;
mod start;
mod stop;
mod visibility;
mod worker_config;

pub use connect::chain;
pub use options::{ApiKey, ClientCertificate, InvalidOptions, TemporalOptions, Tls};
pub use worker_config::{GRAPH_WORKFLOW_TYPE, GraphWorkerOptions, WORKER_PROGRAM, WorkerConfig};

use async_trait::async_trait;
use connect::Link;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_engine::{Description, EndedPage, Engine, Result, Start, StartOutcome, Told};

/// What the id of every workflow of ours begins with.
const WORKFLOW_ID_PREFIX: &str = "execution-";

/// A Temporal namespace as an engine. Cheap to clone; clones share a connection.
#[derive(Clone)]
pub struct TemporalEngine {
    options: std::sync::Arc<TemporalOptions>,
    link: Link,
}

impl TemporalEngine {
    /// Checks the options and connects to nothing: the first call does, and any call after a connection was lost.
    pub fn new(options: TemporalOptions) -> std::result::Result<Self, InvalidOptions> {
        options.validate()?;
        let link = Link::new(options.connection()?, options.connect_timeout);
        Ok(Self {
            options: options.into(),
            link,
        })
    }
}

#[async_trait]
impl Engine for TemporalEngine {
    fn name(&self) -> &'static str {
        "temporal"
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        self.start_workflow(start).await
    }

    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        let mut runs = self.node_runs(execution, body).await?;
        if let Some(runs) = &mut runs {
            NodeRun::bound_outputs(runs);
        }
        Ok(runs)
    }

    async fn output(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        let runs = self.node_runs(execution, body).await?.unwrap_or_default();
        Ok(runs.into_iter().nth(node).and_then(|run| run.output))
    }

    async fn describe(&self, execution: ExecutionId) -> Result<Description> {
        self.describe_workflow(execution).await
    }

    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.cancel_workflow(execution, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.terminate_workflow(execution, reason).await
    }

    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage> {
        self.list_ended(since, page).await
    }

    async fn pollers(&self, body: &VersionBody) -> Result<Option<usize>> {
        self.count_pollers(body).await.map(Some)
    }

    async fn health(&self) -> Result<()> {
        self.check_namespace().await
    }
}

fn workflow_id(execution: ExecutionId) -> String {
    format!("{WORKFLOW_ID_PREFIX}{execution}")
}

/// The execution a workflow id names, if it is one of ours.
fn execution_id(workflow_id: &str) -> Option<ExecutionId> {
    let execution = workflow_id.strip_prefix(WORKFLOW_ID_PREFIX)?.parse().ok()?;
    // Other spellings of a UUID parse too, but are not how we write it.
    (self::workflow_id(execution) == workflow_id).then_some(execution)
}
