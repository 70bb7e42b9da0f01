//! What is asked of an engine, answered by the store. Works on nothing itself.

use async_trait::async_trait;
use leasehold_core::graph::{GraphOrigin, GraphStop, NodeRun};
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_engine::{Description, EndedPage, Engine, Error, Result, Start, StartOutcome, Told};
use leasehold_store::graph::{GraphStart, GraphStarted, GraphStopped};
use leasehold_store::{ErrorKind, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const NEEDS_TEMPORAL: &str = "its version is a binding to a workflow of the user's own Temporal workers; the embedded engine runs graphs only, \
    bindings need `--engine temporal`";

/// How the engine signs and how long it waits.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Who ends executions, for the event log.
    pub identity: String,
    /// How long the store may take to answer.
    pub call_timeout: Duration,
}

impl EmbeddedOptions {
    /// The defaults, signed so.
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
}

impl EmbeddedEngine {
    /// An engine on this store.
    pub fn new(store: Arc<dyn Store>, options: EmbeddedOptions) -> Self {
        Self { store, options }
    }

    /// What the store answers in time.
    async fn ask<T>(
        &self,
        call: impl Future<Output = leasehold_store::Result<T>>,
    ) -> std::result::Result<T, Unanswered> {
        match timeout(self.options.call_timeout, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Unanswered::Error(error)),
            Err(_) => Err(Unanswered::Late(self.options.call_timeout)),
        }
    }

    async fn end(&self, execution: ExecutionId, stop: GraphStop, reason: &str) -> Result<Told> {
        let identity = &self.options.identity;
        let stopped = self.store.graph_stop(execution, stop, identity, reason);
        Ok(match self.ask(stopped).await? {
            GraphStopped::Stopped(_) | GraphStopped::AlreadyEnded => Told::Told,
            GraphStopped::NotFound => Told::NotFound,
        })
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        let refused = |error: &str| StartOutcome::Refused {
            error: error.to_owned(),
        };
        if matches!(start.version.body, VersionBody::Binding { .. }) {
            return refused(NEEDS_TEMPORAL);
        }
        let graph = GraphStart {
            execution: start.execution,
            version: start.version.id,
            params: start.params.clone(),
            origin: GraphOrigin {
                workspace: start.workspace,
                priority: start.priority,
                trace_context: start.trace_context.clone(),
            },
        };
        match self.ask(self.store.graph_start(&graph)).await {
            Ok(GraphStarted::Started | GraphStarted::Ended(_)) => StartOutcome::Started,
            Ok(GraphStarted::AlreadyStarted { ended }) => StartOutcome::AlreadyStarted { ended },
            Ok(GraphStarted::NotFound) => {
                refused("there is no such execution, or it ended before it was started")
            }
            Ok(GraphStarted::NotAGraph) => refused(NEEDS_TEMPORAL),
            Err(unanswered) => unanswered.of_a_start(),
        }
    }

    async fn describe(&self, execution: ExecutionId) -> Result<Description> {
        let Some(graph) = self.ask(self.store.graph_get(execution)).await? else {
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

    /// At once: what is begun is abandoned.
    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.end(execution, GraphStop::Cancelled, reason).await
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<Told> {
        self.end(execution, GraphStop::Terminated, reason).await
    }

    /// None, ever: an execution ends in the store in the same transaction as its last node, so there is nothing to find out later.
    async fn ended_since(&self, _: Timestamp, _: Option<Vec<u8>>) -> Result<EndedPage> {
        Ok(EndedPage::default())
    }

    async fn pollers(&self, _: &VersionBody) -> Result<Option<usize>> {
        Ok(None)
    }

    async fn nodes(&self, execution: ExecutionId, _: &VersionBody) -> Result<Option<Vec<NodeRun>>> {
        Ok(self.ask(self.store.graph_nodes(execution)).await?)
    }

    async fn output(
        &self,
        execution: ExecutionId,
        _: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        Ok(self.ask(self.store.graph_output(execution, node)).await?)
    }

    async fn health(&self) -> Result<()> {
        self.ask(self.store.now()).await?;
        Ok(())
    }
}

/// Why the store did not answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("{0}")]
    Error(leasehold_store::Error),
    #[error("the store did not answer within {0:?}")]
    Late(Duration),
}

impl Unanswered {
    /// A start is written in one transaction; where its answer is lost, it may be there.
    fn of_a_start(&self) -> StartOutcome {
        let error = self.to_string();
        let unavailable = |reached| StartOutcome::Unavailable {
            error: error.clone(),
            reached,
        };
        match self {
            Self::Late(_) => unavailable(true),
            Self::Error(cause) => match cause.kind {
                ErrorKind::Unavailable(_) => unavailable(true),
                ErrorKind::Contended(_) => unavailable(false),
                ErrorKind::Constraint(_)
                | ErrorKind::Value(_)
                | ErrorKind::Owned(_)
                | ErrorKind::Schema(_)
                | ErrorKind::Broken(_) => StartOutcome::Unknown { error },
            },
        }
    }
}

impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        let said = unanswered.to_string();
        match unanswered {
            Unanswered::Error(cause) if !cause.is_retryable() => Self::Failed(said),
            Unanswered::Error(_) | Unanswered::Late(_) => Self::Unavailable(said),
        }
    }
}
