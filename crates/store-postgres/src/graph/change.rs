//! What happens to a graph within one operation: where it was, what ended, and what is to be written of that. Pure.

use leasehold_core::graph::{Given, GraphEvent, GraphState, GraphStop, Machine, Step, Work};
use leasehold_core::{ExecutionId, JsonText, WorkspaceId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A graph whose row is held, and what is new of it.
pub(super) struct Change {
    pub(super) execution: ExecutionId,
    pub(super) workspace: WorkspaceId,
    pub(super) priority: i16,
    pub(super) trace_context: Option<String>,
    pub(super) machine: Arc<Machine>,
    pub(super) state: GraphState,
    /// Whether its row is written by whoever starts it.
    pub(super) is_new: bool,
    /// Whether anything happened to it in this operation.
    pub(super) has_changed: bool,
    /// What went wrong, if it has ended now.
    pub(super) error: Option<String>,
    /// Nodes that have ended.
    pub(super) ended: Vec<NodeEnd>,
    /// Nodes to put into their queues.
    pub(super) begin: Vec<(usize, Work)>,
    /// Nodes that were begun before and are no longer wanted.
    pub(super) abandon: Vec<usize>,
}

/// How a node ended.
#[derive(Debug, PartialEq)]
pub(super) struct NodeEnd {
    pub(super) node: usize,
    pub(super) attempts: u32,
    pub(super) outcome: Outcome,
}

#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Completed(JsonText),
    Failed(String),
    Abandoned,
}

/// What nodes are made of.
#[derive(Default)]
pub(super) struct Source {
    pub(super) params: JsonText,
    /// Outputs of earlier nodes.
    pub(super) outputs: HashMap<usize, JsonText>,
}

/// What the end of a node would lead to, as far as that is known without its output.
#[derive(Default)]
pub(super) struct Foresight {
    /// Whether nodes begin.
    pub(super) begins: bool,
    /// Nodes whose outputs have to be read.
    pub(super) needs: BTreeSet<usize>,
    /// Whether nodes are given up that were begun before.
    pub(super) abandons: bool,
}

impl Change {
    pub(super) fn of(
        execution: ExecutionId,
        workspace: WorkspaceId,
        priority: i16,
        machine: Arc<Machine>,
        state: GraphState,
    ) -> Self {
        Self {
            execution,
            workspace,
            priority,
            trace_context: None,
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

    /// Whether it has ended, now or before.
    pub(super) fn has_ended(&self) -> bool {
        self.state.end().is_some()
    }

    /// What an event would lead to.
    pub(super) fn foresee(&self, event: GraphEvent) -> Foresight {
        let mut state = self.state.clone();
        let Some(step) = self.machine.apply(&mut state, event) else {
            return Foresight::default();
        };
        let mut needs = self.machine.needs(&step.begin);
        if let GraphEvent::Completed(node) = event {
            needs.remove(&node);
        }
        Foresight {
            begins: !step.begin.is_empty(),
            needs,
            abandons: !step.abandon.is_empty(),
        }
    }

    /// The first nodes begin.
    pub(super) fn start(&mut self, step: Step, source: &mut Source) {
        (self.is_new, self.has_changed) = (true, true);
        self.follow(step, source);
    }

    /// A node has ended; false if that no longer means anything.
    pub(super) fn node_ended(&mut self, end: NodeEnd, source: &mut Source) -> bool {
        let event = match &end.outcome {
            Outcome::Completed(_) => GraphEvent::Completed(end.node),
            Outcome::Failed(_) => GraphEvent::Failed(end.node),
            Outcome::Abandoned => return false,
        };
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, event) else {
            return false;
        };
        self.has_changed = true;
        if let Outcome::Completed(output) = &end.outcome {
            source.outputs.insert(end.node, output.clone());
        }
        self.note(end);
        self.follow(step, source);
        true
    }

    /// It is stopped; false if it had ended.
    pub(super) fn stop(&mut self, stop: GraphStop, reason: &str) -> bool {
        let machine = Arc::clone(&self.machine);
        let Some(step) = machine.apply(&mut self.state, GraphEvent::Stopped(stop)) else {
            return false;
        };
        self.has_changed = true;
        self.error = Some(reason.to_owned());
        self.give_up(step.abandon);
        true
    }

    fn follow(&mut self, step: Step, source: &Source) {
        let given = Given {
            execution: self.execution,
            workspace: self.workspace,
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
                outcome: Outcome::Failed(problem),
            });
        }
        if self.has_ended() {
            self.give_up(prepared.abandon);
        }
    }

    fn note(&mut self, end: NodeEnd) {
        if let Outcome::Failed(error) = &end.outcome {
            self.error = Some(self.machine.failure(end.node, error));
        }
        self.ended.push(end);
    }

    /// Nobody was told yet of those that were to begin in this operation.
    fn give_up(&mut self, mut nodes: Vec<usize>) {
        nodes.retain(|node| !self.begin.iter().any(|(begun, _)| begun == node));
        self.begin.clear();
        self.abandon.extend(nodes);
    }
}
