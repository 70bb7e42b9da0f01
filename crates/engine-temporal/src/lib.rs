//! The Temporal engine: starts, describes and stops executions through Temporal's gRPC API. Keeps no state.
//!
//! An execution is the workflow `execution-{id}`. Every call is sent once, with a deadline; the caller decides about retries.
//! [`StartOutcome`] says what may have happened; `grpc_codes.rs` maps the gRPC codes to it.

mod connection;
mod describe;
#[cfg(test)]
mod fault_tests;
pub mod graph_payload;
mod grpc_codes;
mod input;
mod nodes;
mod options;
mod prevent;
mod proto;
mod start;
mod stop;
mod visibility;
mod worker_config;

pub use connection::error_chain;
pub use options::{
    ApiKey, ClientCertificate, InvalidTemporalOptions, TemporalOptions, TemporalTls,
};
pub use worker_config::{GRAPH_WORKFLOW_TYPE, GraphWorkerOptions, WORKER_PROGRAM, WorkerConfig};

use async_trait::async_trait;
use connection::Connection;
use leasehold_core::graph::NodeRun;
use leasehold_core::{EngineIdentity, ExecutionId, JsonText, RequestId, Timestamp, VersionBody};
use leasehold_crash_marker::CrashMarkers;
use leasehold_engine::{
    Description, EndedPage, Engine, Result, Start, StartOutcome, StartPrevented, StopAck,
};

/// The prefix of the ids of all workflows started by Leasehold.
const WORKFLOW_ID_PREFIX: &str = "execution-";

/// A Temporal namespace as an engine. Clones share a connection.
#[derive(Clone)]
pub struct TemporalEngine {
    options: std::sync::Arc<TemporalOptions>,
    connection: Connection,
    crash_markers: CrashMarkers,
}

impl TemporalEngine {
    /// Checks the options without connecting. The first call connects, as does a call after the connection was lost.
    pub fn new(options: TemporalOptions) -> std::result::Result<Self, InvalidTemporalOptions> {
        options.validate()?;
        let connection = Connection::new(options.connection()?, options.connect_timeout);
        Ok(Self {
            options: options.into(),
            connection,
            crash_markers: CrashMarkers::default(),
        })
    }

    /// Marks the computation of inputs with these markers.
    #[must_use]
    pub fn with_crash_markers(mut self, markers: CrashMarkers) -> Self {
        self.crash_markers = markers;
        self
    }
}

#[async_trait]
impl Engine for TemporalEngine {
    fn name(&self) -> &'static str {
        "temporal"
    }

    async fn identity(&self) -> Result<EngineIdentity> {
        self.namespace_identity().await
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        self.start_workflow(start).await
    }

    fn compute_input(&self, start: &Start) {
        // A failure is the outcome of the start, which computes it again.
        let _ = self.start_request(start);
    }

    async fn prevent_start(
        &self,
        execution: ExecutionId,
        request: RequestId,
        reason: &str,
    ) -> Result<StartPrevented> {
        self.prevent_workflow(execution, request, reason).await
    }

    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        let mut runs = self.node_runs(execution, body).await?;
        if let Some(runs) = &mut runs {
            NodeRun::omit_large_outputs(runs);
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

    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        self.cancel_workflow(execution, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
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

/// Parses the execution from a workflow id, if Leasehold started the workflow.
fn execution_id(workflow_id: &str) -> Option<ExecutionId> {
    let execution = workflow_id.strip_prefix(WORKFLOW_ID_PREFIX)?.parse().ok()?;
    // Other spellings of a UUID parse too; Leasehold writes only this one.
    (self::workflow_id(execution) == workflow_id).then_some(execution)
}
