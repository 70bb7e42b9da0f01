//! The state machine that runs a graph: maps a state and an event to the next state and the nodes to start. Both engines use it.

use super::input::{Documents, InputProblem};
use super::pointer::ReferencedOutputs;
use super::reference;
use super::state::{GraphState, NodeEvent, NodeState};
use super::work::{NodeContext, NodeWork};
use super::{Graph, GraphProblem, Node};
use crate::limits::{ERROR_MAX_CHARS, STEP_BASE_BYTES, STEP_BYTES_FACTOR, STEP_INLINE_MAX_BYTES};
use crate::text::clip;
use crate::{ExecutionEnd, JsonText};
use std::collections::{BTreeSet, HashMap};

/// A validated graph with its edges indexed in both directions.
#[derive(Clone, Debug)]
pub struct Machine {
    graph: Graph,
    /// The bytes of the graph as JSON.
    bytes: usize,
    positions: HashMap<String, usize>,
    predecessors: Vec<Vec<usize>>,
    successors: Vec<Vec<usize>>,
}

/// An event of a graph. Nodes are named by their index in the graph's node list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphEvent {
    /// A node completed.
    Completed(usize),
    /// A node failed permanently.
    Failed(usize),
    /// The graph is stopped.
    Stopped(GraphStop),
}

/// Why a graph is stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphStop {
    /// It was cancelled.
    Cancelled,
    /// It was terminated.
    Terminated,
    /// Its timeout passed.
    TimedOut,
}

impl From<GraphStop> for ExecutionEnd {
    fn from(stop: GraphStop) -> Self {
        match stop {
            GraphStop::Cancelled => Self::Cancelled,
            GraphStop::Terminated => Self::Terminated,
            GraphStop::TimedOut => Self::TimedOut,
        }
    }
}

/// What an event causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Nodes to start, in the order of the graph's node list.
    pub begin: Vec<usize>,
    /// Running nodes to abandon.
    pub abandon: Vec<usize>,
    /// The execution has ended.
    pub end: Option<ExecutionEnd>,
}

/// A step with the work of each node to start, or with what is stored of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedStep<Work = NodeWork> {
    /// Nodes to start and their work, in the order of the graph's node list.
    pub begin: Vec<(usize, Work)>,
    /// Running nodes to abandon.
    pub abandon: Vec<usize>,
    /// A node whose input could not be built, and the error.
    pub failed: Option<(usize, String)>,
    /// The execution has ended.
    pub end: Option<ExecutionEnd>,
}

