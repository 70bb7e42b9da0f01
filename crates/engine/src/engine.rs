//! The trait itself: every question an engine answers.

use crate::describe::{Description, EndedPage};
use crate::error::Result;
use crate::start::{Start, StartOutcome};
use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};

/// Whatever runs executions. Every call is bounded in time by the engine itself.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The engine's name: `temporal` or `embedded`.
    fn name(&self) -> &'static str;

    /// Starts an execution. However often it is called for one execution, one is started.
    async fn start(&self, start: &Start) -> StartOutcome;

    /// What the engine knows of an execution now. This is the proof on which slots are freed.
    async fn describe(&self, execution: ExecutionId) -> Result<Description>;

    /// Asks an execution to end itself; it may take its time, or not listen.
    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<Told>;

    /// Ends an execution without asking it.
    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<Told>;

    /// Executions that ended at `since` or later by the engine's clock, as far as it has noticed, page by page. Hints only.
    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage>;

    /// How many workers ask for the work of such a version; none where the engine runs it itself.
    async fn pollers(&self, body: &VersionBody) -> Result<Option<usize>>;

    /// The nodes of an execution in the order its graph lists them, as far as the engine knows; none where it does not know the execution. What runs a
    /// binding has no nodes. Outputs are left out from the first on with which they would have more than
    /// [`NODE_OUTPUTS_MAX_BYTES`](leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES) together.
    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>>;

    /// What the node at this place in the graph's list came to, however large; [`Engine::nodes`] may leave it out.
    async fn output(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>>;

    /// Whether it would serve a start now.
    async fn health(&self) -> Result<()>;
}

/// What became of telling an execution to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The engine took note. It says the same of an execution that has ended already, if it still knows it.
    Told,
    /// The engine does not know such an execution.
    NotFound,
}
