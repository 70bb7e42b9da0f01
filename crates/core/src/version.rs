//! What a published version of a definition runs: a graph of ours, or a binding to a workflow the user's own workers serve.

use crate::graph::{Graph, GraphProblem};
use crate::limits::{GRAPH_MAX_BYTES, NODE_ID_MAX_CHARS};
use crate::text::{self, TextProblem};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The immutable content of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum VersionBody {
    /// Leasehold runs it, node by node.
    Graph(Graph),
    /// The user's own Temporal workers run it.
    Binding {
        /// The workflow type they registered.
        workflow_type: String,
        /// The task queue they poll.
        task_queue: String,
    },
}

/// Why a version cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VersionProblem {
    /// The graph is not well formed.
    #[error(transparent)]
    Graph(#[from] GraphProblem),
    /// The graph is too large as JSON.
    #[error("a graph must have at most {GRAPH_MAX_BYTES} bytes as JSON, has {0}")]
    TooLarge(usize),
    /// A name of the binding is not acceptable.
    #[error("{field} {problem}")]
    Text {
        /// Which name.
        field: &'static str,
        /// What is wrong with it.
        problem: TextProblem,
    },
}

impl VersionBody {
    /// Checks everything that can be known without looking anywhere else.
    pub fn validate(&self) -> Result<(), VersionProblem> {
        match self {
            Self::Graph(graph) => {
                graph.validate()?;
                match serde_json::to_vec(graph).map_or(0, |text| text.len()) {
                    size if size > GRAPH_MAX_BYTES => Err(VersionProblem::TooLarge(size)),
                    _ => Ok(()),
                }
            }
            Self::Binding {
                workflow_type,
                task_queue,
            } => {
                let check = |field, value: &str| {
                    text::check(value, NODE_ID_MAX_CHARS)
                        .map_err(|problem| VersionProblem::Text { field, problem })
                };
                check("workflow_type", workflow_type)?;
                check("task_queue", task_queue)
            }
        }
    }

    /// The ids of its nodes in the order they can run, none for a binding.
    pub fn node_ids(&self) -> Vec<&str> {
        match self {
            Self::Graph(graph) => graph.topological_order().unwrap_or_default(),
            Self::Binding { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_kinds_are_read_from_json_and_unknown_fields_are_refused() {
        let binding = json!({"binding": {"workflow_type": "Order", "task_queue": "orders"}});
        let body: VersionBody = serde_json::from_value(binding).unwrap();
        assert_eq!(body.validate(), Ok(()));
        assert!(body.node_ids().is_empty());
        let more = json!({"binding": {"workflow_type": "a", "task_queue": "b", "c": 1}});
        assert!(serde_json::from_value::<VersionBody>(more).is_err());
    }

    #[test]
    fn a_binding_needs_both_names() {
        let body = VersionBody::Binding {
            workflow_type: "Order".into(),
            task_queue: String::new(),
        };
        assert_eq!(
            body.validate().unwrap_err().to_string(),
            "task_queue must not be empty"
        );
    }
}
