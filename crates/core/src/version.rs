//! A published version of a definition: a graph, or a binding to a workflow that the user's own workers run.

use crate::graph::{Graph, GraphProblem};
use crate::ids::{DefinitionId, VersionId, WorkspaceId};
use crate::json;
use crate::limits::{GRAPH_MAX_BYTES, NODE_ID_MAX_CHARS};
use crate::text::{self, TextProblem};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use thiserror::Error;

/// One published version of a definition. It never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The workspace that owns the definition.
    pub workspace: WorkspaceId,
    /// The definition.
    pub definition: DefinitionId,
    /// 1, 2, 3 … within the definition.
    pub number: u32,
    /// What it runs.
    pub body: VersionBody,
    /// The JSON Schema that params must match.
    pub params_schema: Option<Value>,
    /// The timeout of an execution.
    pub execution_timeout: Option<Duration>,
    /// When it was published.
    pub created_at: Timestamp,
}

/// What a version runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "BodyDocument")]
pub enum VersionBody {
    /// A graph, which Leasehold runs node by node.
    Graph(Graph),
    /// A workflow that the user's own Temporal workers run.
    Binding {
        /// The workflow type they registered.
        workflow_type: String,
        /// The task queue they poll.
        task_queue: String,
    },
}

/// The JSON form of a body; parsed field by field, so that errors name the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyDocument {
    graph: Option<Graph>,
    binding: Option<BindingDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BindingDocument {
    workflow_type: String,
    task_queue: String,
}

impl TryFrom<BodyDocument> for VersionBody {
    type Error = &'static str;

    fn try_from(from: BodyDocument) -> Result<Self, Self::Error> {
        match (from.graph, from.binding) {
            (Some(graph), None) => Ok(Self::Graph(graph)),
            (None, Some(binding)) => Ok(Self::Binding {
                workflow_type: binding.workflow_type,
                task_queue: binding.task_queue,
            }),
            _ => Err("a version has either a `graph` or a `binding`"),
        }
    }
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
    /// A name of the binding is invalid.
    #[error("{field} {problem}")]
    Text {
        /// The field.
        field: &'static str,
        /// The problem.
        problem: TextProblem,
    },
}

impl VersionProblem {
    /// Returns the JSON pointer to the invalid value, relative to the body.
    pub fn pointer(&self) -> String {
        match self {
            Self::Graph(problem) => format!("/graph{}", problem.pointer()),
            Self::TooLarge(_) => "/graph".to_owned(),
            Self::Text { field, .. } => format!("/binding/{field}"),
        }
    }
}

impl VersionBody {
    /// Checks everything that does not need a lookup.
    pub fn validate(&self) -> Result<(), VersionProblem> {
        match self {
            Self::Graph(graph) => {
                graph.validate()?;
                // PostgreSQL returns it with numbers written out.
                let text = serde_json::to_vec(graph).unwrap_or_default();
                match json::written_out_bytes(&text) {
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

    /// Returns the queues of its task nodes, each once; none for a binding.
    pub fn task_queues(&self) -> Vec<&str> {
        match self {
            Self::Graph(graph) => graph.task_queues(),
            Self::Binding { .. } => Vec::new(),
        }
    }

    /// Returns the ids of its nodes in topological order; empty for a binding.
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
    fn both_kinds_parse_from_json_and_unknown_fields_are_rejected() {
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
        let problem = body.validate().unwrap_err();
        assert_eq!(problem.to_string(), "task_queue must not be empty");
        assert_eq!(problem.pointer(), "/binding/task_queue");
    }
}
