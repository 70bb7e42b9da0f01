//! Cancelling a job that no worker has.

use crate::error::Fault;
use crate::job::abandon::take_queued;
use crate::job::end::{self, Ends};
use crate::job::finish;
use crate::session::Session;
use leasehold_core::JobId;
use leasehold_store::job::JobCancelled;

/// What is kept as a cancelled job's error.
const CANCELLED: &str = "cancelled";

pub(crate) fn cancel(session: &Session<'_>, id: JobId) -> Result<JobCancelled, Fault> {
    let Some((of, _)) = finish::of(session, id.0)? else {
        return Ok(JobCancelled::NotFound);
    };
    if end::ended(session, id.0)?.is_some() {
        return Ok(JobCancelled::Finished);
    }
    if of.node.is_some() {
        return Ok(JobCancelled::OfGraph);
    }
    let Some(ended) = take_queued(session, &of, CANCELLED)? else {
        return Ok(JobCancelled::Running);
    };
    Ends::of(session).keep([ended])?;
    Ok(JobCancelled::Cancelled)
}
