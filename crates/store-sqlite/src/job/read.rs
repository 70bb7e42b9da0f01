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
use std::collections::hash_map::Entry as MapEntry;

const GET: &str = sql!("job/get");

/// Leases by job. The leases of a queue are loaded when the first of its jobs without another state is read.
#[derive(Default)]
pub(crate) struct LeaseIndex {
    queues: HashMap<i64, QueueLeases>,
    is_complete: bool,
}

/// The leases of a queue.
#[derive(Default)]
struct QueueLeases {
    pages: Vec<Page>,
    /// The page and the entry of each job.
    jobs: HashMap<i64, (usize, Entry)>,
}

impl QueueLeases {
    fn add(&mut self, page: Page) {
        let number = self.pages.len();
        let entries = page.entries.iter();
        self.jobs
            .extend(entries.map(|entry| (entry.job, (number, *entry))));
        self.pages.push(page);
    }
}

impl LeaseIndex {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the ids of running jobs, of one queue or of all.
    pub(super) fn ids(
        &mut self,
        session: &Session<'_>,
        queue: Option<i64>,
    ) -> Result<Vec<i64>, Fault> {
        if let Some(queue) = queue {
            return Ok(self
                .of_queue(session, queue)?
                .jobs
                .keys()
                .copied()
                .collect());
        }
        for page in lease::all(session)? {
            self.queues.entry(page.queue).or_default().add(page);
        }
        self.is_complete = true;
        let all = self.queues.values().flat_map(|queue| queue.jobs.keys());
        Ok(all.copied().collect())
    }

    /// Returns the job; none if it does not exist.
    pub(crate) fn job(&mut self, session: &Session<'_>, id: JobId) -> Result<Option<Job>, Fault> {
        let found = session.optional(GET, params![id.0, session.now], |row| {
            let waits_or_ended: bool = row.get("waits_or_ended")?;
            let queue: i64 = row.get("queue_id")?;
            Ok((Job::read(&SqliteRecord(row))?, queue, waits_or_ended))
        })?;
        let Some((mut job, queue, waits_or_ended)) = found else {
            return Ok(None);
        };
        if !waits_or_ended {
            apply_lease(self.of_queue(session, queue)?, &mut job)?;
        }
        Ok(Some(job))
    }

    fn of_queue(&mut self, session: &Session<'_>, queue: i64) -> Result<&QueueLeases, Fault> {
        let is_complete = self.is_complete;
        match self.queues.entry(queue) {
            MapEntry::Occupied(found) => Ok(found.into_mut()),
            MapEntry::Vacant(vacant) => {
                let leases = vacant.insert(QueueLeases::default());
                if !is_complete {
                    for page in lease::of_queue(session, queue)? {
                        leases.add(page);
                    }
                }
                Ok(leases)
            }
        }
    }
}

/// Fills in the lease of a running job; leaves a fresh job unchanged.
fn apply_lease(leases: &QueueLeases, job: &mut Job) -> Result<(), Fault> {
    let Some((page, entry)) = leases.jobs.get(&job.id.0) else {
        return Ok(());
    };
    let page = &leases.pages[*page];
    job.status = JobStatus::Running.into();
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
