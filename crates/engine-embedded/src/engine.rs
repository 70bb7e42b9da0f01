//! The engine's calls, each of which is one operation of the store. Runs no node itself.

use async_trait::async_trait;
use leasehold_core::graph::{GraphChange, GraphOrigin, GraphStop, Machine, NodeContext, NodeRun};
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_crash_marker::{Computation, CrashMarkers, reach_claim_failpoint, reach_failpoint};
use leasehold_engine::{
    Description, EndedPage, Engine, Error, Result, Start, StartOutcome, StopAck,
};
use leasehold_store::graph::{GraphStart, GraphStarted, GraphStopped, jobs_of};
use leasehold_store::{ErrorKind, Store};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const NEEDS_TEMPORAL: &str = "the version is a binding to a workflow type of your own Temporal workers; the embedded engine runs only graphs; \
    use `--engine temporal` for bindings";

/// The options of the embedded engine.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The identity in the event log.
    pub identity: String,
    /// Timeout of a store operation, except reads of nodes and outputs.
    pub call_timeout: Duration,
}

impl EmbeddedOptions {
    /// The defaults with this identity.
    pub fn new(identity: impl Into<String>) -> Self {
        Self {
            identity: identity.into(),
            call_timeout: Duration::from_secs(10),
        }
    }
}

/// Runs graphs in a store.
pub struct EmbeddedEngine {
    store: Arc<dyn Store>,
    options: EmbeddedOptions,
    crash_markers: CrashMarkers,
}

impl EmbeddedEngine {
    /// Creates an engine on this store.
    pub fn new(store: Arc<dyn Store>, options: EmbeddedOptions) -> Self {
        Self {
            store,
            options,
            crash_markers: CrashMarkers::default(),
        }
    }

    /// Marks the computation of inputs with these markers, as the store does.
    #[must_use]
    pub fn with_crash_markers(mut self, markers: CrashMarkers) -> Self {
        self.crash_markers = markers;
        self
    }

    /// Runs a store operation with the timeout.
    async fn with_timeout<T>(
        &self,
        call: impl Future<Output = leasehold_store::Result<T>>,
    ) -> std::result::Result<T, StoreFailure> {
        match timeout(self.options.call_timeout, call).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(StoreFailure::Error(error)),
            Err(_) => Err(StoreFailure::Timeout(self.options.call_timeout)),
        }
    }

    async fn stop(&self, execution: ExecutionId, stop: GraphStop, reason: &str) -> Result<StopAck> {
        let identity = &self.options.identity;
        let stopped = self.store.graph_stop(execution, stop, identity, reason);
        Ok(match self.with_timeout(stopped).await? {
            GraphStopped::Stopped(_) | GraphStopped::AlreadyEnded => StopAck::Acknowledged,
            GraphStopped::NotFound => StopAck::NotFound,
        })
    }
}

