//! Builds the input, memo, header and priority of a start. Sends nothing.

use crate::graph_payload::{MEMO_PRIORITY, MEMO_TRACE, WorkflowInput};
use crate::proto::{Header, Memo, Payload, Payloads, Priority};
use leasehold_core::{RequestId, VersionBody};
use leasehold_engine::Start;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// The memo field that identifies workflows started by Leasehold.
const MEMO_REQUEST: &str = "requestId";

/// The header from which the OpenTelemetry interceptors of Temporal's SDKs read the trace.
const HEADER_TRACE: &str = "_tracer-data";

pub(crate) fn input(start: &Start) -> serde_json::Result<Payloads> {
    let body = &start.version.body;
    let input = WorkflowInput {
        execution_id: start.execution,
        workspace_id: start.workspace,
        workflow_definition_id: start.definition,
        workflow_version_id: start.version.id,
        node_ids: body.node_ids().into_iter().map(Cow::Borrowed).collect(),
        params: start.params.clone(),
        graph: match body {
            VersionBody::Graph(graph) => Some(Cow::Borrowed(graph)),
            VersionBody::Binding { .. } => None,
        },
    };
    Ok(Payloads {
        payloads: vec![json(&input)?],
    })
}

pub(crate) fn memo(start: &Start) -> serde_json::Result<Memo> {
    let mut fields = HashMap::from([
        ("workspaceId".to_owned(), json(&start.workspace)?),
        ("workflowDefinitionId".to_owned(), json(&start.definition)?),
        (MEMO_REQUEST.to_owned(), json(&start.request)?),
    ]);
    if matches!(start.version.body, VersionBody::Graph(_)) {
        fields.insert(MEMO_PRIORITY.to_owned(), json(&start.priority)?);
        if let Some(trace) = &start.trace {
            fields.insert(MEMO_TRACE.to_owned(), json(trace)?);
        }
    }
    Ok(Memo { fields })
}

/// Builds the header that passes the trace to the user's workers.
pub(crate) fn header(start: &Start) -> serde_json::Result<Option<Header>> {
    let Some(trace) = &start.trace else {
        return Ok(None);
    };
    let carrier = HashMap::from([("traceparent", trace)]);
    let fields = HashMap::from([(HEADER_TRACE.to_owned(), json(&carrier)?)]);
    Ok(Some(Header { fields }))
}

/// Whether a workflow with this memo was started for this request.
pub(crate) fn is_memo_of(request: RequestId, memo: Option<&Memo>) -> bool {
    let field = memo.and_then(|memo| memo.fields.get(MEMO_REQUEST));
    let read = field.and_then(|field| serde_json::from_slice::<RequestId>(&field.data).ok());
    read == Some(request)
}

/// Maps the priority to Temporal's five, of which 1 is the most urgent, and makes workspaces share a task queue fairly.
///
/// | request's priority | Temporal's |
/// |---|---|
/// | 100 and above | 1 |
/// | 1 to 99 | 2 |
/// | 0 | 3 |
/// | -99 to -1 | 4 |
/// | -100 and below | 5 |
pub(crate) fn priority(start: &Start) -> Priority {
    let priority_key = match start.priority {
        100.. => 1,
        1..=99 => 2,
        0 => 3,
        -99..=-1 => 4,
        ..=-100 => 5,
    };
    Priority {
        priority_key,
        fairness_key: start.workspace.to_string(),
    }
}

fn json(value: &impl Serialize) -> serde_json::Result<Payload> {
    Ok(Payload {
        metadata: HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]),
        data: serde_json::to_vec(value)?,
    })
}
