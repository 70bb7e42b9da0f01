//! What a node asks of whoever works on it, made from the node, the params and the outputs before it.

use super::input::{self, Documents, InputProblem, Sources};
use super::machine::Machine;
use super::node::{Node, NodeKind};
use crate::job::JobRetry;
use crate::{ExecutionId, JsonText, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The shortest wait between two attempts of a call: whoever is called, and the names that are looked up for it, are not ours to hammer.
const CALL_WAIT_MIN: Duration = Duration::from_millis(100);
/// How long an HTTP call may take if its node does not say.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What a node can be made of.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The execution.
    pub execution: ExecutionId,
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// What it runs with.
    pub params: &'a JsonText,
    /// What nodes came to, by their place in the graph's list. One that is not there came to null.
    pub outputs: &'a HashMap<usize, JsonText>,
}

/// What a node asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A job.
    Task {
        /// The queue it goes to.
        queue: String,
        /// What sort of work it is.
        kind: String,
        /// What to work on.
        payload: JsonText,
        /// How often and when it is tried again.
        retry: JobRetry,
        /// How long an attempt may take; none is as its queue says.
        timeout: Option<Duration>,
    },
    /// An HTTP call.
    Http {
        /// The call.
        call: HttpCall,
        /// How often and when it is tried again.
        retry: JobRetry,
        /// How long an attempt may take.
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
    /// Where to.
    pub url: String,
    /// Headers to send.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// JSON to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<JsonText>,
    /// The same for every attempt of one node of one execution, for whoever is called to recognise a repetition.
    pub idempotency_key: String,
}

/// What a worker that claims a task's job finds in it.
#[derive(Serialize)]
struct TaskPayload<'a> {
    execution_id: ExecutionId,
    workspace_id: WorkspaceId,
    node_id: &'a str,
    input: &'a JsonText,
}

impl Machine {
    /// What the node at this place asks for.
    pub fn work(&self, at: usize, given: &Given<'_>) -> Result<Work, InputProblem> {
        self.work_with(at, given, &Documents::default())
    }

    /// The same, with what was read for other nodes of the same execution.
    pub(super) fn work_with(
        &self,
        at: usize,
        given: &Given<'_>,
        documents: &Documents,
    ) -> Result<Work, InputProblem> {
        let node = self.node(at);
        let sources = Sources {
            documents,
            params: given.params,
            nodes: self
                .predecessors(at)
                .iter()
                .map(|&before| (self.node(before).id(), given.outputs.get(&before)))
                .collect(),
        };
        match &node.kind {
            NodeKind::Task { queue, kind } => {
                let payload = TaskPayload {
                    execution_id: given.execution,
                    workspace_id: given.workspace,
                    node_id: &node.id,
                    input: &input::input(node, &sources)?,
                };
                Ok(Work::Task {
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
            } => Ok(Work::Http {
                call: HttpCall {
                    method: method.clone(),
                    url: input::url(url, &sources)?,
                    headers: headers.clone(),
                    body: body(node, method, &sources)?,
                    idempotency_key: format!("{}/{}", given.execution, at),
                },
                retry: patient(node.retry()),
                timeout: node.timeout.unwrap_or(CALL_TIMEOUT),
            }),
            NodeKind::Delay { milliseconds } => {
                Ok(Work::Delay(Duration::from_millis(*milliseconds)))
            }
        }
    }
}

fn patient(mut retry: JobRetry) -> JobRetry {
    retry.backoff.base = retry.backoff.base.max(CALL_WAIT_MIN);
    retry.backoff.max = retry.backoff.max.max(CALL_WAIT_MIN);
    retry
}

impl Work {
    /// How much JSON it carries.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Task { payload, .. } => payload.as_str().len(),
            Self::Http { call, .. } => call.body.as_ref().map_or(0, |body| body.as_str().len()),
            Self::Delay(_) => 0,
        }
    }
}

/// What methods without a body send is nothing.
fn body(
    node: &Node,
    method: &str,
    sources: &Sources<'_>,
) -> Result<Option<JsonText>, InputProblem> {
    if input::sends(method) {
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

    fn work(node: Value, params: Value) -> Result<Work, InputProblem> {
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
        let given = Given {
            execution: ExecutionId(Uuid::nil()),
            workspace: WorkspaceId(Uuid::nil()),
            params: &JsonText::from(&params),
            outputs: &HashMap::from([(0, JsonText::from(&json!({"at": 7})))]),
        };
        machine.unwrap().work(1, &given)
    }

    #[test]
    fn a_task_is_given_params_and_outputs_in_its_payload() {
        let node = json!({"id": "second", "type": "task", "queue": "mail", "retry": {"max_attempts": 2}, "timeout_ms": 10});
        let Work::Task {
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
    fn a_call_has_its_url_filled_in_and_its_input_as_body() {
        let node = json!({"id": "second", "type": "http", "method": "POST", "url": "https://example.com/o/{/params/id}",
            "input": {"at": {"$from": "/nodes/first/at"}}});
        let Work::Http { call, timeout, .. } = work(node, json!({"id": "ä/b"})).unwrap() else {
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
    fn a_get_sends_no_body() {
        let node = json!({"id": "second", "type": "http", "url": "https://example.com"});
        let Work::Http { call, .. } = work(node, json!(null)).unwrap() else {
            panic!("no call");
        };
        assert_eq!((call.method.as_str(), call.body), ("GET", None));
    }
}
