//! Converts rows of jobs and queues to the port's types.

use crate::param::SqlType;
use crate::row::time;
use leasehold_core::job::JobRetry;
use leasehold_core::payload::JsonText;
use leasehold_core::queue::QueueSettings;
use leasehold_core::retry::Backoff;
use leasehold_store::Result;
use leasehold_store::queue::Queue;
use std::error::Error as StdError;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The text of a `json` or `jsonb` value, not parsed.
#[derive(Debug)]
pub(crate) struct Json(pub(crate) JsonText);

/// The version byte before a `jsonb` value in the binary format.
const JSONB_FORMAT: u8 = 1;

impl<'a> FromSql<'a> for Json {
    fn from_sql(
        ty: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        let raw = if *ty == Type::JSONB {
            raw.strip_prefix(&[JSONB_FORMAT])
                .ok_or("unsupported jsonb format version")?
        } else {
            raw
        };
        Ok(Self(JsonText::trusted(
            std::str::from_utf8(raw)?.to_owned(),
        )))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON || *ty == Type::JSONB
    }
}

/// A `json` parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonIn<'a>(pub(crate) &'a JsonText);

/// A `jsonb` parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonbIn<'a>(pub(crate) &'a JsonText);

impl ToSql for JsonIn<'_> {
    fn to_sql(
        &self,
        _ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(self.0.as_str().as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON
    }

    to_sql_checked!();
}

impl ToSql for JsonbIn<'_> {
    fn to_sql(
        &self,
        _ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(&[JSONB_FORMAT]);
        out.extend_from_slice(self.0.as_str().as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    to_sql_checked!();
}

impl SqlType for JsonIn<'_> {
    const TYPE: Type = Type::JSON;
    const ARRAY: Type = Type::JSON_ARRAY;
}

impl SqlType for JsonbIn<'_> {
    const TYPE: Type = Type::JSONB;
    const ARRAY: Type = Type::JSONB_ARRAY;
}

/// Converts microseconds to a duration; the schema allows no negative values.
pub(crate) fn duration(us: i64) -> Duration {
    Duration::from_micros(us.unsigned_abs())
}

/// Converts a column that is never negative.
pub(crate) fn count(value: i32) -> u32 {
    value.unsigned_abs()
}

pub(crate) fn maybe_json(row: &Row, column: &str) -> Option<JsonText> {
    row.get::<_, Option<Json>>(column).map(|json| json.0)
}

pub(crate) fn retry(row: &Row) -> JobRetry {
    JobRetry {
        max_attempts: count(row.get("max_attempts")),
        backoff: Backoff {
            base: duration(row.get("backoff_base_us")),
            factor: row.get("backoff_factor"),
            max: duration(row.get("backoff_max_us")),
            jitter: row.get("backoff_jitter"),
        },
    }
}

pub(crate) fn timeout(row: &Row) -> Option<Duration> {
    row.get::<_, Option<i64>>("timeout_us").map(duration)
}

pub(crate) fn queue(row: &Row) -> Result<Queue> {
    Ok(Queue {
        name: row.get("name"),
        settings: QueueSettings {
            limit: row.get::<_, Option<i32>>("max_running").map(count),
            group_limit: row.get::<_, Option<i32>>("group_limit").map(count),
            paused: row.get("paused"),
            keep_completed: row.get("keep_completed"),
            lease: duration(row.get("lease_us")),
            retry: retry(row),
            timeout: timeout(row),
        },
        created_at: time(row, "created_at")?,
    })
}
