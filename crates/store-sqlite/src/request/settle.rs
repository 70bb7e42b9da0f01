//! Requests whose time has come join their workspace's line, a bounded number at a time.

use crate::error::Fault;
use crate::row::moment;
use crate::session::Session;
use leasehold_store::request::Settled;
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const SETTLE: &str = sql!("request/settle");
const NEXT_DUE: &str = sql!("request/next_due");

/// How many requests join at once, so that a million that become due together hold nobody up for long.
pub(crate) const BATCH: u32 = 1_000;

pub(crate) fn settle(session: &Session<'_>) -> Result<Settled, Fault> {
    let due = promote(session)?;
    let next_due = next_due(session)?.map(moment).transpose()?;
    Ok(Settled { due, next_due })
}

/// How long until the next request that waits for its time becomes due.
pub(crate) fn next_due_in(session: &Session<'_>) -> Result<Option<Duration>, Fault> {
    let left =
        |at: i64| Duration::from_micros(at.saturating_sub(session.now).max(0).unsigned_abs());
    Ok(next_due(session)?.map(left))
}

fn next_due(session: &Session<'_>) -> Result<Option<i64>, Fault> {
    session.maybe(NEXT_DUE, [], |row| Ok(row.get(0)?))
}

pub(crate) fn promote(session: &Session<'_>) -> Result<u64, Fault> {
    let promoted = session.run(SETTLE, params![session.now, BATCH])?;
    Ok(u64::try_from(promoted).unwrap_or_default())
}
