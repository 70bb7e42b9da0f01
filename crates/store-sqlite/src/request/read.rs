//! Requests as their readers see them: one, a page, a timeline, a place in line. Changes nothing.

use crate::error::Fault;
use crate::request::{event, settle};
use crate::row::{Columns, before_id, blob, moment};
use crate::session::Session;
use leasehold_core::{FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::change::Event;
use leasehold_store::request::{Oldest, Request, RequestFilter};
use rusqlite::{Row, params};
use serde_json::Value;

/// Shown in place of params that this program cannot read: one such request must not hide a list of others.
const UNREADABLE: &str = "(these params cannot be read)";

const GET: &str = include_str!("../../sql/request/get.sql");
const FIND: &str = include_str!("../../sql/request/find.sql");
const LIST: &str = include_str!("../../sql/request/list.sql");
const LIST_OF_WORKSPACE: &str = include_str!("../../sql/request/list_of_workspace.sql");
const LIST_OF_WORKSPACE_STATUS: &str =
    include_str!("../../sql/request/list_of_workspace_status.sql");
const LIST_OF_STATUS: &str = include_str!("../../sql/request/list_of_status.sql");
const LIST_OF_DEFINITION: &str = include_str!("../../sql/request/list_of_definition.sql");
const TIMELINE: &str = include_str!("../../sql/request/timeline.sql");
const OLDEST_PENDING: &str = include_str!("../../sql/request/oldest_pending.sql");
const OLDEST_STARTABLE: &str = include_str!("../../sql/request/oldest_startable.sql");
const OLDEST_CLAIMED: &str = include_str!("../../sql/request/oldest_claimed.sql");
const OLDEST_DISPATCHED: &str = include_str!("../../sql/request/oldest_dispatched.sql");
const PLACE: &str = include_str!("../../sql/request/place.sql");

pub(crate) fn get(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Option<Request>, Fault> {
    session.maybe(GET, [blob(workspace), blob(id)], request)
}

pub(crate) fn find(session: &Session<'_>, id: RequestId) -> Result<Option<Request>, Fault> {
    session.maybe(FIND, [blob(id)], request)
}

pub(crate) fn list(
    session: &Session<'_>,
    filter: &RequestFilter,
    page: Page<RequestId>,
) -> Result<Vec<Request>, Fault> {
    // A reason says the status too, and the few failed ones are found sooner by it.
    let status = filter
        .status
        .or(filter.reason.map(|_| RequestStatus::Failed));
    // One statement for each index, so that each walks only what it shows, or nearly so.
    let sql = match (filter.definition, filter.workspace, status) {
        (None, Some(_), Some(_)) => LIST_OF_WORKSPACE_STATUS,
        (None, Some(_), None) => LIST_OF_WORKSPACE,
        (None, None, Some(_)) => LIST_OF_STATUS,
        (Some(_), _, _) => LIST_OF_DEFINITION,
        (None, None, None) => LIST,
    };
    let row = params![
        filter.workspace.map(blob),
        status.map(RequestStatus::as_str),
        filter.definition.map(blob),
        filter.reason.map(FailureReason::as_str),
        before_id(page.after),
        page.rows()
    ];
    session.all(sql, row, request)
}

pub(crate) fn oldest(session: &Session<'_>) -> Result<Oldest, Fault> {
    session.at_once(|session| {
        let since = |row: &Row<'_>| row.time_or_none("since");
        Ok(Oldest {
            at: moment(session.now)?,
            pending: session.one(OLDEST_PENDING, [session.now], since)?,
            startable: session.one(OLDEST_STARTABLE, [], since)?,
            claimed: session.one(OLDEST_CLAIMED, [], since)?,
            dispatched: session.one(OLDEST_DISPATCHED, [], since)?,
        })
    })
}

pub(crate) fn timeline(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Vec<Event>, Fault> {
    session.all(TIMELINE, [blob(workspace), blob(id)], event::event)
}

pub(crate) fn place(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: RequestId,
    up_to: u32,
) -> Result<Option<u32>, Fault> {
    let row = params![blob(workspace), blob(id), session.now, up_to, settle::BATCH];
    session.maybe(PLACE, row, |row| Ok(row.get("place")?))
}

fn request(row: &Row<'_>) -> Result<Request, Fault> {
    Ok(Request {
        id: row.id("id")?,
        workspace: row.id("workspace_id")?,
        definition: row.id("definition_id")?,
        version: row.id("version_id")?,
        status: row.word("status")?,
        priority: row.get("priority")?,
        params: row
            .json("params")
            .unwrap_or_else(|_| Value::String(UNREADABLE.to_owned())),
        run_at: row.time("run_at")?,
        idempotency_key: row.get("idempotency_key")?,
        execution: row.id_or_none("execution_id")?,
        attempt_count: row.get("attempt_count")?,
        dispatch_failures: row.get("dispatch_failures")?,
        failure_reason: row.reason("failure_reason")?,
        last_error: row.get("last_error")?,
        redrive_of: row.id_or_none("redrive_of")?,
        cancel_requested_at: row.time_or_none("cancel_requested_at")?,
        claimed_by: row.get("claimed_by")?,
        lease_expires_at: row.time_or_none("lease_expires_at")?,
        trace_context: row.get("trace_context")?,
        created_at: row.time("created_at")?,
        claimed_at: row.time_or_none("claimed_at")?,
        dispatched_at: row.time_or_none("dispatched_at")?,
        finished_at: row.time_or_none("finished_at")?,
    })
}
