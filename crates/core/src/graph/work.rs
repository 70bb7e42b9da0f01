//! The work of a node, built from the node, the params and the outputs of its predecessors.

use super::input::{Documents, InputProblem, NodeSources};
use super::machine::Machine;
use super::node::{Node, NodeKind};
use super::url;
use crate::job::JobRetry;
use crate::limits::MAX_ATTEMPTS_MAX;
use crate::{ExecutionId, JsonText, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The shortest wait between two attempts of an HTTP call; protects the called server and DNS from rapid retries.
const CALL_WAIT_MIN: Duration = Duration::from_millis(100);
/// Timeout of an HTTP call whose node sets none.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a payload besides the texts of its node: names of fields, ids, the method.
const ENVELOPE_BYTES: usize = 256;

/// What the work of a node is built from.
#[derive(Clone, Copy, Debug)]
pub struct NodeContext<'a> {
    /// The execution.
    pub execution: ExecutionId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// The params of the request.
    pub params: &'a JsonText,
    /// Outputs of nodes by index in the graph's node list; a missing one is null.
    pub outputs: &'a HashMap<usize, JsonText>,
}

/// The work of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeWork {
    /// A job.
    Task {
        /// The queue it goes to.
        queue: String,
        /// The kind of work; handlers are registered by kind.
        kind: String,
        /// The input of the job.
        payload: JsonText,
        /// The retry policy.
        retry: JobRetry,
        /// Timeout of one attempt; none takes the queue's.
        timeout: Option<Duration>,
    },
    /// An HTTP call.
    Http {
        /// The call.
        call: HttpCall,
        /// The retry policy.
        retry: JobRetry,
        /// Timeout of one attempt.
        timeout: Duration,
    },
    /// A pause.
    Delay(Duration),
}

/// An HTTP call to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpCall {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Headers to send.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// JSON to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<JsonText>,
    /// The same for every attempt of one node of one execution, so that the called server can detect a repetition.
    pub idempotency_key: String,
}

/// The payload of a task's job.
#[derive(Serialize)]
struct TaskPayload<'a> {
    execution_id: ExecutionId,
    workspace_id: WorkspaceId,
    node_id: &'a str,
    input: &'a JsonText,
}

impl Machine {
    /// Builds the work of the node at this index.
    pub fn work(&self, at: usize, context: &NodeContext<'_>) -> Result<NodeWork, InputProblem> {
        self.work_with(at, context, &Documents::read(self, &[at], context)?)
    }

    /// Builds the payloads of the jobs of these nodes.
    pub fn payloads(
        &self,
        nodes: &[usize],
        context: &NodeContext<'_>,
    ) -> Vec<Result<JsonText, InputProblem>> {
        let documents = Documents::read(self, nodes, context);
        let payload = |&at: &usize| {
            let documents = documents.as_ref().map_err(InputProblem::clone)?;
            let work = self.work_with(at, context, documents)?;
            work.into_payload()
        };
        nodes.iter().map(payload).collect()
    }

    /// Builds the work of a node from documents that were read for it, perhaps with other nodes.
    pub(super) fn work_with(
        &self,
        at: usize,
        context: &NodeContext<'_>,
        documents: &Documents<'_>,
    ) -> Result<NodeWork, InputProblem> {
        let node = self.node(at);
        let sources = NodeSources {
            machine: self,
            at,
            documents,
        };
        match &node.kind {
            NodeKind::Task { queue, .. } => {
                let payload = TaskPayload {
                    execution_id: context.execution,
                    workspace_id: context.workspace,
                    node_id: &node.id,
                    input: &sources.input(node)?,
                };
                Ok(NodeWork::Task {
                    queue: queue.clone(),
                    kind: node.job_kind().to_owned(),
                    payload: JsonText::of(&payload).map_err(|_| InputProblem::NotJson)?,
                    retry: node.job_retry(),
                    timeout: node.timeout,
                })
            }
            NodeKind::Http {
                method,
                url,
                headers,
            } => Ok(NodeWork::Http {
                call: HttpCall {
                    method: method.clone(),
                    url: url::url(url, &sources)?,
                    headers: headers.clone(),
                    body: match node.kind.has_default_input() {
                        true => Some(sources.input(node)?),
                        false => None,
                    },
                    idempotency_key: format!("{}/{}", context.execution, at),
                },
                retry: node.job_retry(),
                timeout: node.timeout.unwrap_or(CALL_TIMEOUT),
            }),
            NodeKind::Delay { milliseconds } => {
                Ok(NodeWork::Delay(Duration::from_millis(*milliseconds)))
            }
        }
    }

    /// Computes the bytes of a node's work without building it.
    pub(super) fn work_bytes(
        &self,
        at: usize,
        documents: &Documents<'_>,
    ) -> Result<usize, InputProblem> {
        let node = self.node(at);
        let sources = NodeSources {
            machine: self,
            at,
            documents,
        };
        let mut bytes = ENVELOPE_BYTES + node.id.len();
        if let NodeKind::Http { url, headers, .. } = &node.kind {
            bytes += url::url(url, &sources)?.len() + header_bytes(headers);
        }
        if node.kind.has_default_input() {
            bytes += sources.input_bytes(node)?;
        }
        Ok(bytes)
    }
}

