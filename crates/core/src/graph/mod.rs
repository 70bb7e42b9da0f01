//! A graph: its nodes and edges as data, what each node needs, and the machine that runs it. Knows no engine, no store, no clock.

mod change;
mod input;
mod machine;
mod node;
mod problem;
mod run;
mod state;
mod validate;
mod work;

pub use change::{Foresight, GraphChange, GraphOrigin, NodeEnd, NodeOutcome, NodeSource};
pub use input::InputProblem;
pub use machine::{GraphEvent, GraphStop, Machine, Prepared, Step};
pub use node::{Node, NodeKind, NodeRetry};
pub use problem::GraphProblem;
pub use run::NodeRun;
pub use state::{GraphState, IllegalNodeTransition, NodeEvent, NodeState};
pub use work::{Given, HttpCall, Work};

use serde::{Deserialize, Serialize};

/// What a version runs: each node starts when all nodes with an edge to it have completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "GraphDocument")]
pub struct Graph {
    /// The nodes, each with an id of its own.
    pub nodes: Vec<Node>,
    /// What waits for what.
    pub edges: Vec<Edge>,
}

/// A graph as people write it, with a line for their editor.
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
