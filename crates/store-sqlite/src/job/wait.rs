//! Waiting jobs: scheduled, retried, snoozed or returned. Adds them, promotes those that are due, removes them.

use crate::error::Fault;
use crate::job::group::GroupChanges;
use crate::notification::NotifyTarget;
use crate::row::{Text, duration};
use crate::session::Session;
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

/// Maximum number of due jobs that one claim promotes, because other operations wait for it. More than one claim can lease.
const PROMOTE_BATCH: u32 = 10_000;

const INSERT: &str = sql!("job/waiting_insert");
const DELETE: &str = sql!("job/waiting_delete");
const PROMOTE: &str = sql!("job/promote");
const GROUPS_DUE: &str = sql!("job/group_due");
const NEXT_DUE: &str = sql!("job/next_due");

/// A row of `job_waiting`.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingJob<'a> {
    pub(super) job: i64,
    pub(super) queue: i64,
    pub(super) priority: i16,
    pub(super) created_at: i64,
    pub(super) run_at: i64,
    /// Attempts so far.
    pub(super) attempts: u32,
    /// The token of the last claim; 0 before the first.
    pub(super) token: i64,
    /// Its group, or [`NONE`](super::group::NONE).
    pub(super) group: &'a str,
}

/// Adds a waiting job and notifies workers.
pub(super) fn add(session: &Session<'_>, waiting: &WaitingJob<'_>) -> Result<(), Fault> {
    let row = params![
        waiting.job,
        waiting.queue,
        waiting.priority,
        waiting.created_at,
        waiting.run_at,
        waiting.run_at <= session.now,
        waiting.attempts,
        waiting.token,
        Text(waiting.group)
    ];
    session.run(INSERT, row)?;
    session.notify(NotifyTarget::Workers);
    Ok(())
}

/// Removes a waiting job; false if it was not waiting.
pub(super) fn remove(session: &Session<'_>, job: i64) -> Result<bool, Fault> {
    Ok(session.run(DELETE, [job])? > 0)
}

/// Marks the due jobs of a queue with groups as ready to claim, and adds them to `groups`.
pub(super) fn promote_with_groups(
    session: &Session<'_>,
    queue: i64,
    groups: &mut GroupChanges,
) -> Result<(), Fault> {
    let row = params![queue, session.now, PROMOTE_BATCH];
    let due: Vec<(i64, String)> =
        session.all(GROUPS_DUE, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (job, group) in &due {
        groups.due(*job, queue, group);
    }
    promote(session, queue)
}

/// Marks the due jobs of a queue as ready to claim.
pub(super) fn promote(session: &Session<'_>, queue: i64) -> Result<(), Fault> {
    let row = params![queue, session.now, PROMOTE_BATCH];
    session.run(PROMOTE, row).map(|_| ())
}

/// Returns the time until the next job of a queue is due.
pub(super) fn next_due_in(session: &Session<'_>, queue: i64) -> Result<Option<Duration>, Fault> {
    let due = session.optional(NEXT_DUE, [queue], |row| Ok(row.get::<_, i64>(0)?))?;
    Ok(due.map(|at| duration(at - session.now)))
}
