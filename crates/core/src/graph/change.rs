//! What happens to a graph within one operation of a store: where it was, what ended, and what is to be written of that.

use super::machine::{GraphEvent, GraphStop, Machine, Step};
use super::state::GraphState;
use super::work::{Given, Work};
use crate::{ExecutionId, JsonText, WorkspaceId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A graph, and what is new of it.
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
    begin: Vec<(usize, Work)>,
    abandon: Vec<usize>,
}

/// What the jobs of a graph take from its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphOrigin {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Higher goes first.
    pub priority: i16,
    /// The caller's trace context.
    pub trace_context: Option<String>,
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEnd {
    /// Its place in the graph's list.
    pub node: usize,
    /// How often it was tried.
    pub attempts: u32,
    /// What it came to.
    pub outcome: NodeOutcome,
}

/// What a node came to.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeOutcome {
    /// It completed with this output.
    Completed(JsonText),
    /// It failed with this error.
    Failed(String),
    /// It was begun, and its graph ended without it.
    Abandoned,
}

impl NodeEnd {
    /// The output to keep.
    pub fn output(&self) -> Option<&JsonText> {
        match &self.outcome {
            NodeOutcome::Completed(output) => Some(output),
            NodeOutcome::Failed(_) | NodeOutcome::Abandoned => None,
        }
    }

    /// The error to keep.
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

/// What new nodes are made of.
#[derive(Clone, Debug, Default)]
pub struct NodeSource {
    /// The request's params.
    pub params: JsonText,
    /// Outputs of nodes that ended in earlier operations.
    pub outputs: HashMap<usize, JsonText>,
}

/// What the end of a node will lead to, as far as that is known without its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foresight {
    /// Whether nodes begin, for which a [`NodeSource`] has to be read.
    pub begins: bool,
    /// Nodes of earlier operations whose outputs have to be in it.
    pub needs: BTreeSet<usize>,
    /// Whether nodes are abandoned that were begun before.
    pub abandons: bool,
}

impl GraphChange {
    /// A graph as it is before the operation.
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

    /// A graph that is started: the nodes that wait for nothing begin.
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
        change.follow(step, &source);
        change
    }

    /// The execution.
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// What its jobs take from the request.
    pub fn origin(&self) -> &GraphOrigin {
        &self.origin
    }

    /// Where it is now.
    pub fn state(&self) -> &GraphState {
        &self.state
    }

    /// Whether it has ended, now or before.
    pub fn has_ended(&self) -> bool {
        self.state.end().is_some()
    }

    /// Whether it is started by this operation.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether anything happened to it in this operation.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// What went wrong, if it has ended now.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Nodes that have ended.
    pub fn ended(&self) -> &[NodeEnd] {
        &self.ended
    }

    /// Nodes to put into their queues, and their work. A graph that has ended begins none.
    pub fn take_begun(&mut self) -> Vec<(usize, Work)> {
        std::mem::take(&mut self.begin)
    }

    /// Nodes that were begun before and are no longer wanted.
    pub fn abandoned(&self) -> &[usize] {
        &self.abandon
    }

    /// Ends the nodes that are no longer wanted; `attempts` says how often each was tried.
    pub fn end_abandoned(&mut self, attempts: impl Fn(usize) -> u32) {
        for node in std::mem::take(&mut self.abandon) {
            self.ended.push(NodeEnd {
                node,
                attempts: attempts(node),
                outcome: NodeOutcome::Abandoned,
            });
        }
    }

    /// What the end of a node will lead to.
    pub fn foresee(&self, node: usize, outcome: &NodeOutcome) -> Foresight {
        let mut state = self.state.clone();
        let step = outcome
            .event(node)
            .and_then(|event| self.machine.apply(&mut state, event));
        let Some(step) = step else {
            return Foresight::default();
        };
        let mut needs = self.machine.needs(&step.begin);
        needs.remove(&node);
        Foresight {
            begins: !step.begin.is_empty(),
            needs,
            abandons: !step.abandon.is_empty(),
        }
    }

    /// A node has ended; false if that no longer means anything. `source` is what [`GraphChange::foresee`] asks for.
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
        self.note(end);
        self.follow(step, &source);
        true
    }

    /// It is stopped; false if it had ended.
    pub fn stop(&mut self, stop: GraphStop, reason: &str) -> bool {
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, GraphEvent::Stopped(stop)) else {
            return false;
        };
        self.has_changed = true;
        self.error = Some(reason.to_owned());
        self.give_up(step.abandon);
        true
    }

    fn follow(&mut self, step: Step, source: &NodeSource) {
        let given = Given {
            execution: self.execution,
            workspace: self.origin.workspace,
            params: &source.params,
            outputs: &source.outputs,
        };
        let machine = Arc::clone(&self.machine);
        let prepared = machine.prepare(&mut self.state, step, &given);
        self.begin.extend(prepared.begin);
        if let Some((node, problem)) = prepared.failed {
            self.note(NodeEnd {
                node,
                attempts: 0,
                outcome: NodeOutcome::Failed(problem),
            });
        }
        if self.has_ended() {
            self.give_up(prepared.abandon);
        }
    }

    /// Abandons nodes. Nodes that were to begin in this operation have no job yet, so they are dropped.
    fn give_up(&mut self, mut nodes: Vec<usize>) {
        nodes.retain(|node| !self.begin.iter().any(|(begun, _)| begun == node));
        self.begin.clear();
        self.abandon.extend(nodes);
    }

    fn note(&mut self, end: NodeEnd) {
        if let Some(error) = end.error() {
            self.error = Some(self.machine.failure(end.node, error));
        }
        self.ended.push(end);
    }
}

#[cfg(test)]
mod tests;
