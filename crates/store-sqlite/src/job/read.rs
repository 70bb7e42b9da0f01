//! Reads a job from its rows. Writes nothing.

use crate::error::Fault;
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::row::{SqliteRecord, timestamp};
use crate::session::Session;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::Job;
use leasehold_store::sql;
use rusqlite::params;
use std::collections::HashMap;

const GET: &str = sql!("job/get");

/// All leases by job, loaded when the first job without another state is read.
pub(crate) struct LeaseIndex(Option<LoadedLeases>);

struct LoadedLeases {
    pages: Vec<Page>,
    /// The page and the entry of each job.
    jobs: HashMap<i64, (usize, Entry)>,
}

impl LeaseIndex {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Returns the ids of running jobs, of one queue or of all.
    pub(super) fn ids(
        &mut self,
        session: &Session<'_>,
        queue: Option<i64>,
    ) -> Result<Vec<i64>, Fault> {
        let LoadedLeases { pages, jobs } = self.read(session)?;
        let of_queue = |page: usize| queue.is_none_or(|queue| pages[page].queue == queue);
        let found = jobs.iter().filter(|(_, (page, _))| of_queue(*page));
        Ok(found.map(|(job, _)| *job).collect())
    }

    /// Returns the job; none if it does not exist.
    pub(crate) fn job(&mut self, session: &Session<'_>, id: JobId) -> Result<Option<Job>, Fault> {
        let found = session.optional(GET, params![id.0, session.now], |row| {
            let waits_or_ended: bool = row.get("waits_or_ended")?;
            Ok((Job::read(&SqliteRecord(row))?, waits_or_ended))
        })?;
        let Some((mut job, waits_or_ended)) = found else {
            return Ok(None);
        };
        if !waits_or_ended {
            self.apply_lease(session, &mut job)?;
        }
        Ok(Some(job))
    }

    /// Fills in the lease of a running job; leaves a fresh job unchanged.
    fn apply_lease(&mut self, session: &Session<'_>, job: &mut Job) -> Result<(), Fault> {
        let LoadedLeases { pages, jobs } = self.read(session)?;
        let Some((page, entry)) = jobs.get(&job.id.0) else {
            return Ok(());
        };
        let page = &pages[*page];
        job.status = JobStatus::Running;
        job.attempts = entry.attempt;
        job.token = page.token;
        job.claimed_by = Some(page.worker.clone());
        job.claimed_at = Some(timestamp(page.claimed_at)?);
        job.lease_expires_at = Some(timestamp(entry.ends_at)?);
        if let Some(run_at) = entry.run_at {
            job.run_at = timestamp(run_at)?;
        }
        Ok(())
    }

    fn read(&mut self, session: &Session<'_>) -> Result<&LoadedLeases, Fault> {
        let read = match self.0.take() {
            Some(read) => read,
            None => {
                let pages = lease::all(session)?;
                let numbered = pages.iter().enumerate();
                let jobs = numbered
                    .flat_map(|(number, page)| page.entries.iter().map(move |e| (number, *e)))
                    .map(|(number, entry)| (entry.job, (number, entry)))
                    .collect();
                LoadedLeases { pages, jobs }
            }
        };
        Ok(self.0.insert(read))
    }
}
