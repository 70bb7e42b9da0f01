//! Queues of jobs: found or made by name, changed, listed, counted; and the limit of all of them together.

use crate::error::Fault;
use crate::job::wish;
use crate::row::{Columns, Text, duration, length};
use crate::session::Session;
use crate::wake::Ring;
use leasehold_core::lease::bounded;
use leasehold_core::queue::QueueSettings;
use leasehold_store::queue::{JobCounts, Queue, QueueChange};
use leasehold_store::{ErrorKind, Page};
use rusqlite::{Row, params};
use std::collections::HashMap;

const CREATE: &str = include_str!("../sql/queue/create.sql");
const FIND: &str = include_str!("../sql/queue/find.sql");
const GET: &str = include_str!("../sql/queue/get.sql");
const LIST: &str = include_str!("../sql/queue/list.sql");
const UPDATE: &str = include_str!("../sql/queue/update.sql");
const COUNT_FRESH: &str = include_str!("../sql/queue/count_fresh.sql");
const COUNT_WAITING: &str = include_str!("../sql/queue/count_waiting.sql");
const COUNT_RUNNING: &str = include_str!("../sql/queue/count_running.sql");
const COUNT_ENDED: &str = include_str!("../sql/queue/count_ended.sql");
const LIMIT: &str = include_str!("../sql/job/limit.sql");
const LIMIT_SET: &str = include_str!("../sql/job/limit_set.sql");
const COUNT_ALL_RUNNING: &str = include_str!("../sql/job/count_running.sql");

/// A queue and the number its jobs know it by.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: i64,
    pub(crate) queue: Queue,
}

impl Known {
    pub(crate) fn settings(&self) -> &QueueSettings {
        &self.queue.settings
    }
}

/// The queues that one call meets, each read once.
pub(crate) struct Seen<'a> {
    session: &'a Session<'a>,
    queues: HashMap<i64, Known>,
}

impl<'a> Seen<'a> {
    pub(crate) fn by(session: &'a Session<'a>) -> Self {
        Self {
            session,
            queues: HashMap::new(),
        }
    }

    pub(crate) fn get(&mut self, id: i64) -> Result<&Known, Fault> {
        if !self.queues.contains_key(&id) {
            let found = self.session.one(GET, [id], known)?;
            self.queues.insert(id, found);
        }
        let gone = || ErrorKind::Broken(format!("the queue {id} is gone"));
        Ok(self.queues.get(&id).ok_or_else(gone)?)
    }

    /// Whether any of them, or all together, may only run so many jobs at once.
    pub(crate) fn any_limited(&self) -> Result<bool, Fault> {
        let limited = |known: &Known| known.settings().limit.is_some();
        Ok(!self.queues.is_empty()
            && (self.queues.values().any(limited) || limit(self.session)?.is_some()))
    }
}

/// The queue of a name.
pub(crate) fn find(session: &Session<'_>, name: &str) -> Result<Option<Known>, Fault> {
    session.maybe(FIND, [Text(name)], known)
}

/// The queue of a name, which is made with ordinary settings if there is none.
pub(crate) fn make(session: &Session<'_>, name: &str) -> Result<Known, Fault> {
    if let Some(found) = find(session, name)? {
        return Ok(found);
    }
    let settings = QueueSettings::default();
    let row = params![
        Text(name),
        settings.keep_completed,
        length(settings.lease),
        settings.retry.max_attempts,
        length(settings.retry.backoff.base),
        settings.retry.backoff.factor,
        length(settings.retry.backoff.max),
        settings.retry.backoff.jitter,
        session.now
    ];
    session.run(CREATE, row)?;
    session.one(FIND, [Text(name)], known)
}

pub(crate) fn get(session: &Session<'_>, name: &str) -> Result<Option<Queue>, Fault> {
    Ok(find(session, name)?.map(|found| found.queue))
}

