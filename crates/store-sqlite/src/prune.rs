//! Pruning of what has ended, a bounded number at a time.

use crate::error::Fault;
use crate::row::{Columns, blob};
use crate::session::Session;
use leasehold_core::RequestId;
use leasehold_store::prune::{Prune, Pruned};
use rusqlite::params;

/// Requests that go in one transaction, since claims wait for it.
const AT_ONCE: u32 = 500;

const FINISHED: &str = include_str!("../sql/prune/finished.sql");
const KEYS: &str = include_str!("../sql/prune/keys.sql");
const DELETE: &str = include_str!("../sql/request/delete.sql");
const DELETE_EVENTS: &str = include_str!("../sql/request/delete_events.sql");

pub(crate) fn prune(session: &Session<'_>, prune: &Prune) -> Result<Pruned, Fault> {
    let limit = prune.limit.min(AT_ONCE);
    let row = params![
        prune.completed_before.map(|at| at.as_microsecond()),
        prune.failed_before.map(|at| at.as_microsecond()),
        limit
    ];
    let finished: Vec<RequestId> = session.all(FINISHED, row, |row| row.id("id"))?;
    for request in &finished {
        session.run(DELETE_EVENTS, [blob(*request)])?;
        session.run(DELETE, [blob(*request)])?;
    }
    let keys = session.run(KEYS, params![session.now, limit])?;
    Ok(Pruned {
        requests: u64::try_from(finished.len()).unwrap_or_default(),
        keys: u64::try_from(keys).unwrap_or_default(),
    })
}
