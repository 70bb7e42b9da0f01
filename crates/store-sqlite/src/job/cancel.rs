//! Cancelling a job that no worker has.

use crate::error::Fault;
use crate::job::end::{End, Ends};
use crate::job::{finish, line, wait};
use crate::session::Session;
use leasehold_core::JobId;
use leasehold_store::job::JobCancelled;

const HAS_ENDED: &str = include_str!("../../sql/job/has_ended.sql");
const WAITING: &str = include_str!("../../sql/job/waiting.sql");

/// What is kept as a cancelled job's error.
const CANCELLED: &str = "cancelled";

pub(crate) fn cancel(session: &Session<'_>, id: JobId) -> Result<JobCancelled, Fault> {
    let Some((of, _)) = finish::of(session, id.0)? else {
        return Ok(JobCancelled::NotFound);
    };
    if session.one(HAS_ENDED, [id.0], |row| Ok(row.get::<_, bool>(0)?))? {
        return Ok(JobCancelled::Finished);
    }
    let mut ended = End {
        job: id.0,
        queue: of.queue,
        failed: true,
        attempts: 0,
        token: 0,
        run_at: None,
        started_at: None,
        worker: None,
        result: None,
        error: Some(CANCELLED.to_owned()),
    };
    let waited = session.maybe(WAITING, [id.0], |row| {
        ended.run_at = row.get(0)?;
        ended.attempts = row.get(1)?;
        ended.token = row.get(2)?;
        Ok(())
    })?;
    let queued = match waited {
        Some(()) => wait::remove(session, id.0)?,
        None => line::take_out(session, of.queue, of.priority, id.0)?,
    };
    if !queued {
        return Ok(JobCancelled::Running);
    }
    Ends::of(session).keep([ended])?;
    Ok(JobCancelled::Cancelled)
}
