//! Jobs that wait for a time or to be claimed again: put there, brought into the line when their time has come, taken out.

use crate::error::Fault;
use crate::row::duration;
use crate::session::Session;
use crate::wake::Ring;
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

/// Jobs whose time has come that one claim notes at most, since everyone waits for it. More than one claim can take.
const PROMOTED_AT_ONCE: u32 = 10_000;

const WAIT: &str = sql!("job/wait");
const OVER: &str = sql!("job/wait_over");
const PROMOTE: &str = sql!("job/promote");
const NEXT_DUE: &str = sql!("job/next_due");

/// A job that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) job: i64,
    pub(super) queue: i64,
    pub(super) priority: i16,
    pub(super) created_at: i64,
    pub(super) run_at: i64,
    /// Claims that counted so far.
    pub(super) attempts: u32,
    /// The token of the last claim; 0 before the first.
    pub(super) token: i64,
}

/// Has a job wait, and workers woken.
pub(super) fn add(session: &Session<'_>, waiting: &Waiting) -> Result<(), Fault> {
    let row = params![
        waiting.job,
        waiting.queue,
        waiting.priority,
        waiting.created_at,
        waiting.run_at,
        waiting.run_at <= session.now,
        waiting.attempts,
        waiting.token
    ];
    session.run(WAIT, row)?;
    session.ring(Ring::Workers);
    Ok(())
}

/// A job waits no longer; false if it did not.
pub(super) fn remove(session: &Session<'_>, job: i64) -> Result<bool, Fault> {
    Ok(session.run(OVER, [job])? > 0)
}

/// Brings the jobs of a queue into its line whose time has come.
pub(super) fn promote(session: &Session<'_>, queue: i64) -> Result<(), Fault> {
    let row = params![queue, session.now, PROMOTED_AT_ONCE];
    session.run(PROMOTE, row).map(|_| ())
}

/// How long until the next job of a queue becomes due.
pub(super) fn next_due_in(session: &Session<'_>, queue: i64) -> Result<Option<Duration>, Fault> {
    let due = session.maybe(NEXT_DUE, [queue], |row| Ok(row.get::<_, i64>(0)?))?;
    Ok(due.map(|at| duration(at - session.now)))
}
