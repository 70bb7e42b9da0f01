//! The work of a node, built from the node, the params and the outputs of its predecessors.

use super::input::{self, InputProblem, ParsedDocuments, Sources};
use super::machine::Machine;
use super::node::{Node, NodeKind};
use crate::job::JobRetry;
use crate::{ExecutionId, JsonText, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The shortest wait between two attempts of an HTTP call; protects the called server and DNS from rapid retries.
const CALL_WAIT_MIN: Duration = Duration::from_millis(100);
/// Timeout of an HTTP call whose node sets none.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

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
        self.work_with(at, context, &ParsedDocuments::default())
    }

    /// Builds the work of a node with documents that were parsed for other nodes of the same execution.
    pub(super) fn work_with(
        &self,
        at: usize,
        context: &NodeContext<'_>,
        documents: &ParsedDocuments,
    ) -> Result<NodeWork, InputProblem> {
        let node = self.node(at);
        let sources = Sources {
            documents,
            params: context.params,
            nodes: self
                .predecessors(at)
                .iter()
                .map(|&before| (self.node(before).id(), context.outputs.get(&before)))
                .collect(),
        };
        match &node.kind {
            NodeKind::Task { queue, kind } => {
                let payload = TaskPayload {
                    execution_id: context.execution,
                    workspace_id: context.workspace,
                    node_id: &node.id,
                    input: &input::input(node, &sources)?,
                };
                Ok(NodeWork::Task {
                    queue: queue.clone(),
                    kind: kind.clone().unwrap_or_else(|| node.id.clone()),
                    payload: JsonText::of(&payload).map_err(|_| InputProblem::NotJson)?,
                    retry: node.retry(),
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
                    url: input::url(url, &sources)?,
                    headers: headers.clone(),
                    body: body(node, method, &sources)?,
                    idempotency_key: format!("{}/{}", context.execution, at),
                },
                retry: with_min_wait(node.retry()),
                timeout: node.timeout.unwrap_or(CALL_TIMEOUT),
            }),
            NodeKind::Delay { milliseconds } => {
                Ok(NodeWork::Delay(Duration::from_millis(*milliseconds)))
            }
        }
    }
}

fn with_min_wait(mut retry: JobRetry) -> JobRetry {
    retry.backoff.base = retry.backoff.base.max(CALL_WAIT_MIN);
    retry.backoff.max = retry.backoff.max.max(CALL_WAIT_MIN);
    retry
}

impl NodeWork {
    /// Returns the bytes of JSON it carries.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Task { payload, .. } => payload.as_str().len(),
            Self::Http { call, .. } => call.body.as_ref().map_or(0, |body| body.as_str().len()),
            Self::Delay(_) => 0,
        }
    }
}

/// Returns the body of a call; none for methods without one.
fn body(
    node: &Node,
    method: &str,
    sources: &Sources<'_>,
) -> Result<Option<JsonText>, InputProblem> {
    if input::has_body(method) {
        input::input(node, sources).map(Some)
    } else {
        Ok(None)
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
