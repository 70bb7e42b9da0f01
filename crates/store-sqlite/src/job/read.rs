//! A job as its readers see it, put together from the rows that tell of it. Changes nothing.

use crate::error::Fault;
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::job::wish;
use crate::row::{Columns, moment};
use crate::session::Session;
use leasehold_core::job::JobRetry;
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::job::Job;
use rusqlite::{Row, params};
use std::collections::HashMap;

const GET: &str = include_str!("../../sql/job/get.sql");

pub(crate) fn get(session: &Session<'_>, id: JobId) -> Result<Option<Job>, Fault> {
    session.at_once(|session| Leases::unread().job(session, id))
}

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
            Ok((job(row)?, row.get::<_, Option<u32>>(20)?.is_some()))
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

fn job(row: &Row<'_>) -> Result<Job, Fault> {
    let text = |column: usize| row.get::<_, Option<String>>(column);
    let time = |column: usize| row.get::<_, Option<i64>>(column)?.map(moment).transpose();
    let created_at = moment(row.get(5)?)?;
    let failed: Option<bool> = row.get(22)?;
    let (own, queues) = (wish::wishes(row, 8)?, wish::wishes(row, 14)?);
    let ordinary = JobRetry::default();
    Ok(Job {
        id: JobId(row.get(0)?),
        queue: row.get(1)?,
        kind: row.get(2)?,
        status: match failed {
            Some(true) => JobStatus::Failed,
            Some(false) => JobStatus::Completed,
            None => JobStatus::Queued,
        },
        priority: row.get(3)?,
        payload: JsonText::trusted(row.get(4)?),
        run_at: time(19)?.unwrap_or(created_at),
        attempts: row.get::<_, Option<u32>>(20)?.unwrap_or_default(),
        retry: JobRetry {
            max_attempts: own
                .max_attempts
                .or(queues.max_attempts)
                .unwrap_or(ordinary.max_attempts),
            backoff: own.backoff.or(queues.backoff).unwrap_or(ordinary.backoff),
        },
        timeout: wish::timeout(row, 7)?.or(wish::timeout(row, 13)?),
        dedup_key: text(27)?,
        claimed_by: None,
        claimed_at: None,
        lease_expires_at: None,
        token: row.get::<_, Option<i64>>(21)?.unwrap_or_default(),
        progress: text(26)?.map(JsonText::trusted),
        result: text(24)?.map(JsonText::trusted),
        last_error: text(25)?,
        trace_context: text(6)?,
        created_at,
        execution: row.id_or_none("execution_id")?,
        finished_at: time(23)?,
    })
}
