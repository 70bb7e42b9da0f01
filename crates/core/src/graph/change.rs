//! The changes of a graph within one store operation: its state before, the nodes that ended, and what the store has to write.

use super::machine::{GraphEvent, GraphStop, Machine, Step};
use super::node::Node;
use super::state::GraphState;
use super::work::NodeContext;
use crate::limits::NODE_ROW_BYTES;
use crate::queue_access::refusal_text;
use crate::{ExecutionId, JsonText, WorkspaceId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A graph and its changes in this operation.
#[derive(Clone, Debug)]
pub struct GraphChange {
    execution: ExecutionId,
    origin: GraphOrigin,
    machine: Arc<Machine>,
    state: GraphState,
    is_new: bool,
    has_changed: bool,
    error: Option<String>,
    ended: Vec<NodeEnd>,
    /// The nodes to start, with the payloads to store.
    begin: Vec<(usize, JsonText)>,
    abandon: Vec<usize>,
}

/// What the jobs of a graph inherit from its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphOrigin {
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// Higher is served first.
    pub priority: i16,
    /// The caller's trace context.
    pub trace_context: Option<String>,
    /// Whether a process crashed while it computed an input of the request. Then inputs are computed with nothing beside them.
    pub crashed: bool,
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnd {
    /// The index in the graph's node list.
    pub node: usize,
    /// The number of attempts.
    pub attempts: u32,
    /// The outcome.
    pub outcome: NodeOutcome,
}

/// The outcome of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeOutcome {
    /// It completed with this output.
    Completed(JsonText),
    /// It failed with this error.
    Failed(String),
    /// It was started, and its graph ended before it did.
    Abandoned,
}

impl NodeEnd {
    /// Returns the output to store.
    pub fn output(&self) -> Option<&JsonText> {
        match &self.outcome {
            NodeOutcome::Completed(output) => Some(output),
            NodeOutcome::Failed(_) | NodeOutcome::Abandoned => None,
        }
    }

    /// Returns the error to store.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            NodeOutcome::Failed(error) => Some(error),
            NodeOutcome::Completed(_) | NodeOutcome::Abandoned => None,
        }
    }
}

impl NodeOutcome {
    fn event(&self, node: usize) -> Option<GraphEvent> {
        match self {
            Self::Completed(_) => Some(GraphEvent::Completed(node)),
            Self::Failed(_) => Some(GraphEvent::Failed(node)),
            Self::Abandoned => None,
        }
    }
}

/// The data that the inputs of new nodes are built from.
#[derive(Clone, Debug, Default)]
pub struct NodeSource {
    /// The request's params.
    pub params: JsonText,
    /// Outputs of nodes that ended in earlier operations.
    pub outputs: HashMap<usize, JsonText>,
}

/// What the end of a node will cause, as far as that is known without its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndPreview {
    /// Whether nodes start, for which a [`NodeSource`] has to be read.
    pub begins: bool,
    /// Nodes of earlier operations whose outputs the source must hold.
    pub needs: BTreeSet<usize>,
    /// Whether nodes that were started before are abandoned.
    pub abandons: bool,
}

impl GraphChange {
    /// Loads a graph in its state before the operation.
    pub fn of(
        execution: ExecutionId,
        origin: GraphOrigin,
        machine: Arc<Machine>,
        state: GraphState,
    ) -> Self {
        Self {
            execution,
            origin,
            machine,
            state,
            is_new: false,
            has_changed: false,
            error: None,
            ended: Vec::new(),
            begin: Vec::new(),
            abandon: Vec::new(),
        }
    }

    /// Starts a graph: the nodes without predecessors start.
    pub fn start(
        execution: ExecutionId,
        origin: GraphOrigin,
        machine: Arc<Machine>,
        params: JsonText,
    ) -> Self {
        let (state, step) = machine.begin();
        let mut change = Self::of(execution, origin, machine, state);
        (change.is_new, change.has_changed) = (true, true);
        let source = NodeSource {
            params,
            outputs: HashMap::new(),
        };
        change.apply_step(step, &source);
        change
    }

    /// Returns the execution.
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// Returns what its jobs inherit from the request.
    pub fn origin(&self) -> &GraphOrigin {
        &self.origin
    }

    /// Returns the current state.
    pub fn state(&self) -> &GraphState {
        &self.state
    }

    /// Returns whether it has ended, now or before.
    pub fn has_ended(&self) -> bool {
        self.state.end().is_some()
    }

    /// Returns whether this operation starts it.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns whether this operation changed it.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Returns the error, if it ended in this operation.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the nodes that ended in this operation.
    pub fn ended(&self) -> &[NodeEnd] {
        &self.ended
    }

    /// Returns whether there are nodes to enqueue.
    pub fn begins_nodes(&self) -> bool {
        !self.begin.is_empty()
    }

    /// Returns the node at this index.
    pub fn node(&self, at: usize) -> &Node {
        self.machine.node(at)
    }

    /// Returns the bytes that this operation writes for the graph: rows of jobs and nodes, outputs, errors and the state. Steps are bounded by
    /// them, and they are what a workspace is charged. Call it before [`GraphChange::take_begun`].
    pub fn written_bytes(&self) -> usize {
        let begun = self.begin.iter();
        let begun = begun.map(|(at, payload)| job_bytes(self.node(*at), payload, &self.origin));
        let ended = self.ended.iter().map(|end| {
            let output = end.output().map_or(0, |output| output.as_str().len());
            NODE_ROW_BYTES + output + end.error().map_or(0, str::len)
        });
        let error = self.error.as_ref().map_or(0, String::len);
        begun.chain(ended).sum::<usize>() + self.state.nodes().len() + error
    }

