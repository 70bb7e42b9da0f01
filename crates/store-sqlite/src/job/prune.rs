//! Deletes ended jobs and expired deduplication keys after their retention, in small batches.

use crate::error::Fault;
use crate::job::end::EndWriter;
use crate::session::Session;
use leasehold_store::job::{JobPrune, JobsPruned};
use leasehold_store::sql;
use rusqlite::params;

/// Maximum number of jobs in one transaction, because claims wait for it.
const MAX_BATCH: u32 = 1_000;

const PRUNE: &str = sql!("job/prune");
const PRUNE_KEYS: &str = sql!("job/prune_keys");
const END_DELETE: &str = sql!("job/end_delete");

pub(crate) fn prune(session: &Session<'_>, prune: &JobPrune) -> Result<JobsPruned, Fault> {
    let limit = prune.limit.min(MAX_BATCH);
    let row = params![
        prune.completed_before.map(|at| at.as_microsecond()),
        prune.failed_before.map(|at| at.as_microsecond()),
        limit
    ];
    let ended: Vec<i64> = session.all(PRUNE, row, |row| Ok(row.get(0)?))?;
    session.with_statement(END_DELETE, |statement| {
        for job in &ended {
            statement.execute([job])?;
        }
        Ok(())
    })?;
    let jobs = u64::try_from(ended.len()).unwrap_or_default();
    if !ended.is_empty() {
        EndWriter::new(session).delete(ended)?;
    }
    let keys = session.run(PRUNE_KEYS, params![session.now, limit])?;
    Ok(JobsPruned {
        jobs,
        keys: u64::try_from(keys).unwrap_or_default(),
    })
}
