//! Heartbeats of running jobs: renews leases and records progress.

use crate::error::Fault;
use crate::job::lease::WorkerLeases;
use crate::row::{Text, later};
use crate::session::Session;
use leasehold_core::job::JobRef;
use leasehold_core::lease::bounded;
use leasehold_core::{JobId, JsonText};
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const PROGRESS: &str = sql!("job/note_set_progress");

pub(crate) fn renew(
    session: &Session<'_>,
    worker: &str,
    claims: &[JobRef],
    lease: Duration,
) -> Result<Vec<JobId>, Fault> {
    let until = later(session.now, bounded(lease));
    let mut leases = WorkerLeases::new(session, worker);
    let mut renewed = Vec::with_capacity(claims.len());
    for claim in claims {
        if leases.extend(*claim, until)? {
            renewed.push(claim.job);
        }
    }
    leases.write_back()?;
    Ok(renewed)
}

pub(crate) fn progress(
    session: &Session<'_>,
    worker: &str,
    claim: JobRef,
    progress: &JsonText,
) -> Result<bool, Fault> {
    if !WorkerLeases::new(session, worker).has(claim)? {
        return Ok(false);
    }
    session.run(PROGRESS, params![claim.job.0, Text(progress.as_str())])?;
    Ok(true)
}