impl Node {
    /// Returns the kind of its job.
    pub fn job_kind(&self) -> &str {
        match &self.kind {
            NodeKind::Task { kind, .. } => kind.as_deref().unwrap_or(&self.id),
            NodeKind::Http { .. } | NodeKind::Delay { .. } => self.kind.type_name(),
        }
    }

    /// Returns the retry policy of its job.
    pub fn job_retry(&self) -> JobRetry {
        let mut retry = self.retry();
        match self.kind {
            NodeKind::Task { .. } => {}
            NodeKind::Http { .. } => {
                retry.backoff.base = retry.backoff.base.max(CALL_WAIT_MIN);
                retry.backoff.max = retry.backoff.max.max(CALL_WAIT_MIN);
            }
            // A delay has no permanent failure.
            NodeKind::Delay { .. } => retry.max_attempts = MAX_ATTEMPTS_MAX,
        }
        retry
    }

    /// Returns the timeout of one attempt of its job; none takes the queue's.
    pub fn job_timeout(&self) -> Option<Duration> {
        match self.kind {
            NodeKind::Task { .. } | NodeKind::Delay { .. } => self.timeout,
            NodeKind::Http { .. } => Some(self.timeout.unwrap_or(CALL_TIMEOUT)),
        }
    }
}

fn header_bytes(headers: &BTreeMap<String, String>) -> usize {
    let headers = headers.iter();
    headers.map(|(name, value)| name.len() + value.len()).sum()
}

impl NodeWork {
    /// Returns the bytes of texts and JSON it carries.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Task { payload, .. } => payload.as_str().len(),
            Self::Http { call, .. } => {
                let body = call.body.as_ref().map_or(0, |body| body.as_str().len());
                call.url.len() + header_bytes(&call.headers) + body
            }
            Self::Delay(_) => 0,
        }
    }

    /// Returns the payload of its job.
    pub fn into_payload(self) -> Result<JsonText, InputProblem> {
        match self {
            Self::Task { payload, .. } => Ok(payload),
            Self::Http { call, .. } => JsonText::of(&call).map_err(|_| InputProblem::NotJson),
            Self::Delay(_) => Ok(JsonText::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Edge, Graph};
    use super::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    fn work(node: Value, params: Value) -> Result<NodeWork, InputProblem> {
        let first = json!({"id": "first", "type": "delay", "milliseconds": 1});
        let machine = Machine::new(Graph {
            nodes: vec![
                serde_json::from_value(first).unwrap(),
                serde_json::from_value(node).unwrap(),
            ],
            edges: vec![Edge {
                from: "first".into(),
                to: "second".into(),
            }],
        });
        let context = NodeContext {
            execution: ExecutionId(Uuid::nil()),
            workspace: WorkspaceId(Uuid::nil()),
            params: &JsonText::from(&params),
            outputs: &HashMap::from([(0, JsonText::from(&json!({"at": 7})))]),
        };
        machine.unwrap().work(1, &context)
    }

    #[test]
    fn task_payload_holds_params_and_outputs() {
        let node = json!({"id": "second", "type": "task", "queue": "mail", "retry": {"max_attempts": 2}, "timeout_ms": 10});
        let NodeWork::Task {
            queue,
            kind,
            payload,
            retry,
            timeout,
        } = work(node, json!({"to": "a"})).unwrap()
        else {
            panic!("no task");
        };
        assert_eq!(
            (queue.as_str(), kind.as_str(), retry.max_attempts),
            ("mail", "second", 2)
        );
        assert_eq!(timeout, Some(Duration::from_millis(10)));
        let expected = json!({
            "execution_id": Uuid::nil(), "workspace_id": Uuid::nil(), "node_id": "second",
            "input": {"params": {"to": "a"}, "nodes": {"first": {"at": 7}}},
        });
        assert_eq!(payload.read::<Value>().unwrap(), expected);
    }

    #[test]
    fn call_has_a_filled_url_and_its_input_as_body() {
        let node = json!({"id": "second", "type": "http", "method": "POST", "url": "https://example.com/o/{/params/id}",
            "input": {"at": {"$from": "/nodes/first/at"}}});
        let NodeWork::Http { call, timeout, .. } = work(node, json!({"id": "ä/b"})).unwrap()
        else {
            panic!("no call");
        };
        assert_eq!(call.url, "https://example.com/o/%C3%A4%2Fb");
        assert_eq!(
            call.body.as_ref().map(JsonText::as_str),
            Some(r#"{"at":7}"#)
        );
        assert_eq!(call.idempotency_key, format!("{}/1", Uuid::nil()));
        assert_eq!(timeout, CALL_TIMEOUT);
        let text = serde_json::to_string(&call).unwrap();
        assert_eq!(serde_json::from_str::<HttpCall>(&text).unwrap(), call);
    }

    #[test]
    fn get_has_no_body() {
        let node = json!({"id": "second", "type": "http", "url": "https://example.com"});
        let NodeWork::Http { call, .. } = work(node, json!(null)).unwrap() else {
            panic!("no call");
        };
        assert_eq!((call.method.as_str(), call.body), ("GET", None));
    }
}
