//! Lists jobs, newest first: finds the ids from the table of each status, then reads the jobs. Writes nothing.

use crate::error::Fault;
use crate::job::read::LeaseIndex;
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
    session.in_snapshot(|session| {
        let queue = match &filter.queue {
            None => None,
            Some(name) => match queue::find(session, name)? {
                None => return Ok(Vec::new()),
                Some(queue) => Some(queue.id),
            },
        };
        let query = PageQuery {
            session,
            queue,
            before: page.after.map_or(i64::MAX, |job| job.0),
            rows: page.rows(),
        };
        let mut leases = LeaseIndex::new();
        let ids = match filter.status {
            None if queue.is_some() => query.ids(LIST_OF_QUEUE)?,
            None => query.ids(LIST)?,
            Some(JobStatus::Queued) => query.newest([query.ids(WAITING)?, query.fresh()?].concat()),
            Some(JobStatus::Running) => query.newest(leases.ids(session, queue)?),
            Some(JobStatus::Completed) => query.ids(COMPLETED)?,
            Some(JobStatus::Failed) => query.ids(FAILED)?,
        };
        let mut jobs = Vec::with_capacity(ids.len());
        for id in ids {
            match leases.job(session, JobId(id)) {
                Ok(job) => jobs.extend(job),
                Err(fault) => session.skip_broken(format_args!("job {id}"), fault)?,
            }
        }
        Ok(jobs)
    })
}

/// The requested page.
struct PageQuery<'a> {
    session: &'a Session<'a>,
    queue: Option<i64>,
    before: i64,
    rows: i64,
}

impl PageQuery<'_> {
    fn ids(&self, sql: &str) -> Result<Vec<i64>, Fault> {
        let row = params![self.before, self.queue, self.rows];
        self.session.all(sql, row, |row| Ok(row.get(0)?))
    }

    /// Returns the ids of fresh jobs, from the runs of their lines.
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

    /// Returns those of the ids that belong on the page, newest first.
    fn newest(&self, mut ids: Vec<i64>) -> Vec<i64> {
        ids.retain(|id| *id < self.before);
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(usize::try_from(self.rows).unwrap_or_default());
        ids
    }
}
