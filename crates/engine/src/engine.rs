//! The `Engine` trait: everything that Leasehold requires of an engine.

use crate::describe::{Description, EndedPage};
use crate::error::Result;
use crate::start::{Start, StartOutcome, StartPrevented};
use async_trait::async_trait;
use leasehold_core::graph::{Machine, NodeRun};
use leasehold_core::{EngineIdentity, ExecutionId, JsonText, RequestId, Timestamp, VersionBody};
use std::collections::HashMap;

/// A workflow engine. Every implementation bounds the duration of its calls itself.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Returns the engine's name: `temporal` or `embedded`.
    fn name(&self) -> &'static str;

    /// Returns what tells its executions from those of another engine. This default is for an engine that keeps its executions in the store.
    async fn identity(&self) -> Result<EngineIdentity> {
        Ok(EngineIdentity::of_kind(self.name()))
    }

    /// Starts an execution. Idempotent: repeated calls for one execution start it once.
    async fn start(&self, start: &Start) -> StartOutcome;

    /// Computes the input of a start as [`Engine::start`] does, and discards it. Calls nothing; an engine whose starts have no input to compute does
    /// nothing.
    fn compute_input(&self, _start: &Start) {}

    /// Computes the input of a node of a started execution, whose graph the store has, as a claim of its job does, and discards it. `machine` is that of the
    /// graph, `outputs` are those that the node refers to. Calls nothing; an engine that computes no such inputs in this process does nothing.
    fn compute_node_input(
        &self,
        _start: &Start,
        _machine: &Machine,
        _node: usize,
        _outputs: &HashMap<usize, JsonText>,
    ) {
    }

    /// Makes an unknown start definite without its input: afterwards the execution does not run, and no late start of it succeeds. This default is for
    /// an engine that starts no execution that the store has ended.
    async fn prevent_start(
        &self,
        execution: ExecutionId,
        _request: RequestId,
        reason: &str,
    ) -> Result<StartPrevented> {
        match self.describe(execution).await? {
            Description::NotFound => Ok(StartPrevented::NotStarted),
            Description::Ended { .. } => Ok(StartPrevented::Ended),
            Description::Open => {
                self.terminate(execution, reason).await?;
                Ok(StartPrevented::Ended)
            }
        }
    }

    /// Returns the current state of an execution. Slots are freed only on this answer.
    async fn describe(&self, execution: ExecutionId) -> Result<Description>;

    /// Requests cooperative cancellation; the execution may take time to end, or ignore the request.
    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<StopAck>;

    /// Terminates an execution without its cooperation.
    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<StopAck>;

    /// Lists executions that ended at `since` or later by the engine's clock, page by page. The list may be incomplete; describe each execution before acting.
    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage>;

    /// Counts the workers that poll for the work of such a version; none if the engine runs it itself.
    async fn pollers(&self, body: &VersionBody) -> Result<Option<usize>>;

    /// Returns the nodes of an execution in the order of its graph's node list; none if the engine does not know the execution. An execution of a
    /// binding has no nodes. The first output with which the total exceeds
    /// [`NODE_OUTPUTS_MAX_BYTES`](leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES), and all after it, are omitted. The caller bounds its wait. An engine that
    /// reads from a store does not end the read before the store has answered; this holds for [`Engine::output`] too.
    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>>;

    /// Returns the output of the node at this index, of any size; [`Engine::nodes`] may omit it.
    async fn output(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>>;

    /// Checks that the engine would accept a start now.
    async fn health(&self) -> Result<()>;
}

/// The engine's answer to a cancel or terminate call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAck {
    /// The engine accepted the call; also for an execution that has already ended, if the engine still knows it.
    Acknowledged,
    /// The engine does not know the execution.
    NotFound,
}
