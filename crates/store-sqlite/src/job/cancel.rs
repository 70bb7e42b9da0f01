//! Cancels a queued job.

use crate::error::Fault;
use crate::job::abandon::remove_queued;
use crate::job::end::{self, EndWriter};
use crate::job::finish;
use crate::job::group;
use crate::session::Session;
use leasehold_core::JobId;
use leasehold_store::job::JobCancelled;

/// The error of a cancelled job.
const CANCELLED: &str = "cancelled";

pub(crate) fn cancel(session: &Session<'_>, id: JobId) -> Result<JobCancelled, Fault> {
    let Some((header, _)) = finish::job_header(session, id.0)? else {
        return Ok(JobCancelled::NotFound);
    };
    if end::ended_attempts(session, id.0)?.is_some() {
        return Ok(JobCancelled::Finished);
    }
    if header.node.is_some() {
        return Ok(JobCancelled::OfGraph);
    }
    let Some(ended) = remove_queued(session, &header, CANCELLED)? else {
        return Ok(JobCancelled::Running);
    };
    if header.group() != group::NONE {
        group::leave(session, header.queue, header.group())?;
    }
    EndWriter::new(session).record([ended])?;
    Ok(JobCancelled::Cancelled)
}
