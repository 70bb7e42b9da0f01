//! How values of the domain are kept in columns: ids as 16 bytes, times as microseconds, JSON and names as text. Knows no table.

use crate::error::Fault;
use leasehold_core::{JsonText, Timestamp};
use leasehold_store::ErrorKind;
use leasehold_store::record::RecordRow;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// The bytes of an id.
pub(crate) fn blob(id: impl Into<Uuid>) -> [u8; 16] {
    id.into().into_bytes()
}

/// A key that comes before every id, for the first page of a rising list.
pub(crate) fn after_id(id: Option<impl Into<Uuid>>) -> Vec<u8> {
    id.map_or_else(Vec::new, |id| blob(id).to_vec())
}

/// A key that comes after every id, for the first page of a falling list.
pub(crate) fn before_id(id: Option<impl Into<Uuid>>) -> Vec<u8> {
    id.map_or_else(|| vec![u8::MAX; 17], |id| blob(id).to_vec())
}

/// A text to store. One with NUL is refused: tools and functions of SQLite would see only what is before it.
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

/// A node's place in its graph's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) usize);

impl ToSql for Place {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        i64::try_from(self.0)
            .map(ToSqlOutput::from)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl FromSql for Place {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let kept = value.as_i64()?;
        usize::try_from(kept)
            .map(Self)
            .map_err(|_| FromSqlError::OutOfRange(kept))
    }
}

/// How deep a document may nest and still be read back: one that cannot be would fail every claim that meets it.
const READABLE_DEPTH: usize = 127;

/// The text of a JSON document. One with NUL in a string is refused, as every store does, and so is one too deep.
pub(crate) fn json_text(value: &Value) -> Result<String, ErrorKind> {
    check(value, 0).map_err(|problem| ErrorKind::Value(problem.to_owned()))?;
    Ok(value.to_string())
}

fn check(value: &Value, depth: usize) -> Result<(), &'static str> {
    let nests = value.is_array() || value.is_object();
    if nests && depth >= READABLE_DEPTH {
        return Err("a JSON document nests too deep to be read back");
    }
    let nul = "a JSON document must not contain NUL characters";
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.contains('\0') => Err(nul),
        Value::String(_) => Ok(()),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, depth + 1)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, item)| {
            if key.contains('\0') {
                return Err(nul);
            }
            check(item, depth + 1)
        }),
    }
}

/// The moment `after` a moment, no later than the last one there is.
pub(crate) fn later(from: i64, after: Duration) -> i64 {
    from.saturating_add(length(after))
        .min(Timestamp::MAX.as_microsecond())
}

/// A length of time in microseconds.
pub(crate) fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A length of time as it is kept; one below zero is none at all.
pub(crate) fn duration(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}

/// A moment as it is kept.
pub(crate) fn moment(microseconds: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_microsecond(microseconds).map_err(|error| broken("a time", error))
}

fn broken(what: &str, error: impl std::fmt::Display) -> Fault {
    ErrorKind::Broken(format!("{what} in the database makes no sense: {error}")).into()
}

/// Reads columns by name into the domain's types.
pub(crate) trait Columns {
    fn id<T: From<Uuid>>(&self, column: &str) -> Result<T, Fault>;
    fn id_or_none<T: From<Uuid>>(&self, column: &str) -> Result<Option<T>, Fault>;
    fn time(&self, column: &str) -> Result<Timestamp, Fault>;
    fn time_or_none(&self, column: &str) -> Result<Option<Timestamp>, Fault>;
    fn count(&self, column: &str) -> Result<u64, Fault>;
    fn json(&self, column: &str) -> Result<Value, Fault>;
    fn word<T: FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T, Fault>;
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
        moment(self.get(column)?)
    }

    fn time_or_none(&self, column: &str) -> Result<Option<Timestamp>, Fault> {
        let kept: Option<i64> = self.get(column)?;
        kept.map(moment).transpose()
    }

    fn count(&self, column: &str) -> Result<u64, Fault> {
        let kept: i64 = self.get(column)?;
        u64::try_from(kept).map_err(|error| broken(column, error))
    }

    fn json(&self, column: &str) -> Result<Value, Fault> {
        let text = self
            .get_ref(column)?
            .as_str()
            .map_err(|e| broken(column, e))?;
        serde_json::from_str(text).map_err(|error| broken(column, error))
    }

    fn word<T: FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T, Fault> {
        let text = self
            .get_ref(column)?
            .as_str()
            .map_err(|e| broken(column, e))?;
        text.parse().map_err(|error| broken(column, error))
    }
}

/// A row that records are read from.
pub(crate) struct Kept<'a, 'r>(pub(crate) &'a Row<'r>);

impl RecordRow for Kept<'_, '_> {
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

    fn json(&self, column: &str) -> Result<Option<Value>, Fault> {
        self.0.json(column).map(Some)
    }

    fn json_text(&self, column: &str) -> Result<Option<JsonText>, Fault> {
        let kept: Option<String> = self.0.get(column)?;
        Ok(kept.map(JsonText::trusted))
    }

    fn invalid(&self, column: &str, why: &dyn Display) -> Fault {
        broken(column, why)
    }
}
