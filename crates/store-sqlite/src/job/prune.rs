//! Pruning of jobs that have ended and of keys that hold no longer, a bounded number at a time.

use crate::error::Fault;
use crate::job::end::Ends;
use crate::session::Session;
use leasehold_store::job::{JobPrune, JobsPruned};
use leasehold_store::sql;
use rusqlite::params;

/// Jobs that go in one transaction, since claims wait for it.
const AT_ONCE: u32 = 1_000;

const PRUNE: &str = sql!("job/prune");
const PRUNE_KEYS: &str = sql!("job/prune_keys");
const END_DELETE: &str = sql!("job/end_delete");

pub(crate) fn prune(session: &Session<'_>, prune: &JobPrune) -> Result<JobsPruned, Fault> {
    let limit = prune.limit.min(AT_ONCE);
    let row = params![
        prune.completed_before.map(|at| at.as_microsecond()),
        prune.failed_before.map(|at| at.as_microsecond()),
        limit
    ];
    let ended: Vec<i64> = session.all(PRUNE, row, |row| Ok(row.get(0)?))?;
    session.often(END_DELETE, |statement| {
        for job in &ended {
            statement.execute([job])?;
        }
        Ok(())
    })?;
    let jobs = u64::try_from(ended.len()).unwrap_or_default();
    if !ended.is_empty() {
        Ends::of(session).forget(ended)?;
    }
    let keys = session.run(PRUNE_KEYS, params![session.now, limit])?;
    Ok(JobsPruned {
        jobs,
        keys: u64::try_from(keys).unwrap_or_default(),
    })
}
