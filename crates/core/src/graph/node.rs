//! A node, and its JSON form: one flat object whose `type` determines its fields.

use super::input::has_body;
use crate::duration::millis;
use crate::job::JobRetry;
use crate::retry::Backoff;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "NodeDocument", try_from = "NodeDocument")]
pub struct Node {
    /// Its id, unique in the graph.
    pub id: String,
    /// What it does.
    pub kind: NodeKind,
    /// Template of its input: JSON in which `{"$from": "/params/…"}` and `{"$from": "/nodes/{id}/…"}` are references. None passes everything.
    pub input: Option<Value>,
    /// Timeout of one attempt.
    pub timeout: Option<Duration>,
    /// The retry policy.
    pub retry: Option<NodeRetry>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A job in a named queue, run by a worker.
    Task {
        /// The queue of the job.
        queue: String,
        /// The kind of the job; the node's id if none.
        kind: Option<String>,
    },
    /// An HTTP call.
    Http {
        /// GET, HEAD, POST, PUT, PATCH or DELETE.
        method: String,
        /// The URL; `{/params/…}` and `{/nodes/{id}/…}` after the host are references.
        url: String,
        /// Headers to send.
        headers: BTreeMap<String, String>,
    },
    /// A pause.
    Delay {
        /// How long, in milliseconds.
        milliseconds: u64,
    },
}

/// The retry policy of a node; unset fields take the default of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRetry {
    /// Attempts before the node fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The wait after the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<u64>,
    /// The factor by which each wait grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// The random part of a wait, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

impl NodeRetry {
    /// Returns the policy with defaults filled in.
    pub fn policy(&self) -> JobRetry {
        let default = JobRetry::default();
        let millis =
            |given: Option<u64>, else_: Duration| given.map_or(else_, Duration::from_millis);
        JobRetry {
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            backoff: Backoff {
                base: millis(self.base_ms, default.backoff.base),
                factor: self.factor.unwrap_or(default.backoff.factor),
                max: millis(self.max_ms, default.backoff.max),
                jitter: self.jitter.unwrap_or(default.backoff.jitter),
            },
        }
    }
}

impl NodeKind {
    /// The queue of `http` nodes.
    pub const HTTP_QUEUE: &'static str = "leasehold:http";
    /// The queue of `delay` nodes.
    pub const DELAY_QUEUE: &'static str = "leasehold:delay";

    /// Returns the name of its type, as in JSON.
    pub const fn type_name(&self) -> &'static str {
        self.node_type().name()
    }

    /// Returns the queue of its job.
    pub fn queue(&self) -> &str {
        match self {
            Self::Task { queue, .. } => queue,
            Self::Http { .. } => Self::HTTP_QUEUE,
            Self::Delay { .. } => Self::DELAY_QUEUE,
        }
    }

    /// Returns the queue that a task node names; none for other nodes.
    pub fn task_queue(&self) -> Option<&str> {
        match self {
            Self::Task { queue, .. } => Some(queue),
            Self::Http { .. } | Self::Delay { .. } => None,
        }
    }

    /// Returns whether a node without an `input` template receives params and outputs.
    pub(super) fn has_default_input(&self) -> bool {
        match self {
            Self::Task { .. } => true,
            Self::Http { method, .. } => has_body(method),
            Self::Delay { .. } => false,
        }
    }

    const fn node_type(&self) -> NodeType {
        match self {
            Self::Task { .. } => NodeType::Task,
            Self::Http { .. } => NodeType::Http,
            Self::Delay { .. } => NodeType::Delay,
        }
    }
}

impl Node {
    /// Creates a node with default options.
    pub fn new(id: impl Into<String>, kind: NodeKind) -> Self {
        Self {
            id: id.into(),
            kind,
            input: None,
            timeout: None,
            retry: None,
        }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the retry policy with defaults filled in.
    pub fn retry(&self) -> JobRetry {
        self.retry.unwrap_or_default().policy()
    }
}

/// The JSON form of a node: the fields of all types.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeDocument {
    id: String,
    r#type: NodeType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    milliseconds: Option<u64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry: Option<NodeRetry>,
}

/// Distinguishes an input that is null from a missing one.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NodeType {
    #[default]
    Task,
    Http,
    Delay,
}

impl NodeType {
    const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Http => "http",
            Self::Delay => "delay",
        }
    }

    /// Returns the fields it has besides `id` and `type`.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Task => &["queue", "kind", "input", "timeout_ms", "retry"],
            Self::Http => &["method", "url", "headers", "input", "timeout_ms", "retry"],
            Self::Delay => &["milliseconds"],
        }
    }
}

