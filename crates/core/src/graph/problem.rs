//! Why a graph is invalid. Each problem names the node or edge and its position.

use crate::limits::{GRAPH_MAX_EDGES, GRAPH_MAX_NODES};
use crate::text::TextProblem;
use thiserror::Error;

/// Why a graph is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphProblem {
    /// The graph has no node.
    #[error("a graph needs at least one node")]
    Empty,
    /// Too many nodes.
    #[error("a graph may have at most {GRAPH_MAX_NODES} nodes, has {0}")]
    TooManyNodes(usize),
    /// Too many edges.
    #[error("a graph may have at most {GRAPH_MAX_EDGES} edges, has {0}")]
    TooManyEdges(usize),
    /// The id or another text of a node is invalid.
    #[error("nodes[{index}].{field} {problem}")]
    BadText {
        /// Position in `nodes`.
        index: usize,
        /// The field.
        field: &'static str,
        /// The problem.
        problem: TextProblem,
    },
    /// Another field of a node is invalid.
    #[error("nodes[{index}].{field} {problem}")]
    BadNode {
        /// Position in `nodes`.
        index: usize,
        /// The field, as a JSON pointer without its first slash.
        field: String,
        /// The problem.
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
    /// An edge names a node that does not exist.
    #[error("edges[{index}].{end} names the node `{id}`, which is not in the graph")]
    UnknownNode {
        /// Position in `edges`.
        index: usize,
        /// The end of the edge: `from` or `to`.
        end: &'static str,
        /// The id that the edge names.
        id: String,
    },
    /// An edge is listed twice.
    #[error("edges[{index}] repeats the edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// Position of the second one in `edges`.
        index: usize,
        /// Its start.
        from: String,
        /// Its end.
        to: String,
    },
    /// Nodes wait for each other.
    #[error("the graph has a cycle through {}", .0.join(" → "))]
    Cycle(Vec<String>),
}

impl GraphProblem {
    /// Returns the JSON pointer to the invalid value, relative to the graph.
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
