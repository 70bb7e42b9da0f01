//! Promotes due requests into their workspace's line, in bounded batches.

use crate::error::Fault;
use crate::row::timestamp;
use crate::session::Session;
use leasehold_store::request::Promoted;
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const PROMOTE_DUE: &str = sql!("request/promote_due");
const NEXT_DUE: &str = sql!("request/next_due");

/// Maximum number of requests promoted at once, so that a million that become due together do not block other operations for long.
pub(crate) const PROMOTE_BATCH: u32 = 1_000;

/// Promotes a batch of due requests and returns when the next scheduled request is due.
pub(crate) fn promote_due(session: &Session<'_>) -> Result<Promoted, Fault> {
    let due = promote_batch(session)?;
    let next_due = next_due(session)?.map(timestamp).transpose()?;
    Ok(Promoted {
        due,
        folded: 0,
        next_due,
    })
}

/// Returns the time until the next scheduled request is due.
pub(crate) fn next_due_in(session: &Session<'_>) -> Result<Option<Duration>, Fault> {
    let left =
        |at: i64| Duration::from_micros(at.saturating_sub(session.now).max(0).unsigned_abs());
    Ok(next_due(session)?.map(left))
}

fn next_due(session: &Session<'_>) -> Result<Option<i64>, Fault> {
    session.optional(NEXT_DUE, [], |row| Ok(row.get(0)?))
}

/// Promotes a batch of due requests and returns their number.
pub(crate) fn promote_batch(session: &Session<'_>) -> Result<u64, Fault> {
    let promoted = session.run(PROMOTE_DUE, params![session.now, PROMOTE_BATCH])?;
    Ok(u64::try_from(promoted).unwrap_or_default())
}
