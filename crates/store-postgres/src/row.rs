//! Rows as the port's types, and the port's times as the database's numbers.

use crate::error::unreadable;
use leasehold_core::{DefinitionId, ExecutionId, FailureReason, RequestId, VersionId, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::definition::{Definition, Version};
use leasehold_store::execution::Execution;
use leasehold_store::request::Request;
use leasehold_store::workspace::Workspace;
use leasehold_store::{Error, Result};
use serde_json::Value;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

/// Shown in place of params that this program cannot read: one such request must not hide a list of others.
const UNREADABLE: &str = "(these params cannot be read)";

/// A duration in the unit that statements take.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

/// Reads a column that holds the name of an enum's variant.
pub(crate) fn named<T>(row: &Row, column: &str) -> Result<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get::<_, &str>(column)
        .parse()
        .map_err(|error| unreadable("reading a row", error))
}

/// Reads a column that holds the name of an enum's variant or nothing.
pub(crate) fn maybe_named<T>(row: &Row, column: &str) -> Result<Option<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get::<_, Option<&str>>(column)
        .map(|name| {
            name.parse()
                .map_err(|error| unreadable("reading a row", error))
        })
        .transpose()
}

/// Reads a number that is never negative.
pub(crate) fn count<T>(row: &Row, column: &str) -> Result<T>
where
    T: TryFrom<i64>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(row.get::<_, i64>(column)).map_err(|error| unreadable("reading a row", error))
}

fn small<T>(row: &Row, column: &str) -> Result<T>
where
    T: TryFrom<i32>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(row.get::<_, i32>(column)).map_err(|error| unreadable("reading a row", error))
}

/// Reads a time or nothing; PostgreSQL knows times that this program cannot read.
pub(crate) fn time<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column)
        .map_err(|error| unreadable("reading a time", error))
}

/// Reads a JSON column; one nested too deep for this program cannot be read.
pub(crate) fn json(row: &Row, column: &str) -> Result<Value> {
    row.try_get(column)
        .map_err(|error| unreadable("reading JSON", error))
}

/// Reads a column that holds an id or nothing.
pub(crate) fn maybe_id<T: From<Uuid>>(row: &Row, column: &str) -> Option<T> {
    row.get::<_, Option<Uuid>>(column).map(T::from)
}

/// Reads a column that holds an id.
pub(crate) fn id<T: From<Uuid>>(row: &Row, column: &str) -> T {
    T::from(row.get::<_, Uuid>(column))
}

pub(crate) fn workspace(row: &Row) -> Result<Workspace> {
    Ok(Workspace {
        id: id::<WorkspaceId>(row, "id"),
        name: row.get("name"),
        plan: named(row, "plan")?,
        limit_override: row
            .get::<_, Option<i32>>("limit_override")
            .map(u32::try_from)
            .transpose()
            .map_err(|error| unreadable("reading a row", error))?,
        paused: row.get("paused"),
        created_at: time(row, "created_at")?,
        deleted_at: time(row, "deleted_at")?,
    })
}

pub(crate) fn definition(row: &Row) -> Result<Definition> {
    Ok(Definition {
        id: id::<DefinitionId>(row, "id"),
        workspace: id(row, "workspace_id"),
        name: row.get("name"),
        current_version: maybe_id(row, "current_version_id"),
        created_at: time(row, "created_at")?,
    })
}

pub(crate) fn version(row: &Row) -> Result<Version> {
    Ok(Version {
        id: id::<VersionId>(row, "id"),
        workspace: id(row, "workspace_id"),
        definition: id(row, "definition_id"),
        number: small(row, "number")?,
        body: serde_json::from_value(json(row, "body")?)
            .map_err(|error| unreadable("reading a version", error))?,
        params_schema: row
            .try_get("params_schema")
            .map_err(|error| unreadable("reading JSON", error))?,
        execution_timeout: row
            .get::<_, Option<i64>>("execution_timeout_ms")
            .map(|ms| Duration::from_millis(ms.unsigned_abs())),
        created_at: time(row, "created_at")?,
    })
}

pub(crate) fn request(row: &Row) -> Result<Request> {
    Ok(Request {
        id: id::<RequestId>(row, "id"),
        workspace: id(row, "workspace_id"),
        definition: id(row, "definition_id"),
        version: id(row, "version_id"),
        status: named(row, "status")?,
        priority: row.get("priority"),
        params: json(row, "params").unwrap_or_else(|_| Value::String(UNREADABLE.to_owned())),
        run_at: time(row, "run_at")?,
        idempotency_key: row.get("idempotency_key"),
        execution: maybe_id::<ExecutionId>(row, "execution_id"),
        attempt_count: small(row, "attempt_count")?,
        dispatch_failures: small(row, "dispatch_failures")?,
        failure_reason: maybe_named::<FailureReason>(row, "failure_reason")?,
        last_error: row.get("last_error"),
        redrive_of: maybe_id(row, "redrive_of"),
        cancel_requested_at: time(row, "cancel_requested_at")?,
        claimed_by: row.get("claimed_by"),
        lease_expires_at: time(row, "lease_expires_at")?,
        trace_context: row.get("trace_context"),
        created_at: time(row, "created_at")?,
        claimed_at: time(row, "claimed_at")?,
        dispatched_at: time(row, "dispatched_at")?,
        finished_at: time(row, "finished_at")?,
    })
}

pub(crate) fn execution(row: &Row) -> Result<Execution> {
    Ok(Execution {
        id: id(row, "id"),
        workspace: id(row, "workspace_id"),
        request: id(row, "request_id"),
        definition: id(row, "definition_id"),
        version: id(row, "version_id"),
        status: named(row, "status")?,
        admission: row.get("admission"),
        started_at: time(row, "started_at")?,
        finished_at: time(row, "finished_at")?,
        error: row.get("error"),
    })
}

pub(crate) fn event(row: &Row) -> Result<Event, Error> {
    Ok(Event {
        request: id(row, "request_id"),
        workspace: id(row, "workspace_id"),
        from: maybe_named(row, "from_status")?,
        to: named(row, "to_status")?,
        at: time(row, "at")?,
        by: row.get("by_whom"),
        reason: row.get("reason"),
    })
}
