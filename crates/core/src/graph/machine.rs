//! The machine that runs a graph: given where it is and what happened, where it is then and what is to be done. Both engines are driven by it.

use super::input::{Documents, InputProblem, Reads};
use super::state::{GraphState, NodeEvent, NodeState};
use super::work::{Given, Work};
use super::{Graph, GraphProblem, Node};
use crate::ExecutionEnd;
use crate::limits::{ERROR_MAX_CHARS, STEP_MAX_BYTES};
use crate::text::clip;
use std::collections::{BTreeSet, HashMap};

/// A graph that was checked, with its edges both ways.
#[derive(Clone, Debug)]
pub struct Machine {
    graph: Graph,
    predecessors: Vec<Vec<usize>>,
    successors: Vec<Vec<usize>>,
}

/// What happened. Nodes are known by their place in the graph's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphEvent {
    /// A node is done.
    Completed(usize),
    /// A node is given up.
    Failed(usize),
    /// The whole is stopped.
    Stopped(GraphStop),
}

/// Why a graph is stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphStop {
    /// Somebody cancelled it.
    Cancelled,
    /// Somebody ended it without asking.
    Terminated,
    /// It took longer than it may.
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

/// What is to be done after an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Nodes to begin, in the order of the graph's list.
    pub begin: Vec<usize>,
    /// Nodes that were begun and are no longer wanted.
    pub abandon: Vec<usize>,
    /// The execution has ended.
    pub end: Option<ExecutionEnd>,
}

/// A step with what each new node asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Nodes to begin and their work, in the order of the graph's list.
    pub begin: Vec<(usize, Work)>,
    /// Nodes that were begun before and are no longer wanted.
    pub abandon: Vec<usize>,
    /// A node that failed before anybody could work on it, and why.
    pub failed: Option<(usize, String)>,
    /// The execution has ended.
    pub end: Option<ExecutionEnd>,
}

impl Machine {
    /// A machine for this graph, if it can run.
    pub fn new(graph: Graph) -> Result<Self, GraphProblem> {
        graph.validate()?;
        let place: HashMap<&str, usize> = graph.places();
        let mut predecessors = vec![Vec::new(); graph.nodes.len()];
        let mut successors = vec![Vec::new(); graph.nodes.len()];
        for edge in &graph.edges {
            let (from, to) = (place[edge.from.as_str()], place[edge.to.as_str()]);
            successors[from].push(to);
            predecessors[to].push(from);
        }
        for places in predecessors.iter_mut().chain(&mut successors) {
            places.sort_unstable();
        }
        Ok(Self {
            graph,
            predecessors,
            successors,
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node at this place.
    pub fn node(&self, at: usize) -> &Node {
        &self.graph.nodes[at]
    }

    /// Whether a state can be one of this graph's.
    pub fn fits(&self, state: &GraphState) -> bool {
        state.nodes.len() == self.graph.nodes.len()
    }

    /// The first state, and the nodes that wait for nothing.
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

    /// What an event leads to; none if it no longer means anything: the graph or the node has ended, or the node was never begun.
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

    /// The nodes whose outputs have to be known to begin these.
    pub fn needs(&self, begin: &[usize]) -> BTreeSet<usize> {
        let mut needs = BTreeSet::new();
        for &at in begin {
            let reads = Reads::of(self.node(at));
            let before = self.predecessors[at].iter().copied();
            needs.extend(before.filter(|&before| reads.node(self.node(before).id())));
        }
        needs
    }

    /// What each new node asks for. One that cannot be given what it asks for has failed, and the graph with it.
    pub fn prepare(&self, state: &mut GraphState, step: Step, given: &Given<'_>) -> Prepared {
        let mut begin = Vec::with_capacity(step.begin.len());
        let (documents, mut bytes) = (Documents::default(), 0);
        for &at in &step.begin {
            let work = self.work_with(at, given, &documents).and_then(|work| {
                bytes += work.bytes();
                if bytes > STEP_MAX_BYTES {
                    return Err(InputProblem::TooMuchAtOnce);
                }
                Ok(work)
            });
            match work {
                Ok(work) => begin.push((at, work)),
                Err(problem) => {
                    let mut stop = self
                        .apply(state, GraphEvent::Failed(at))
                        .unwrap_or_default();
                    // Nobody was told of these.
                    stop.abandon.retain(|at| !step.begin.contains(at));
                    return Prepared {
                        begin: Vec::new(),
                        abandon: stop.abandon,
                        failed: Some((at, clip(&problem.to_string(), ERROR_MAX_CHARS))),
                        end: stop.end,
                    };
                }
            }
        }
        Prepared {
            begin,
            abandon: step.abandon,
            failed: None,
            end: step.end,
        }
    }

    /// The error of an execution whose node failed.
    pub fn failure(&self, at: usize, error: &str) -> String {
        let text = format!("node `{}` failed: {error}", self.node(at).id);
        clip(&text, ERROR_MAX_CHARS)
    }

    /// The nodes with an edge to this one.
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

/// Ends the graph: what was begun is abandoned, what was not will never be.
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
