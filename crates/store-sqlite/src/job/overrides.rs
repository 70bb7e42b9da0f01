//! Retry and timeout settings of a job that override its queue's. The columns have the same names in both tables.

use crate::error::Fault;
use crate::row::duration;
use leasehold_core::retry::Backoff;
use rusqlite::Row;
use std::time::Duration;

/// Retry settings of a job; none means the queue's setting applies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryOverrides {
    pub(crate) max_attempts: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
}

/// Reads max_attempts and the four backoff columns, starting at column `first`.
pub(crate) fn retry_overrides(row: &Row<'_>, first: usize) -> Result<RetryOverrides, Fault> {
    let base: Option<i64> = row.get(first + 1)?;
    let backoff = match base {
        None => None,
        Some(base) => Some(Backoff {
            base: duration(base),
            factor: row.get(first + 2)?,
            max: duration(row.get(first + 3)?),
            jitter: row.get(first + 4)?,
        }),
    };
    Ok(RetryOverrides {
        max_attempts: row.get(first)?,
        backoff,
    })
}

/// Reads an optional timeout.
pub(crate) fn timeout(row: &Row<'_>, column: usize) -> Result<Option<Duration>, Fault> {
    let kept: Option<i64> = row.get(column)?;
    Ok(kept.map(duration))
}
