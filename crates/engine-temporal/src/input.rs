//! What a workflow is started with: its input, memo, header and priority, as Temporal wants them. Sends nothing.

use crate::graph_payload::{Input, MEMO_PRIORITY, MEMO_TRACE};
use crate::proto::{Header, Memo, Payload, Payloads, Priority};
use leasehold_core::{RequestId, VersionBody};
use leasehold_engine::Start;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// The memo's field that tells our workflows from others.
const MEMO_REQUEST: &str = "requestId";

/// The header in which the OpenTelemetry interceptors of Temporal's SDKs look for a trace.
const HEADER_TRACE: &str = "_tracer-data";

pub(crate) fn input(start: &Start) -> serde_json::Result<Payloads> {
    let body = &start.version.body;
    let input = Input {
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

/// What tells a user's own workers in which trace they are.
pub(crate) fn header(start: &Start) -> serde_json::Result<Option<Header>> {
    let Some(trace) = &start.trace else {
        return Ok(None);
    };
    let carrier = HashMap::from([("traceparent", trace)]);
    let fields = HashMap::from([(HEADER_TRACE.to_owned(), json(&carrier)?)]);
    Ok(Some(Header { fields }))
}

/// Whether a workflow with that memo was started for this request.
pub(crate) fn is_memo_of(start: &Start, memo: Option<&Memo>) -> bool {
    let said = memo.and_then(|memo| memo.fields.get(MEMO_REQUEST));
    let read = said.and_then(|said| serde_json::from_slice::<RequestId>(&said.data).ok());
    read == Some(start.request)
}

/// Temporal knows five priorities, 1 the most urgent. Workspaces share a task queue evenly.
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