impl NodeDocument {
    /// Returns a field that is set but does not belong to the type.
    fn misplaced(&self) -> Option<&'static str> {
        let given = [
            ("queue", self.queue.is_some()),
            ("kind", self.kind.is_some()),
            ("method", self.method.is_some()),
            ("url", self.url.is_some()),
            ("headers", self.headers.is_some()),
            ("milliseconds", self.milliseconds.is_some()),
            ("input", self.input.is_some()),
            ("timeout_ms", self.timeout_ms.is_some()),
            ("retry", self.retry.is_some()),
        ];
        let own = self.r#type.fields();
        given
            .into_iter()
            .find(|(name, given)| *given && !own.contains(name))
            .map(|(name, _)| name)
    }

    fn kind(&mut self) -> Result<NodeKind, String> {
        let needs = |name: &str| format!("a {} node needs `{name}`", self.r#type.name());
        match self.r#type {
            NodeType::Task => Ok(NodeKind::Task {
                queue: self.queue.take().ok_or_else(|| needs("queue"))?,
                kind: self.kind.take(),
            }),
            NodeType::Http => Ok(NodeKind::Http {
                url: self.url.take().ok_or_else(|| needs("url"))?,
                method: self.method.take().unwrap_or_else(|| "GET".to_owned()),
                headers: self.headers.take().unwrap_or_default(),
            }),
            NodeType::Delay => Ok(NodeKind::Delay {
                milliseconds: self.milliseconds.ok_or_else(|| needs("milliseconds"))?,
            }),
        }
    }
}

impl TryFrom<NodeDocument> for Node {
    type Error = String;

    fn try_from(mut from: NodeDocument) -> Result<Self, Self::Error> {
        if let Some(name) = from.misplaced() {
            let of = from.r#type.name();
            return Err(format!("a {of} node has no field `{name}`"));
        }
        Ok(Self {
            kind: from.kind()?,
            id: from.id,
            input: from.input,
            timeout: from.timeout_ms.map(Duration::from_millis),
            retry: from.retry,
        })
    }
}

impl From<Node> for NodeDocument {
    fn from(node: Node) -> Self {
        let common = Self {
            id: node.id,
            input: node.input,
            timeout_ms: node.timeout.map(millis),
            retry: node.retry,
            ..Self::default()
        };
        match node.kind {
            NodeKind::Task { queue, kind } => Self {
                r#type: NodeType::Task,
                queue: Some(queue),
                kind,
                ..common
            },
            NodeKind::Http {
                method,
                url,
                headers,
            } => Self {
                r#type: NodeType::Http,
                method: Some(method),
                url: Some(url),
                headers: (!headers.is_empty()).then_some(headers),
                ..common
            },
            NodeKind::Delay { milliseconds } => Self {
                r#type: NodeType::Delay,
                milliseconds: Some(milliseconds),
                ..common
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_type_serializes_and_parses_back() {
        let documents = [
            json!({"id": "a", "type": "task", "queue": "q"}),
            json!({"id": "a", "type": "task", "queue": "q", "kind": "k", "input": {"$from": "/params"}, "timeout_ms": 5,
                "retry": {"max_attempts": 2, "base_ms": 1, "factor": 1.5, "max_ms": 9, "jitter": 0.5}}),
            json!({"id": "a", "type": "task", "queue": "q", "input": null}),
            json!({"id": "a", "type": "http", "method": "GET", "url": "https://example.com"}),
            json!({"id": "a", "type": "http", "method": "POST", "url": "https://example.com", "headers": {"x-a": "b"}}),
            json!({"id": "a", "type": "delay", "milliseconds": 7}),
        ];
        for document in documents {
            let node: Node = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(&node).unwrap(), document);
        }
    }

    #[test]
    fn each_type_has_its_name_and_its_queue() {
        let cases = [
            (
                json!({"id": "a", "type": "task", "queue": "q"}),
                "task",
                "q",
            ),
            (
                json!({"id": "a", "type": "http", "url": "https://example.com"}),
                "http",
                "leasehold:http",
            ),
            (
                json!({"id": "a", "type": "delay", "milliseconds": 7}),
                "delay",
                "leasehold:delay",
            ),
        ];
        for (document, name, queue) in cases {
            let node: Node = serde_json::from_value(document).unwrap();
            assert_eq!((node.kind.type_name(), node.kind.queue()), (name, queue));
        }
    }

    #[test]
    fn unknown_and_missing_fields_are_named() {
        let cases = [
            (
                json!({"id": "a", "type": "task"}),
                "a task node needs `queue`",
            ),
            (
                json!({"id": "a", "type": "http"}),
                "a http node needs `url`",
            ),
            (
                json!({"id": "a", "type": "delay"}),
                "a delay node needs `milliseconds`",
            ),
            (
                json!({"id": "a", "type": "delay", "milliseconds": 1, "queue": "q"}),
                "a delay node has no field `queue`",
            ),
            (
                json!({"id": "a", "type": "task", "queue": "q", "url": "u"}),
                "a task node has no field `url`",
            ),
            (
                json!({"id": "a", "type": "jump"}),
                "unknown variant `jump`, expected one of `task`, `http`, `delay`",
            ),
            (
                json!({"id": "a", "type": "task", "queue": "q", "colour": 1}),
                "unknown field `colour`",
            ),
        ];
        for (document, expected) in cases {
            let error = serde_json::from_value::<Node>(document)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn unset_retry_fields_take_the_defaults_of_jobs() {
        let policy = NodeRetry {
            max_attempts: Some(2),
            base_ms: Some(10),
            ..NodeRetry::default()
        }
        .policy();
        assert_eq!(policy.max_attempts, 2);
        assert_eq!(policy.backoff.base, Duration::from_millis(10));
        assert_eq!(policy.backoff.max, Backoff::default().max);
        assert_eq!(NodeRetry::default().policy(), JobRetry::default());
    }
}
