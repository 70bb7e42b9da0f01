//! Conversions between domain values and columns: ids are 16 bytes, times microseconds, JSON and names text. Knows no table.

use crate::error::Fault;
use leasehold_core::{JsonText, Timestamp, json};
use leasehold_store::ErrorKind;
use leasehold_store::record::RecordRow;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// Returns the bytes of an id.
pub(crate) fn blob(id: impl Into<Uuid>) -> [u8; 16] {
    id.into().into_bytes()
}

/// Returns the id's bytes, or a key before every id for the first page of an ascending list.
pub(crate) fn after_id(id: Option<impl Into<Uuid>>) -> Vec<u8> {
    id.map_or_else(Vec::new, |id| blob(id).to_vec())
}

/// Returns the id's bytes, or a key after every id for the first page of a descending list.
pub(crate) fn before_id(id: Option<impl Into<Uuid>>) -> Vec<u8> {
    id.map_or_else(|| vec![u8::MAX; 17], |id| blob(id).to_vec())
}

/// A text parameter. Rejects NUL characters, because SQLite's functions and tools ignore what follows one.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        if self.0.contains('\0') {
            let error = "a text must not contain NUL characters";
            return Err(rusqlite::Error::ToSqlConversionFailure(error.into()));
        }
        Ok(ToSqlOutput::from(self.0))
    }
}

/// A node's index in its graph's list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeIndex(pub(crate) usize);

impl ToSql for NodeIndex {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        i64::try_from(self.0)
            .map(ToSqlOutput::from)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl FromSql for NodeIndex {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let stored = value.as_i64()?;
        usize::try_from(stored)
            .map(Self)
            .map_err(|_| FromSqlError::OutOfRange(stored))
    }
}

/// Maximum nesting of a JSON document. A deeper one cannot be read back and would fail every claim that meets it.
const MAX_JSON_DEPTH: usize = 127;
const TOO_DEEP: &str = "a JSON document must not nest deeper than 127 levels";
const NUL: &str = "a JSON document must not contain NUL characters";

/// Returns the text of a JSON document. Rejects NUL characters, as every store does, and documents that nest too deeply.
pub(crate) fn json_text(value: &Value) -> Result<String, ErrorKind> {
    check_json(value, 0).map_err(|problem| ErrorKind::Value(problem.to_owned()))?;
    Ok(value.to_string())
}

/// Returns a JSON text after the same checks, without parsing it.
pub(crate) fn checked_text(text: &JsonText) -> Result<JsonText, ErrorKind> {
    if json::depth(text.as_str()) > MAX_JSON_DEPTH {
        return Err(ErrorKind::Value(TOO_DEEP.to_owned()));
    }
    if json::has_nul(text.as_str()) {
        return Err(ErrorKind::Value(NUL.to_owned()));
    }
    Ok(text.clone())
}

fn check_json(value: &Value, depth: usize) -> Result<(), &'static str> {
    let nests = value.is_array() || value.is_object();
    if nests && depth >= MAX_JSON_DEPTH {
        return Err(TOO_DEEP);
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.contains('\0') => Err(NUL),
        Value::String(_) => Ok(()),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_json(item, depth + 1)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, item)| {
            if key.contains('\0') {
                return Err(NUL);
            }
            check_json(item, depth + 1)
        }),
    }
}

/// Adds a duration to a time, up to the maximum timestamp.
pub(crate) fn later(from: i64, after: Duration) -> i64 {
    from.saturating_add(micros(after))
        .min(Timestamp::MAX.as_microsecond())
}

/// Returns a duration in microseconds.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Reads a duration; a negative one is zero.
pub(crate) fn duration(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}

/// Reads a timestamp.
pub(crate) fn timestamp(microseconds: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_microsecond(microseconds).map_err(|error| invalid_column("a timestamp", error))
}

fn invalid_column(column: &str, error: impl std::fmt::Display) -> Fault {
    ErrorKind::Broken(format!("{column} in the database is invalid: {error}")).into()
}

/// Reads columns by name into the domain's types.
pub(crate) trait Columns {
    fn id<T: From<Uuid>>(&self, column: &str) -> Result<T, Fault>;
    fn id_or_none<T: From<Uuid>>(&self, column: &str) -> Result<Option<T>, Fault>;
    fn time(&self, column: &str) -> Result<Timestamp, Fault>;
    fn time_or_none(&self, column: &str) -> Result<Option<Timestamp>, Fault>;
    fn count(&self, column: &str) -> Result<u64, Fault>;
    fn count_or_none(&self, column: &str) -> Result<Option<u64>, Fault>;
    fn json(&self, column: &str) -> Result<Value, Fault>;
    fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T, Fault>;
}

impl Columns for Row<'_> {
    fn id<T: From<Uuid>>(&self, column: &str) -> Result<T, Fault> {
        Ok(Uuid::from_bytes(self.get(column)?).into())
    }

    fn id_or_none<T: From<Uuid>>(&self, column: &str) -> Result<Option<T>, Fault> {
        let bytes: Option<[u8; 16]> = self.get(column)?;
        Ok(bytes.map(|bytes| Uuid::from_bytes(bytes).into()))
    }

    fn time(&self, column: &str) -> Result<Timestamp, Fault> {
        timestamp(self.get(column)?)
    }

    fn time_or_none(&self, column: &str) -> Result<Option<Timestamp>, Fault> {
        let stored: Option<i64> = self.get(column)?;
        stored.map(timestamp).transpose()
    }

    fn count(&self, column: &str) -> Result<u64, Fault> {
        let stored: i64 = self.get(column)?;
        u64::try_from(stored).map_err(|error| invalid_column(column, error))
    }

    fn count_or_none(&self, column: &str) -> Result<Option<u64>, Fault> {
        let stored: Option<i64> = self.get(column)?;
        let stored = stored.map(u64::try_from).transpose();
        stored.map_err(|error| invalid_column(column, error))
    }

    fn json(&self, column: &str) -> Result<Value, Fault> {
        let text = self
            .get_ref(column)?
            .as_str()
            .map_err(|e| invalid_column(column, e))?;
        serde_json::from_str(text).map_err(|error| invalid_column(column, error))
    }

    fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T, Fault> {
        let text = self
            .get_ref(column)?
            .as_str()
            .map_err(|e| invalid_column(column, e))?;
        text.parse().map_err(|error| invalid_column(column, error))
    }
}

/// Reads records from a row.
pub(crate) struct SqliteRecord<'a, 'r>(pub(crate) &'a Row<'r>);

impl RecordRow for SqliteRecord<'_, '_> {
    type Error = Fault;

    fn integer(&self, column: &str) -> Result<Option<i64>, Fault> {
        Ok(self.0.get(column)?)
    }

    fn float(&self, column: &str) -> Result<Option<f64>, Fault> {
        Ok(self.0.get(column)?)
    }

    fn text(&self, column: &str) -> Result<Option<String>, Fault> {
        Ok(self.0.get(column)?)
    }

    fn uuid(&self, column: &str) -> Result<Option<Uuid>, Fault> {
        self.0.id_or_none(column)
    }

    fn time(&self, column: &str) -> Result<Option<Timestamp>, Fault> {
        self.0.time_or_none(column)
    }

    fn json_text(&self, column: &str) -> Result<Option<JsonText>, Fault> {
        let stored: Option<String> = self.0.get(column)?;
        Ok(stored.map(JsonText::trusted))
    }

    fn invalid(&self, column: &str, why: &dyn Display) -> Fault {
        invalid_column(column, why)
    }
}