    /// Takes the nodes to enqueue and the payloads to store. A graph that has ended starts none.
    pub fn take_begun(&mut self) -> Vec<(usize, JsonText)> {
        std::mem::take(&mut self.begin)
    }

    /// Returns the queues of the nodes to enqueue, in the order of the nodes.
    pub fn begun_queues(&self) -> impl Iterator<Item = &str> {
        let queue = move |(at, _): &(usize, JsonText)| self.node(*at).kind.queue();
        self.begin.iter().map(queue)
    }

    /// Returns nodes that were started before and are now abandoned.
    pub fn abandoned(&self) -> &[usize] {
        &self.abandon
    }

    /// Ends the abandoned nodes; `attempts` returns the number of attempts of each, or none if its job was never claimed. The end of such a node
    /// is not recorded: it follows from the graph's.
    pub fn end_abandoned(&mut self, attempts: impl Fn(usize) -> Option<u32>) {
        for node in std::mem::take(&mut self.abandon) {
            self.ended.extend(attempts(node).map(|attempts| NodeEnd {
                node,
                attempts,
                outcome: NodeOutcome::Abandoned,
            }));
        }
    }

    /// Predicts what the end of a node will cause.
    pub fn preview_end(&self, node: usize, outcome: &NodeOutcome) -> EndPreview {
        let mut state = self.state.clone();
        let step = outcome
            .event(node)
            .and_then(|event| self.machine.apply(&mut state, event));
        let Some(step) = step else {
            return EndPreview::default();
        };
        let mut needs = self.machine.needs(&step.begin);
        needs.remove(&node);
        EndPreview {
            begins: !step.begin.is_empty(),
            needs,
            abandons: !step.abandon.is_empty(),
        }
    }

    /// Records the end of a node. Returns false if the graph or the node had already ended. `source` holds what [`GraphChange::preview_end`] requires.
    pub fn node_ended(&mut self, end: NodeEnd, mut source: NodeSource) -> bool {
        let machine = Arc::clone(&self.machine);
        let step = end
            .outcome
            .event(end.node)
            .and_then(|event| machine.apply(&mut self.state, event));
        let Some(step) = step else {
            return false;
        };
        self.has_changed = true;
        if let Some(output) = end.output() {
            source.outputs.insert(end.node, output.clone());
        }
        self.record_end(end);
        self.apply_step(step, &source);
        true
    }

    /// Fails the first node to start whose job would go to a queue that `is_refused`, and the graph with it. The other nodes do not start.
    pub fn refuse_queues(&mut self, is_refused: impl Fn(&str) -> bool) {
        let refused = self.begin.iter().find_map(|(at, _)| {
            let queue = self.node(*at).kind.task_queue()?;
            is_refused(queue).then(|| (*at, refusal_text(queue)))
        });
        let Some((node, error)) = refused else {
            return;
        };
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, GraphEvent::Failed(node)) else {
            return;
        };
        self.record_end(NodeEnd {
            node,
            attempts: 0,
            outcome: NodeOutcome::Failed(error),
        });
        self.abandon_nodes(step.abandon);
    }

    /// Stops the graph. Returns false if it had already ended.
    pub fn stop(&mut self, stop: GraphStop, reason: &str) -> bool {
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, GraphEvent::Stopped(stop)) else {
            return false;
        };
        self.has_changed = true;
        self.error = Some(reason.to_owned());
        self.abandon_nodes(step.abandon);
        true
    }

    fn apply_step(&mut self, step: Step, source: &NodeSource) {
        let context = NodeContext {
            execution: self.execution,
            workspace: self.origin.workspace,
            params: &source.params,
            outputs: &source.outputs,
        };
        let machine = Arc::clone(&self.machine);
        let origin = &self.origin;
        let row_bytes =
            |at: usize, payload: &JsonText| job_bytes(machine.node(at), payload, origin);
        let prepared = machine.prepare_references(&mut self.state, step, &context, row_bytes);
        self.begin.extend(prepared.begin);
        if let Some((node, problem)) = prepared.failed {
            self.record_end(NodeEnd {
                node,
                attempts: 0,
                outcome: NodeOutcome::Failed(problem),
            });
        }
        if self.has_ended() {
            self.abandon_nodes(prepared.abandon);
        }
    }

    /// Abandons nodes. Nodes that would start in this operation have no job yet, so they are dropped.
    fn abandon_nodes(&mut self, mut nodes: Vec<usize>) {
        nodes.retain(|node| !self.begin.iter().any(|(begun, _)| begun == node));
        self.begin.clear();
        self.abandon.extend(nodes);
    }

    fn record_end(&mut self, end: NodeEnd) {
        if let Some(error) = end.error() {
            self.error = Some(self.machine.failure(end.node, error));
        }
        self.ended.push(end);
    }
}

/// Returns the bytes of the rows of a node that starts.
fn job_bytes(node: &Node, payload: &JsonText, origin: &GraphOrigin) -> usize {
    let trace_context = origin.trace_context.as_ref().map_or(0, String::len);
    NODE_ROW_BYTES + node.job_kind().len() + payload.as_str().len() + trace_context
}

#[cfg(test)]
mod tests;
