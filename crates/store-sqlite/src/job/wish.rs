//! What a job may wish for itself and a queue says for all others, read from columns that both have under the same names.

use crate::error::Fault;
use crate::row::duration;
use leasehold_core::retry::Backoff;
use rusqlite::Row;
use std::time::Duration;

/// What a job wishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) max_attempts: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
}

/// Reads max_attempts and the four columns of a backoff, which begin at `first`.
pub(crate) fn wishes(row: &Row<'_>, first: usize) -> Result<Wishes, Fault> {
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
    Ok(Wishes {
        max_attempts: row.get(first)?,
        backoff,
    })
}

/// Reads a length of time that may be none.
pub(crate) fn timeout(row: &Row<'_>, column: usize) -> Result<Option<Duration>, Fault> {
    let kept: Option<i64> = row.get(column)?;
    Ok(kept.map(duration))
}
