//! Graphs: nodes and edges, inputs of nodes, and the state machine that runs them. Knows no engine, no store, no clock.

mod change;
mod input;
mod lookup;
mod machine;
mod node;
mod pointer;
mod problem;
mod reference;
mod run;
mod state;
mod url;
mod validate;
mod work;

pub use change::{EndPreview, GraphChange, GraphOrigin, NodeEnd, NodeOutcome, NodeSource};
pub use input::InputProblem;
pub use machine::{GraphEvent, GraphStop, Machine, PreparedStep, Step};
pub use node::{Node, NodeKind, NodeRetry};
pub use problem::GraphProblem;
pub use reference::NodeReference;
pub use run::NodeRun;
pub use state::{GraphState, IllegalNodeTransition, NodeEvent, NodeState};
pub use work::{HttpCall, NodeContext, NodeWork};

use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A directed acyclic graph: each node starts when all nodes with an edge to it have completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "GraphDocument")]
pub struct Graph {
    /// The nodes, each with an id of its own.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// Returns the queues of its task nodes, each once, in the order of the node list.
    pub fn task_queues(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let queues = self.nodes.iter().filter_map(|node| node.kind.task_queue());
        queues.filter(|queue| seen.insert(*queue)).collect()
    }
}

/// The JSON form of a graph; `$schema` is for editors and ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphDocument {
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    nodes: Vec<Node>,
    #[serde(default)]
    edges: Vec<Edge>,
}

impl From<GraphDocument> for Graph {
    fn from(document: GraphDocument) -> Self {
        Self {
            nodes: document.nodes,
            edges: document.edges,
        }
    }
}

/// `to` starts only after `from` has completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The node that comes first.
    pub from: String,
    /// The node that waits.
    pub to: String,
}