fn origin(start: &Start) -> GraphOrigin {
    GraphOrigin {
        workspace: start.workspace,
        priority: start.priority,
        trace_context: start.trace_context.clone(),
        crashed: start.crashed,
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        let rejected = |error: &str| StartOutcome::Refused {
            error: error.to_owned(),
        };
        if matches!(start.version.body, VersionBody::Binding { .. }) {
            return rejected(NEEDS_TEMPORAL);
        }
        let graph = GraphStart {
            execution: start.execution,
            version: start.version.id,
            params: start.params.clone(),
            origin: origin(start),
        };
        match self.with_timeout(self.store.graph_start(&graph)).await {
            Ok(GraphStarted::Started | GraphStarted::Ended(_)) => StartOutcome::Started,
            Ok(GraphStarted::AlreadyStarted { ended }) => StartOutcome::AlreadyStarted { ended },
            Ok(GraphStarted::NotFound) => {
                rejected("execution not found, or it ended before it was started")
            }
            Ok(GraphStarted::NotAGraph) => rejected(NEEDS_TEMPORAL),
            Err(failure) => failure.start_outcome(),
        }
    }

    fn compute_input(&self, start: &Start) {
        let VersionBody::Graph(graph) = &start.version.body else {
            return;
        };
        // A published graph is valid.
        let Ok(machine) = Machine::new(graph.clone()) else {
            return;
        };
        self.crash_markers.compute(computation(start), || {
            reach_failpoint(&start.params);
            let (origin, params) = (origin(start), start.params.clone());
            let mut change = GraphChange::start(start.execution, origin, Arc::new(machine), params);
            drop(jobs_of(&mut change));
        });
    }

    fn compute_node_input(
        &self,
        start: &Start,
        machine: &Machine,
        node: usize,
        outputs: &HashMap<usize, JsonText>,
    ) {
        let context = NodeContext {
            execution: start.execution,
            workspace: start.workspace,
            params: &start.params,
            outputs,
        };
        self.crash_markers.compute(computation(start), || {
            reach_claim_failpoint(&start.params);
            drop(machine.payloads(&[node], &context));
        });
    }

    async fn describe(&self, execution: ExecutionId) -> Result<Description> {
        let Some(graph) = self.with_timeout(self.store.graph_get(execution)).await? else {
            return Ok(Description::NotFound);
        };
        Ok(match graph.state.end() {
            Some(end) => Description::Ended {
                end,
                error: graph.error,
                at: graph.finished_at,
            },
            None => Description::Open,
        })
    }

    /// Cancels at once: running nodes are abandoned.
    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        self.stop(execution, GraphStop::Cancelled, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        self.stop(execution, GraphStop::Terminated, reason).await
    }

    /// Returns no executions: the store ends an execution in the transaction of its last node, so there is nothing to reconcile.
    async fn ended_since(&self, _: Timestamp, _: Option<Vec<u8>>) -> Result<EndedPage> {
        Ok(EndedPage::default())
    }

    async fn pollers(&self, _: &VersionBody) -> Result<Option<usize>> {
        Ok(None)
    }

    async fn nodes(&self, execution: ExecutionId, _: &VersionBody) -> Result<Option<Vec<NodeRun>>> {
        // Without the timeout, and so is `output`: the caller bounds its wait, and counts the read until the store has answered.
        let nodes = self.store.graph_nodes(execution).await;
        Ok(nodes.map_err(StoreFailure::Error)?)
    }

    async fn output(
        &self,
        execution: ExecutionId,
        _: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        let output = self.store.graph_output(execution, node).await;
        Ok(output.map_err(StoreFailure::Error)?)
    }

    async fn health(&self) -> Result<()> {
        self.with_timeout(self.store.now()).await?;
        Ok(())
    }
}

fn computation(start: &Start) -> Computation {
    Computation {
        execution: start.execution,
        crashed: start.crashed,
    }
}

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
enum StoreFailure {
    #[error("{0}")]
    Error(leasehold_store::Error),
    #[error("store operation timed out after {0:?}")]
    Timeout(Duration),
}

impl StoreFailure {
    /// Converts the failure of a start. A start is one transaction; if its answer was lost, it may have committed.
    fn start_outcome(&self) -> StartOutcome {
        let error = self.to_string();
        let unavailable = |reached| StartOutcome::Unavailable {
            error: error.clone(),
            reached,
        };
        match self {
            Self::Timeout(_) => unavailable(true),
            Self::Error(cause) => match cause.kind {
                ErrorKind::Unavailable(_) => unavailable(true),
                ErrorKind::Contended(_) => unavailable(false),
                ErrorKind::Constraint(_)
                | ErrorKind::Value(_)
                | ErrorKind::Gone(_)
                | ErrorKind::Owned(_)
                | ErrorKind::Schema(_)
                | ErrorKind::Broken(_) => StartOutcome::Unknown { error },
            },
        }
    }
}

impl From<StoreFailure> for Error {
    fn from(failure: StoreFailure) -> Self {
        let text = failure.to_string();
        match failure {
            // A locked row concerns one execution.
            StoreFailure::Error(cause) if matches!(cause.kind, ErrorKind::Contended(_)) => {
                Self::Failed(text)
            }
            StoreFailure::Error(cause) if !cause.is_retryable() => Self::Failed(text),
            StoreFailure::Error(_) | StoreFailure::Timeout(_) => Self::Unavailable(text),
        }
    }
}