pub(crate) fn list(session: &Session<'_>, page: &Page<String>) -> Result<Vec<Queue>, Fault> {
    let after = page.after.as_deref().unwrap_or_default();
    session.all(LIST, params![Text(after), page.rows()], |row| {
        Ok(known(row)?.queue)
    })
}

pub(crate) fn update(
    session: &Session<'_>,
    name: &str,
    change: &QueueChange,
) -> Result<Queue, Fault> {
    let mut found = make(session, name)?;
    let settings = &mut found.queue.settings;
    settings.limit = change.limit.unwrap_or(settings.limit);
    settings.paused = change.paused.unwrap_or(settings.paused);
    settings.keep_completed = change.keep_completed.unwrap_or(settings.keep_completed);
    settings.lease = change.lease.map_or(settings.lease, bounded);
    settings.retry = change.retry.unwrap_or(settings.retry);
    settings.timeout = change.timeout.unwrap_or(settings.timeout);
    let row = params![
        found.id,
        settings.limit,
        settings.paused,
        settings.keep_completed,
        length(settings.lease),
        settings.retry.max_attempts,
        length(settings.retry.backoff.base),
        settings.retry.backoff.factor,
        length(settings.retry.backoff.max),
        settings.retry.backoff.jitter,
        settings.timeout.map(length)
    ];
    session.run(UPDATE, row)?;
    session.ring(Ring::Workers);
    // As it is kept: lengths of time lose what is below a microsecond.
    session.one(GET, [found.id], |row| Ok(known(row)?.queue))
}

pub(crate) fn counts(session: &Session<'_>, name: &str) -> Result<JobCounts, Fault> {
    session.at_once(|session| {
        let Some(found) = find(session, name)? else {
            return Ok(JobCounts::default());
        };
        let fresh = session.one(COUNT_FRESH, [found.id], |row| row.count("fresh"))?;
        let row = params![found.id, session.now];
        let (due, scheduled) = session.one(COUNT_WAITING, row, |row| {
            Ok((row.count("due")?, row.count("scheduled")?))
        })?;
        let (completed, failed) = session.one(COUNT_ENDED, [found.id], |row| {
            Ok((row.count("completed")?, row.count("failed")?))
        })?;
        Ok(JobCounts {
            ready: fresh + due,
            scheduled,
            running: u64::from(running(session, found.id)?),
            completed,
            failed,
        })
    })
}

/// How many jobs of a queue workers have, those with expired leases included.
pub(crate) fn running(session: &Session<'_>, queue: i64) -> Result<u32, Fault> {
    session.one(COUNT_RUNNING, [queue], |row| Ok(row.get(0)?))
}

/// How many jobs of all queues workers have.
pub(crate) fn all_running(session: &Session<'_>) -> Result<u32, Fault> {
    session.one(COUNT_ALL_RUNNING, [], |row| Ok(row.get(0)?))
}

/// How many jobs of all queues may run at once.
pub(crate) fn limit(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    session.one(LIMIT, [], |row| Ok(row.get(0)?))
}

pub(crate) fn limit_set(session: &Session<'_>, limit: Option<u32>) -> Result<(), Fault> {
    session.run(LIMIT_SET, [limit])?;
    session.ring(Ring::Workers);
    Ok(())
}

pub(crate) fn known(row: &Row<'_>) -> Result<Known, Fault> {
    let ordinary = QueueSettings::default();
    let wishes = wish::wishes(row, 6)?;
    Ok(Known {
        id: row.get(0)?,
        queue: Queue {
            name: row.get(1)?,
            settings: QueueSettings {
                limit: row.get(2)?,
                paused: row.get(3)?,
                keep_completed: row.get(4)?,
                lease: duration(row.get(5)?),
                retry: ordinary.retry_of(wishes.max_attempts, wishes.backoff),
                timeout: wish::timeout(row, 11)?,
            },
            created_at: row.time("created_at")?,
        },
    })
}
