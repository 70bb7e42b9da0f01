//! Why a graph cannot run. Each problem names the node or edge at fault, and where it stands.

use crate::limits::{GRAPH_MAX_EDGES, GRAPH_MAX_NODES};
use crate::text::TextProblem;
use thiserror::Error;

/// Why a graph cannot run. Each names the node or edge at fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphProblem {
    /// No node at all.
    #[error("a graph needs at least one node")]
    Empty,
    /// Too many nodes.
    #[error("a graph may have at most {GRAPH_MAX_NODES} nodes, has {0}")]
    TooManyNodes(usize),
    /// Too many edges.
    #[error("a graph may have at most {GRAPH_MAX_EDGES} edges, has {0}")]
    TooManyEdges(usize),
    /// A node's id, or another text of it, is not acceptable.
    #[error("nodes[{index}].{field} {problem}")]
    BadText {
        /// Position in `nodes`.
        index: usize,
        /// Which text.
        field: &'static str,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// Something else about a node.
    #[error("nodes[{index}].{field} {problem}")]
    BadNode {
        /// Position in `nodes`.
        index: usize,
        /// Which field, as a pointer without its first slash.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two nodes share an id.
    #[error("nodes[{index}].id `{id}` is used by an earlier node")]
    DuplicateNode {
        /// Position of the second one in `nodes`.
        index: usize,
        /// The shared id.
        id: String,
    },
    /// An edge names a node that is not there.
    #[error("edges[{index}].{end} names the node `{id}`, which is not in the graph")]
    UnknownNode {
        /// Position in `edges`.
        index: usize,
        /// Which end: `from` or `to`.
        end: &'static str,
        /// The name.
        id: String,
    },
    /// The same edge twice.
    #[error("edges[{index}] repeats the edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// Position of the second one in `edges`.
        index: usize,
        /// Its start.
        from: String,
        /// Its end.
        to: String,
    },
    /// Nodes that wait for each other.
    #[error("the graph has a cycle through {}", .0.join(" → "))]
    Cycle(Vec<String>),
}

impl GraphProblem {
    /// JSON pointer to what is wrong, from the graph on.
    pub fn pointer(&self) -> String {
        match self {
            Self::Empty | Self::TooManyNodes(_) => "/nodes".to_owned(),
            Self::TooManyEdges(_) | Self::Cycle(_) => "/edges".to_owned(),
            Self::BadText { index, field, .. } => format!("/nodes/{index}/{field}"),
            Self::BadNode { index, field, .. } => format!("/nodes/{index}/{field}"),
            Self::DuplicateNode { index, .. } => format!("/nodes/{index}/id"),
            Self::UnknownNode { index, end, .. } => format!("/edges/{index}/{end}"),
            Self::DuplicateEdge { index, .. } => format!("/edges/{index}"),
        }
    }
}
