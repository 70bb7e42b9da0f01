//! Pages of jobs, newest first: the ids of those in a status from where that status is said, then each job. Changes nothing.

use crate::error::Fault;
use crate::job::read::Leases;
use crate::queue;
use crate::session::Session;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter};
use leasehold_store::sql;
use rusqlite::params;

const LIST: &str = sql!("job/list");
const LIST_OF_QUEUE: &str = sql!("job/list_of_queue");
const WAITING: &str = sql!("job/list_waiting");
const FRESH: &str = sql!("job/list_fresh");
const COMPLETED: &str = sql!("job/list_completed");
const FAILED: &str = sql!("job/list_failed");

pub(crate) fn list(
    session: &Session<'_>,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Result<Vec<Job>, Fault> {
    session.at_once(|session| {
        let queue = match &filter.queue {
            None => None,
            Some(name) => match queue::find(session, name)? {
                None => return Ok(Vec::new()),
                Some(known) => Some(known.id),
            },
        };
        let part = Part {
            session,
            queue,
            before: page.after.map_or(i64::MAX, |job| job.0),
            rows: page.rows(),
        };
        let mut leases = Leases::unread();
        let ids = match filter.status {
            None if queue.is_some() => part.ids(LIST_OF_QUEUE)?,
            None => part.ids(LIST)?,
            Some(JobStatus::Queued) => part.newest([part.ids(WAITING)?, part.fresh()?].concat()),
            Some(JobStatus::Running) => part.newest(leases.ids(session, queue)?),
            Some(JobStatus::Completed) => part.ids(COMPLETED)?,
            Some(JobStatus::Failed) => part.ids(FAILED)?,
        };
        let mut jobs = Vec::with_capacity(ids.len());
        for id in ids {
            jobs.extend(leases.job(session, JobId(id))?);
        }
        Ok(jobs)
    })
}

/// Which part of all jobs is asked for.
struct Part<'a> {
    session: &'a Session<'a>,
    queue: Option<i64>,
    before: i64,
    rows: i64,
}

impl Part<'_> {
    fn ids(&self, sql: &str) -> Result<Vec<i64>, Fault> {
        let row = params![self.before, self.queue, self.rows];
        self.session.all(sql, row, |row| Ok(row.get(0)?))
    }

    /// Those that no worker ever had: the runs know them.
    fn fresh(&self) -> Result<Vec<i64>, Fault> {
        let row = params![self.before, self.queue, self.rows];
        let runs = self.session.all(FRESH, row, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        let most = usize::try_from(self.rows).unwrap_or_default();
        let ids = runs
            .into_iter()
            .flat_map(|(first, last)| (first..=last.min(self.before - 1)).rev());
        Ok(ids.take(most).collect())
    }

    /// The newest of these that are on the page.
    fn newest(&self, mut ids: Vec<i64>) -> Vec<i64> {
        ids.retain(|id| *id < self.before);
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(usize::try_from(self.rows).unwrap_or_default());
        ids
    }
}
