//! Lists jobs, newest first: finds the ids from the table of each status, then reads the jobs. Writes nothing.

use crate::error::Fault;
use crate::job::read::LeaseIndex;
use crate::queue;
use crate::session::Session;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::Page;
use leasehold_store::job::{Job, JobFilter};
use leasehold_store::sql;
use rusqlite::{Row, params};

/// How many jobs of all queues the list of a large queue looks at instead of all its own.
const NEAR_JOBS: i64 = 1_000;

const LIST: &str = sql!("job/list");
const LIST_OF_QUEUE: &str = sql!("job/list_of_queue");
const WAITING: &str = sql!("job/list_waiting");
const NEWEST_WAITING: &str = sql!("job/list_newest_waiting");
const WAITING_OF_QUEUE: &str = sql!("job/list_waiting_of_queue");
const FRESH: &str = sql!("job/list_fresh");
const FRESH_OF_QUEUE: &str = sql!("job/list_fresh_of_queue");
const COMPLETED: &str = sql!("job/list_completed");
const COMPLETED_OF_QUEUE: &str = sql!("job/list_completed_of_queue");
const NEWEST_ENDED: &str = sql!("job/list_newest_ended");
const FAILED_OF_QUEUE: &str = sql!("job/list_failed_of_queue");
const QUEUES: &str = sql!("queue/list_ids");

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
            None => query.ids(LIST, LIST_OF_QUEUE)?,
            Some(JobStatus::Queued) => {
                let waiting = query.near_or_own(NEWEST_WAITING, WAITING, WAITING_OF_QUEUE)?;
                query.newest([waiting, query.fresh()?].concat())
            }
            Some(JobStatus::Running) => query.newest(leases.ids(session, queue)?),
            Some(JobStatus::Completed) => {
                query.near_or_own(NEWEST_ENDED, COMPLETED, COMPLETED_OF_QUEUE)?
            }
            Some(JobStatus::Failed) => query.failed()?,
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
    /// Returns the ids that one of these statements finds: in all queues, or in this queue.
    fn ids(&self, of_all: &str, of_queue: &str) -> Result<Vec<i64>, Fault> {
        match self.queue {
            None => {
                let row = params![self.before, self.rows];
                self.session.all(of_all, row, |row| Ok(row.get(0)?))
            }
            Some(queue) => self.ids_of(of_queue, queue),
        }
    }

    fn ids_of(&self, sql: &str, queue: i64) -> Result<Vec<i64>, Fault> {
        let row = params![self.before, self.rows, queue];
        self.session.all(sql, row, |row| Ok(row.get(0)?))
    }

    /// Looks among the newest jobs of all queues that `newest` lists. If few of them are of this queue, reads the jobs of the queue, whose number matters then.
    fn near_or_own(&self, newest: &str, of_all: &str, of_queue: &str) -> Result<Vec<i64>, Fault> {
        let Some(queue) = self.queue else {
            return self.ids(of_all, of_queue);
        };
        let row = params![self.before, NEAR_JOBS, queue];
        let newest: Vec<(i64, bool)> = self
            .session
            .all(newest, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_all = i64::try_from(newest.len()).is_ok_and(|found| found < NEAR_JOBS);
        let own = newest.into_iter().filter(|(_, is_own)| *is_own);
        let near: Vec<i64> = own.map(|(job, _)| job).take(self.most()).collect();
        if is_all || near.len() == self.most() {
            return Ok(near);
        }
        self.ids_of(of_queue, queue)
    }

    /// The index of failed jobs is ordered by queue, so that it serves lists and counts of a queue.
    fn failed(&self) -> Result<Vec<i64>, Fault> {
        let queues = match self.queue {
            Some(queue) => return self.ids_of(FAILED_OF_QUEUE, queue),
            None => self.session.all(QUEUES, [], |row| Ok(row.get(0)?))?,
        };
        let mut newest = Vec::new();
        for queue in queues {
            newest.extend(self.ids_of(FAILED_OF_QUEUE, queue)?);
            newest = self.newest(newest);
        }
        Ok(newest)
    }

    /// Returns the ids of fresh jobs, from the runs of their lines.
    fn fresh(&self) -> Result<Vec<i64>, Fault> {
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let runs = match self.queue {
            None => {
                let row = params![self.before, self.rows];
                self.session.all(FRESH, row, read)?
            }
            Some(queue) => {
                let row = params![self.before, self.rows, queue];
                self.session.all(FRESH_OF_QUEUE, row, read)?
            }
        };
        let ids = runs
            .into_iter()
            .flat_map(|(first, last)| (first..=last.min(self.before - 1)).rev());
        Ok(ids.take(self.most()).collect())
    }

    fn most(&self) -> usize {
        usize::try_from(self.rows).unwrap_or_default()
    }

    /// Returns those of the ids that belong on the page, newest first.
    fn newest(&self, mut ids: Vec<i64>) -> Vec<i64> {
        ids.retain(|id| *id < self.before);
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(self.most());
        ids
    }
}
