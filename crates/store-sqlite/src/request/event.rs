//! The event log: every status transition of a request appends an event in the same operation.

use crate::error::Fault;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::sql;
use rusqlite::{Row, params};

const APPEND: &str = sql!("request/event");

/// A request and its workspace, as events refer to them.
#[derive(Clone, Copy)]
pub(crate) struct RequestRef {
    pub(crate) request: RequestId,
    pub(crate) workspace: WorkspaceId,
}

impl RequestRef {
    /// Appends a transition to the event log.
    pub(crate) fn log_transition(
        self,
        session: &Session<'_>,
        from: Option<RequestStatus>,
        to: RequestStatus,
        by: &str,
        reason: Option<&str>,
    ) -> Result<(), Fault> {
        let row = params![
            blob(self.request),
            blob(self.workspace),
            from.map(RequestStatus::as_str),
            to.as_str(),
            session.now,
            Text(by),
            reason
        ];
        session.run(APPEND, row).map(|_| ())
    }
}

/// Reads one event.
pub(crate) fn event(row: &Row<'_>) -> Result<Event, Fault> {
    let from: Option<String> = row.get("from_status")?;
    Ok(Event {
        request: row.id("request_id")?,
        workspace: row.id("workspace_id")?,
        from: match from {
            Some(_) => Some(row.parsed("from_status")?),
            None => None,
        },
        to: row.parsed("to_status")?,
        at: row.time("at")?,
        by: row.get("by_whom")?,
        reason: row.get("reason")?,
    })
}