impl Machine {
    /// Validates a graph and builds its machine.
    pub fn new(graph: Graph) -> Result<Self, GraphProblem> {
        graph.validate()?;
        let positions = graph.positions().into_iter();
        let positions: HashMap<String, usize> =
            positions.map(|(id, at)| (id.to_owned(), at)).collect();
        let mut predecessors = vec![Vec::new(); graph.nodes.len()];
        let mut successors = vec![Vec::new(); graph.nodes.len()];
        for edge in &graph.edges {
            let (from, to) = (positions[&edge.from], positions[&edge.to]);
            successors[from].push(to);
            predecessors[to].push(from);
        }
        for neighbours in predecessors.iter_mut().chain(&mut successors) {
            neighbours.sort_unstable();
        }
        // A graph consists of texts and numbers, so serialization cannot fail.
        let bytes = serde_json::to_string(&graph).map_or(0, |text| text.len());
        Ok(Self {
            graph,
            bytes,
            positions,
            predecessors,
            successors,
        })
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the node at this index.
    pub fn node(&self, at: usize) -> &Node {
        &self.graph.nodes[at]
    }

    /// Returns the index of the node with this id.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    /// Returns whether a state belongs to a graph of this size.
    pub fn fits(&self, state: &GraphState) -> bool {
        state.nodes.len() == self.graph.nodes.len()
    }

    /// Returns the first state and the step that starts the nodes without predecessors.
    pub fn begin(&self) -> (GraphState, Step) {
        let mut state = GraphState {
            nodes: vec![NodeState::Waiting; self.graph.nodes.len()],
            end: None,
        };
        let all: Vec<usize> = (0..state.nodes.len()).collect();
        let begin = self.begin_ready(&mut state, &all);
        let step = Step {
            begin,
            ..Step::default()
        };
        (state, step)
    }

    /// Applies an event. Returns none, and changes nothing, if the graph or the node has ended or the node was never started.
    pub fn apply(&self, state: &mut GraphState, event: GraphEvent) -> Option<Step> {
        if state.end.is_some() || !self.fits(state) {
            return None;
        }
        match event {
            GraphEvent::Completed(at) => {
                advance(state, at, NodeEvent::Complete)?;
                let begin = self.begin_ready(state, &self.successors[at]);
                if state.nodes.iter().all(|node| *node == NodeState::Completed) {
                    state.end = Some(ExecutionEnd::Completed);
                }
                Some(Step {
                    begin,
                    abandon: Vec::new(),
                    end: state.end,
                })
            }
            GraphEvent::Failed(at) => {
                advance(state, at, NodeEvent::Fail)?;
                Some(finish(state, ExecutionEnd::Failed))
            }
            GraphEvent::Stopped(stop) => Some(finish(state, stop.into())),
        }
    }

    /// Returns the nodes whose outputs the inputs of these nodes need.
    pub fn needs(&self, begin: &[usize]) -> BTreeSet<usize> {
        let mut needs = BTreeSet::new();
        for &at in begin {
            let referenced = ReferencedOutputs::of(self.node(at));
            let before = self.predecessors[at].iter().copied();
            needs.extend(before.filter(|&before| referenced.contains(self.node(before).id())));
        }
        needs
    }

    /// Builds the work of each node to start. A node whose input cannot be built fails, and the graph with it.
    pub fn prepare(
        &self,
        state: &mut GraphState,
        step: Step,
        context: &NodeContext<'_>,
    ) -> PreparedStep {
        let max_bytes = |_: &Documents<'_>| STEP_INLINE_MAX_BYTES;
        self.prepare_each(state, step, context, max_bytes, |at, documents| {
            let work = self.work_with(at, context, documents)?;
            let bytes = work.bytes();
            Ok((work, bytes))
        })
    }

    /// Checks the work of each node to start without building it, and returns the payload to store: a reference, from which a claim builds the
    /// work by [`Machine::payloads`]. `row_bytes` returns what a node's rows take with their payload.
    pub fn prepare_references(
        &self,
        state: &mut GraphState,
        step: Step,
        context: &NodeContext<'_>,
        row_bytes: impl Fn(usize, &JsonText) -> usize,
    ) -> PreparedStep<JsonText> {
        let read = |documents: &Documents<'_>| documents.bytes() + self.bytes;
        let max_bytes =
            |documents: &Documents<'_>| STEP_BASE_BYTES + STEP_BYTES_FACTOR * read(documents);
        self.prepare_each(state, step, context, max_bytes, |at, documents| {
            let payload = reference::reference(self, at, documents)?;
            let bytes = row_bytes(at, &payload);
            Ok((payload, bytes))
        })
    }

    fn prepare_each<Work>(
        &self,
        state: &mut GraphState,
        step: Step,
        context: &NodeContext<'_>,
        max_bytes: impl Fn(&Documents<'_>) -> usize,
        prepare: impl Fn(usize, &Documents<'_>) -> Result<(Work, usize), InputProblem>,
    ) -> PreparedStep<Work> {
        let mut begin = Vec::with_capacity(step.begin.len());
        let documents = Documents::read(self, &step.begin, context);
        let mut bytes = 0;
        for &at in &step.begin {
            let work = documents.as_ref().map_err(InputProblem::clone);
            let work = work.and_then(|documents| {
                let (work, own) = prepare(at, documents)?;
                bytes += own;
                match max_bytes(documents) {
                    max if bytes > max => Err(InputProblem::TooMuchAtOnce(max)),
                    _ => Ok(work),
                }
            });
            match work {
                Ok(work) => begin.push((at, work)),
                Err(problem) => {
                    let mut stop = self
                        .apply(state, GraphEvent::Failed(at))
                        .unwrap_or_default();
                    // These were never started.
                    stop.abandon.retain(|at| !step.begin.contains(at));
                    return PreparedStep {
                        begin: Vec::new(),
                        abandon: stop.abandon,
                        failed: Some((at, clip(&problem.to_string(), ERROR_MAX_CHARS))),
                        end: stop.end,
                    };
                }
            }
        }
        PreparedStep {
            begin,
            abandon: step.abandon,
            failed: None,
            end: step.end,
        }
    }

    /// Formats the error of an execution whose node failed.
    pub fn failure(&self, at: usize, error: &str) -> String {
        let text = format!("node `{}` failed: {error}", self.node(at).id);
        clip(&text, ERROR_MAX_CHARS)
    }

    /// Returns the nodes with an edge to this one.
    pub fn predecessors(&self, at: usize) -> &[usize] {
        &self.predecessors[at]
    }

    fn begin_ready(&self, state: &mut GraphState, candidates: &[usize]) -> Vec<usize> {
        let done = |state: &GraphState, at: &usize| state.nodes[*at] == NodeState::Completed;
        let mut begun = Vec::new();
        for &at in candidates {
            if self.predecessors[at]
                .iter()
                .all(|before| done(state, before))
                && advance(state, at, NodeEvent::Begin).is_some()
            {
                begun.push(at);
            }
        }
        begun
    }
}

fn advance(state: &mut GraphState, at: usize, event: NodeEvent) -> Option<()> {
    let node = state.nodes.get_mut(at)?;
    *node = node.after(event).ok()?;
    Some(())
}

/// Ends the graph: running nodes are abandoned, waiting nodes are cancelled.
fn finish(state: &mut GraphState, end: ExecutionEnd) -> Step {
    let mut abandon = Vec::new();
    for (at, node) in state.nodes.iter_mut().enumerate() {
        if *node == NodeState::Running {
            abandon.push(at);
        }
        if let Ok(cancelled) = node.after(NodeEvent::Cancel) {
            *node = cancelled;
        }
    }
    state.end = Some(end);
    Step {
        begin: Vec::new(),
        abandon,
        end: Some(end),
    }
}

#[cfg(test)]
mod tests;
