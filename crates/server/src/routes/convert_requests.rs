//! Conversions between store types and JSON types for definitions, requests, executions, changes and explanations. No business logic.

use crate::access::Caller;
use crate::cursors::ListCursors;
use leasehold_api as api;
use leasehold_core::duration::millis;
use leasehold_core::key::Payloads;
use leasehold_core::why::{Ahead, Reason, Why};
use leasehold_core::{DefinitionId, JsonText, Timestamp, VersionId};
use leasehold_store as store;
use leasehold_store::request::Idempotency;
use serde::Serialize;
use std::time::Duration;

pub(super) fn definition(from: store::definition::Definition) -> api::definition::Definition {
    api::definition::Definition {
        id: from.id,
        workspace: from.workspace,
        name: from.name,
        current_version: from.current_version,
        created_at: from.created_at,
    }
}

/// A version with its body and its schema as text. Its JSON is that of [`api::definition::Version`].
#[derive(Serialize)]
pub(super) struct VersionJson {
    id: VersionId,
    definition: DefinitionId,
    number: u32,
    body: JsonText,
    #[serde(skip_serializing_if = "Option::is_none")]
    params_schema: Option<JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_timeout_ms: Option<u64>,
    created_at: Timestamp,
}

pub(super) fn version(from: store::definition::VersionRecord) -> VersionJson {
    let timeout = from.execution_timeout;
    VersionJson {
        id: from.id,
        definition: from.definition,
        number: from.number,
        body: from.body,
        params_schema: from.params_schema,
        execution_timeout_ms: timeout.map(millis),
        created_at: from.created_at,
    }
}

pub(super) fn request(from: store::request::Request, payloads: Payloads) -> api::request::Request {
    let hidden = payloads == Payloads::Hidden;
    api::request::Request {
        id: from.id,
        workspace: from.workspace,
        definition: from.definition,
        version: from.version,
        status: from.status,
        priority: from.priority,
        params: if hidden {
            JsonText::default()
        } else {
            from.params
        },
        payload_hidden: hidden,
        run_at: from.run_at,
        idempotency_key: from.idempotency_key,
        execution: from.execution,
        attempt_count: from.attempt_count,
        dispatch_failures: from.dispatch_failures,
        failure_reason: from.failure_reason,
        last_error: from.last_error.filter(|_| !hidden),
        redrive_of: from.redrive_of,
        cancel_requested_at: from.cancel_requested_at,
        created_at: from.created_at,
        claimed_at: from.claimed_at,
        dispatched_at: from.dispatched_at,
        finished_at: from.finished_at,
    }
}

/// Builds a request to enqueue, with a new id and the caller's trace context.
pub(super) fn new_request(
    from: api::request::NewRequest,
    trace_context: Option<&str>,
) -> store::request::NewRequest {
    let window = from.dedupe_window_ms.map(Duration::from_millis);
    store::request::NewRequest {
        id: store::fresh_id(),
        definition: from.definition,
        params: from.params,
        priority: from.priority,
        run_at: from.run_at,
        idempotency: from.idempotency_key.map(|key| Idempotency { key, window }),
        trace_context: trace_context.map(str::to_owned),
        checked_against: None,
    }
}

pub(super) fn enqueued(from: store::request::EnqueuedRequest) -> api::request::EnqueuedRequest {
    api::request::EnqueuedRequest {
        id: from.id,
        inserted: from.inserted,
    }
}

pub(super) fn execution(
    from: store::execution::Execution,
    payloads: Payloads,
) -> api::execution::Execution {
    let hidden = payloads == Payloads::Hidden;
    api::execution::Execution {
        id: from.id,
        workspace: from.workspace,
        request: from.request,
        definition: from.definition,
        version: from.version,
        status: from.status,
        started_at: from.started_at,
        finished_at: from.finished_at,
        error: from.error.filter(|_| !hidden),
        payload_hidden: hidden,
    }
}

pub(crate) fn event(from: store::change::Event) -> api::change::Event {
    api::change::Event {
        request: from.request,
        workspace: from.workspace,
        from: from.from,
        to: from.to,
        at: from.at,
        by: from.by,
        reason: from.reason,
    }
}

pub(super) fn change_page(
    from: store::change::ChangePage,
    cursors: &ListCursors<'_>,
) -> api::change::ChangePage {
    let change = |change: store::change::Change| api::change::Change {
        cursor: cursors.seal(change.cursor.0),
        event: event(change.event),
    };
    api::change::ChangePage {
        changes: from.changes.into_iter().map(change).collect(),
        next: cursors.seal(from.cursor.0),
        more: from.more,
    }
}

pub(super) fn why(mut from: Why, caller: &Caller) -> api::why::Why {
    let hidden = caller.payloads() == Payloads::Hidden;
    for reason in std::iter::once(&mut from.reason).chain(&mut from.also) {
        hide_errors(reason, hidden, caller.is_admin());
    }
    let (ahead, more_ahead) = match from.ahead {
        None => (None, false),
        Some(Ahead::Exactly(ahead)) => (Some(ahead), false),
        Some(Ahead::MoreThan(ahead)) => (Some(ahead), true),
    };
    api::why::Why {
        explanation: from.to_string(),
        reason: reason(from.reason),
        also: from.also.into_iter().map(reason).collect(),
        ahead,
        more_ahead,
        estimated_start: from.estimated_start,
        payload_hidden: hidden,
    }
}

/// Removes the error of the request's last start if payloads are hidden. Removes the error of the engine for tenants: it concerns no request, and names
/// addresses of the installation.
fn hide_errors(reason: &mut Reason, payloads_hidden: bool, is_admin: bool) {
    match reason {
        Reason::BackingOff { error, .. } if payloads_hidden => *error = None,
        Reason::EngineDown { error } if !is_admin => {
            "an administrator key shows the error".clone_into(error);
        }
        _ => {}
    }
}

fn reason(from: Reason) -> api::why::Reason {
    use api::why::Reason as ApiReason;
    match from {
        Reason::Running => ApiReason::Running,
        Reason::NoPollers => ApiReason::NoPollers,
        Reason::Finished => ApiReason::Finished,
        Reason::UnknownStatus => ApiReason::UnknownStatus,
        Reason::Starting => ApiReason::Starting,
        Reason::Cancelling => ApiReason::Cancelling,
        Reason::WorkspaceGone => ApiReason::WorkspaceGone,
        Reason::DefinitionGone => ApiReason::DefinitionGone,
        Reason::Paused => ApiReason::Paused,
        Reason::NotDue { until } => ApiReason::NotDue { until },
        Reason::BackingOff { until, error } => ApiReason::BackingOff { until, error },
        Reason::NoEngine => ApiReason::NoEngine,
        Reason::EngineDown { error } => ApiReason::EngineDown { error },
        Reason::AtCapacity {
            limit,
            in_use,
            holders,
        } => ApiReason::AtCapacity {
            limit,
            in_use,
            executions: holders,
        },
        Reason::InLine => ApiReason::InLine,
        Reason::NextInLine => ApiReason::NextInLine,
    }
}
