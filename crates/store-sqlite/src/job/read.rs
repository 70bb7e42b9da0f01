//! A job as its readers see it, put together from the rows that tell of it. Changes nothing.

use crate::error::Fault;
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::row::{Kept, moment};
use crate::session::Session;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::Job;
use leasehold_store::sql;
use rusqlite::params;
use std::collections::HashMap;

const GET: &str = sql!("job/get");

/// The leases there are, read when the first job that may have one is met.
pub(crate) struct Leases(Option<Read>);

struct Read {
    pages: Vec<Page>,
    /// The page and the entry of each job.
    jobs: HashMap<i64, (usize, Entry)>,
}

impl Leases {
    pub(crate) fn unread() -> Self {
        Self(None)
    }

    /// The ids of the jobs that workers have, of one queue or of all.
    pub(super) fn ids(
        &mut self,
        session: &Session<'_>,
        queue: Option<i64>,
    ) -> Result<Vec<i64>, Fault> {
        let Read { pages, jobs } = self.read(session)?;
        let of_queue = |page: usize| queue.is_none_or(|queue| pages[page].queue == queue);
        let found = jobs.iter().filter(|(_, (page, _))| of_queue(*page));
        Ok(found.map(|(job, _)| *job).collect())
    }

    /// The job; none if there is none.
    pub(crate) fn job(&mut self, session: &Session<'_>, id: JobId) -> Result<Option<Job>, Fault> {
        let found = session.maybe(GET, params![id.0, session.now], |row| {
            let placed: Option<u32> = row.get("placed")?;
            Ok((Job::read(&Kept(row))?, placed.is_some()))
        })?;
        let Some((mut job, placed)) = found else {
            return Ok(None);
        };
        if !placed {
            self.tell(session, &mut job)?;
        }
        Ok(Some(job))
    }

    /// Adds what a lease tells of a job that neither waits nor has ended.
    fn tell(&mut self, session: &Session<'_>, job: &mut Job) -> Result<(), Fault> {
        let Read { pages, jobs } = self.read(session)?;
        let Some((page, entry)) = jobs.get(&job.id.0) else {
            return Ok(());
        };
        let page = &pages[*page];
        job.status = JobStatus::Running;
        job.attempts = entry.attempt;
        job.token = page.token;
        job.claimed_by = Some(page.worker.clone());
        job.claimed_at = Some(moment(page.claimed_at)?);
        job.lease_expires_at = Some(moment(entry.ends_at)?);
        if let Some(run_at) = entry.run_at {
            job.run_at = moment(run_at)?;
        }
        Ok(())
    }

    fn read(&mut self, session: &Session<'_>) -> Result<&Read, Fault> {
        let read = match self.0.take() {
            Some(read) => read,
            None => {
                let pages = lease::all(session)?;
                let numbered = pages.iter().enumerate();
                let jobs = numbered
                    .flat_map(|(number, page)| page.entries.iter().map(move |e| (number, *e)))
                    .map(|(number, entry)| (entry.job, (number, entry)))
                    .collect();
                Read { pages, jobs }
            }
        };
        Ok(self.0.insert(read))
    }
}
