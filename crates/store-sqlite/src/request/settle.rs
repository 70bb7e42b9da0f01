//! Requests whose time has come join their workspace's line, a bounded number at a time.

use crate::error::Fault;
use crate::row::moment;
use crate::session::Session;
use leasehold_store::request::Settled;
use rusqlite::params;

const SETTLE: &str = include_str!("../../sql/request/settle.sql");
const NEXT_DUE: &str = include_str!("../../sql/request/next_due.sql");

/// How many requests join at once, so that a million that become due together hold nobody up for long.
const BATCH: u32 = 1_000;

pub(crate) fn settle(session: &Session<'_>) -> Result<Settled, Fault> {
    let due = promote(session)?;
    let next = session.maybe(NEXT_DUE, [], |row| moment(row.get(0)?))?;
    Ok(Settled {
        due,
        next_due: next,
    })
}

pub(crate) fn promote(session: &Session<'_>) -> Result<u64, Fault> {
    let promoted = session.run(SETTLE, params![session.now, BATCH])?;
    Ok(u64::try_from(promoted).unwrap_or_default())
}
