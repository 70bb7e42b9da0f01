//! Queued jobs that nothing can run: somebody deleted or broke their rows by hand. A claim removes them, because they would stop their queue.

use crate::error::Fault;
use crate::job::end::{EndWriter, EndedJob};
use crate::job::{line, wait};
use crate::session::Session;

/// The error of a job whose row cannot be read.
const UNREADABLE: &str = "the job cannot be read: a column has an invalid value";

/// A queued job that nothing can run.
pub(super) struct UnusableJob {
    job: i64,
    /// The priority of its line; none if it has a waiting row.
    line: Option<i16>,
    /// Why it cannot be read; none if it was deleted.
    fault: Option<Fault>,
}

impl UnusableJob {
    /// A waiting row without its job.
    pub(super) fn deleted(job: i64) -> Self {
        Self {
            job,
            line: None,
            fault: None,
        }
    }

    pub(super) fn unreadable(job: i64, line: Option<i16>, fault: Fault) -> Self {
        Self {
            job,
            line,
            fault: Some(fault),
        }
    }
}

/// Deletes what is left of deleted jobs, and fails the unreadable ones.
pub(super) fn remove(
    session: &Session<'_>,
    queue: i64,
    jobs: Vec<UnusableJob>,
) -> Result<(), Fault> {
    let writer = EndWriter::new(session);
    for UnusableJob { job, line, fault } in jobs {
        match line {
            Some(priority) => line::remove(session, queue, priority, job)?,
            None => wait::remove(session, job)?,
        };
        let Some(fault) = fault else {
            // Its key and its note.
            writer.delete([job])?;
            continue;
        };
        session.skip_broken(format_args!("job {job}"), fault)?;
        writer.record([EndedJob {
            job,
            queue,
            failed: true,
            attempts: 0,
            token: 0,
            run_at: None,
            started_at: None,
            worker: None,
            result: None,
            error: Some(UNREADABLE.to_owned()),
        }])?;
    }
    Ok(())
}
