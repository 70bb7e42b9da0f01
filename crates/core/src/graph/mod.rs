//! A graph as data: nodes and the edges between them. How one runs is not known here.

mod validate;

pub use validate::GraphProblem;

use crate::limits::{NODE_ID_MAX_CHARS, QUEUE_NAME_MAX_CHARS, URL_MAX_CHARS};
use serde::{Deserialize, Serialize};

/// What a version runs: each node starts when all nodes with an edge to it have completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The nodes, each with an id of its own.
    pub nodes: Vec<Node>,
    /// What waits for what.
    #[serde(default)]
    pub edges: Vec<Edge>,
}

/// One piece of work in a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Node {
    /// A job on a named queue, done by whoever claims it.
    Task {
        /// The node's id.
        id: String,
        /// The WorkQueue's queue it goes to.
        queue: String,
    },
    /// An HTTP call.
    Http {
        /// The node's id.
        id: String,
        /// The method, GET unless said otherwise.
        #[serde(default = "get")]
        method: String,
        /// Where to.
        url: String,
    },
    /// A pause.
    Delay {
        /// The node's id.
        id: String,
        /// How long, in milliseconds.
        milliseconds: u64,
    },
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

fn get() -> String {
    "GET".to_owned()
}

impl Node {
    /// The texts that people chose, each with its name and the most characters it may have.
    fn texts(&self) -> Vec<(&'static str, &str, usize)> {
        let mut texts = vec![("id", self.id(), NODE_ID_MAX_CHARS)];
        match self {
            Self::Task { queue, .. } => texts.push(("queue", queue, QUEUE_NAME_MAX_CHARS)),
            Self::Http { method, url, .. } => {
                texts.push(("method", method, NODE_ID_MAX_CHARS));
                texts.push(("url", url, URL_MAX_CHARS));
            }
            Self::Delay { .. } => {}
        }
        texts
    }

    /// The node's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Task { id, .. } | Self::Http { id, .. } | Self::Delay { id, .. } => id,
        }
    }
}
