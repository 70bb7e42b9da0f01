//! The log of transitions: every change of a request's status appends to it, in the same operation.

use crate::error::Fault;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::sql;
use rusqlite::{Row, params};

const APPEND: &str = sql!("request/event");

/// A request as the log names it.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) request: RequestId,
    pub(crate) workspace: WorkspaceId,
}

impl Subject {
    /// Appends one transition of it.
    pub(crate) fn moved(
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
            Some(_) => Some(row.word("from_status")?),
            None => None,
        },
        to: row.word("to_status")?,
        at: row.time("at")?,
        by: row.get("by_whom")?,
        reason: row.get("reason")?,
    })
}
