//! Converts rows to the port's types, and durations to the microseconds that statements take.

use crate::error::unreadable;
use crate::job::row::Json;
use leasehold_core::{DefinitionId, JsonText, Timestamp, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::definition::{Definition, Version, VersionRecord};
use leasehold_store::record::RecordRow;
use leasehold_store::workspace::Workspace;
use leasehold_store::{Error, ErrorKind, Result};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

/// Converts a duration to microseconds.
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

/// Reads a column that holds the name of an enum's variant or NULL.
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

/// Reads a number that is never negative, nor NULL unless rows that always exist were deleted by hand.
pub(crate) fn count<T>(row: &Row, column: &str) -> Result<T>
where
    T: TryFrom<i64>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    let read: i64 = row
        .try_get(column)
        .map_err(|error| unreadable("reading a row", error))?;
    T::try_from(read).map_err(|error| unreadable("reading a row", error))
}

/// Reads a time or NULL. Fails on times outside the range of [`Timestamp`].
pub(crate) fn time<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column)
        .map_err(|error| unreadable("reading a time", error))
}

/// Reads a column that holds an id or NULL.
pub(crate) fn maybe_id<T: From<Uuid>>(row: &Row, column: &str) -> Option<T> {
    row.get::<_, Option<Uuid>>(column).map(T::from)
}

/// Reads a column that holds an id.
pub(crate) fn id<T: From<Uuid>>(row: &Row, column: &str) -> T {
    T::from(row.get::<_, Uuid>(column))
}

/// Reads a number that cannot be negative; none where NULL.
fn unsigned(row: &Row, column: &str) -> Result<Option<u64>> {
    let found = row.get::<_, Option<i64>>(column).map(u64::try_from);
    found
        .transpose()
        .map_err(|error| unreadable("reading a row", error))
}

/// Returns a number for a bigint parameter. A larger one than fits is out of every range that the schema allows.
pub(crate) fn signed(value: Option<u64>) -> Option<i64> {
    value.map(|value| i64::try_from(value).unwrap_or(i64::MAX))
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
        max_pending_override: unsigned(row, "max_pending_override")?,
        max_open_bytes_override: unsigned(row, "max_open_bytes_override")?,
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

pub(crate) fn version_record(row: &Row) -> Result<VersionRecord> {
    VersionRecord::read(&PgRecord(row))
}

pub(crate) fn version(row: &Row) -> Result<Version> {
    version_record(row)?
        .parse()
        .map_err(|error| unreadable("reading a version", error))
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

/// Adapts a row to [`RecordRow`], from which the port reads its records.
pub(crate) struct PgRecord<'a>(pub(crate) &'a Row);

impl PgRecord<'_> {
    fn get<'a, T: FromSql<'a>>(&'a self, column: &str) -> Result<Option<T>> {
        let value = self.0.try_get(column);
        value.map_err(|error| unreadable("reading a row", error))
    }

    fn is(&self, column: &str, wanted: &Type) -> bool {
        let mut columns = self.0.columns().iter();
        columns.any(|known| known.name() == column && known.type_() == wanted)
    }
}

impl RecordRow for PgRecord<'_> {
    type Error = Error;

    fn integer(&self, column: &str) -> Result<Option<i64>> {
        if self.is(column, &Type::INT8) {
            self.get(column)
        } else if self.is(column, &Type::INT4) {
            Ok(self.get::<i32>(column)?.map(i64::from))
        } else {
            Ok(self.get::<i16>(column)?.map(i64::from))
        }
    }

    fn float(&self, column: &str) -> Result<Option<f64>> {
        self.get(column)
    }

    fn text(&self, column: &str) -> Result<Option<String>> {
        self.get(column)
    }

    fn uuid(&self, column: &str) -> Result<Option<Uuid>> {
        self.get(column)
    }

    fn time(&self, column: &str) -> Result<Option<Timestamp>> {
        self.get(column)
    }

    fn json_text(&self, column: &str) -> Result<Option<JsonText>> {
        Ok(self.get::<Json>(column)?.map(|json| json.0))
    }

    fn invalid(&self, column: &str, why: &dyn Display) -> Error {
        let text = format!("invalid value in column {column}: {why}");
        Error::new("reading a row", ErrorKind::Broken(text))
    }
}
