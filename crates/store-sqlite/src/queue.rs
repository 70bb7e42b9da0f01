//! Job queues: find or create by name, update, list, count; and the limit on running jobs of all queues.

use crate::SqliteStore;
use crate::error::Fault;
use crate::job::overrides;
use crate::notification::NotifyTarget;
use crate::row::{Columns, Text, duration, micros};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::lease::bounded;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::queue::QueueSettings;
use leasehold_store::queue::{JobCounts, Queue, QueueChange, QueueStore, QueueUse};
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Page, Result};
use rusqlite::{Row, params};
use std::collections::HashMap;

const CREATE: &str = sql!("queue/create");
const FIND: &str = sql!("queue/find");
const GET: &str = sql!("queue/get");
const LIST: &str = sql!("queue/list");
const UPDATE: &str = sql!("queue/update");
const COUNT_FRESH: &str = sql!("queue/count_fresh");
const COUNT_WAITING: &str = sql!("queue/count_waiting");
const COUNT_RUNNING: &str = sql!("queue/count_running");
const COUNT_ENDED: &str = sql!("queue/count_ended");
const OVERVIEW: &str = sql!("queue/overview");
const COUNT_READY: &str = sql!("queue/count_ready");
const LIMIT: &str = sql!("job/limit");
const LIMIT_SET: &str = sql!("job/limit_set");
const COUNT_ALL_RUNNING: &str = sql!("job/count_running");

#[async_trait]
impl QueueStore for SqliteStore {
    async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue> {
        let (name, change) = (name.to_owned(), *change);
        self.write("queue_update", move |s| update(s, &name, &change))
            .await
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        let name = name.to_owned();
        self.read("queue_get", move |s| {
            Ok(find(s, &name)?.map(|found| found.queue))
        })
        .await
    }

    async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>> {
        let page = page.clone();
        self.read("queue_list", move |s| {
            let after = page.after.as_deref().unwrap_or_default();
            s.all(LIST, params![Text(after), page.rows()], |row| {
                Ok(queue_row(row)?.queue)
            })
        })
        .await
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        let name = name.to_owned();
        self.read("queue_counts", move |s| counts(s, &name)).await
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        self.read("queue_overview", move |s| overview(s, limit, up_to))
            .await
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        self.read("job_limit", limit).await
    }

    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        self.write("job_limit_set", move |s| {
            s.run(LIMIT_SET, [limit])?;
            s.notify(NotifyTarget::Workers);
            Ok(())
        })
        .await
    }
}

/// A queue with its numeric id.
#[derive(Clone, Debug)]
pub(crate) struct QueueRow {
    pub(crate) id: i64,
    pub(crate) queue: Queue,
}

impl QueueRow {
    pub(crate) fn settings(&self) -> &QueueSettings {
        &self.queue.settings
    }
}

/// The queues used by one call, each read once.
pub(crate) struct QueueCache<'a> {
    session: &'a Session<'a>,
    queues: HashMap<i64, QueueRow>,
}

impl<'a> QueueCache<'a> {
    pub(crate) fn new(session: &'a Session<'a>) -> Self {
        Self {
            session,
            queues: HashMap::new(),
        }
    }

    pub(crate) fn get(&mut self, id: i64) -> Result<&QueueRow, Fault> {
        if !self.queues.contains_key(&id) {
            let found = self.session.one(GET, [id], queue_row)?;
            self.queues.insert(id, found);
        }
        let missing = || ErrorKind::Broken(format!("queue {id} is missing in the database"));
        Ok(self.queues.get(&id).ok_or_else(missing)?)
    }

    /// Whether one of these queues, or all queues together, have a limit on running jobs.
    pub(crate) fn any_limited(&self) -> Result<bool, Fault> {
        let limited = |queue_row: &QueueRow| queue_row.settings().limit.is_some();
        Ok(!self.queues.is_empty()
            && (self.queues.values().any(limited) || limit(self.session)?.is_some()))
    }
}

/// Returns the queue with this name.
pub(crate) fn find(session: &Session<'_>, name: &str) -> Result<Option<QueueRow>, Fault> {
    session.optional(FIND, [Text(name)], queue_row)
}

/// Returns the queue with this name; creates it with default settings if it does not exist.
pub(crate) fn get_or_create(session: &Session<'_>, name: &str) -> Result<QueueRow, Fault> {
    if let Some(found) = find(session, name)? {
        return Ok(found);
    }
    let settings = QueueSettings::default();
    let row = params![
        Text(name),
        settings.keep_completed,
        micros(settings.lease),
        settings.retry.max_attempts,
        micros(settings.retry.backoff.base),
        settings.retry.backoff.factor,
        micros(settings.retry.backoff.max),
        settings.retry.backoff.jitter,
        session.now
    ];
    session.run(CREATE, row)?;
    session.one(FIND, [Text(name)], queue_row)
}

fn update(session: &Session<'_>, name: &str, change: &QueueChange) -> Result<Queue, Fault> {
    let mut found = get_or_create(session, name)?;
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
        micros(settings.lease),
        settings.retry.max_attempts,
        micros(settings.retry.backoff.base),
        settings.retry.backoff.factor,
        micros(settings.retry.backoff.max),
        settings.retry.backoff.jitter,
        settings.timeout.map(micros)
    ];
    session.run(UPDATE, row)?;
    session.notify(NotifyTarget::Workers);
    // Read back as stored: durations are truncated to microseconds.
    session.one(GET, [found.id], |row| Ok(queue_row(row)?.queue))
}

fn counts(session: &Session<'_>, name: &str) -> Result<JobCounts, Fault> {
    session.in_snapshot(|session| {
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

fn overview(session: &Session<'_>, limit: u32, up_to: u32) -> Result<Vec<QueueUse>, Fault> {
    session.in_snapshot(|session| {
        let running = session.all(OVERVIEW, [limit.min(PAGE_MAX)], |row| {
            Ok((queue_row(row)?, row.count("running")?))
        })?;
        let counted = |(queue_row, running): (QueueRow, u64)| {
            // Counts one more than requested, to know whether there are more.
            let row = params![queue_row.id, session.now, i64::from(up_to) + 1];
            let waiting = session.one(COUNT_READY, row, |row| row.count("ready"))?;
            let up_to = u64::from(up_to);
            Ok(QueueUse {
                queue: queue_row.queue,
                running,
                waiting: waiting.min(up_to),
                more_waiting: waiting > up_to,
            })
        };
        running.into_iter().map(counted).collect()
    })
}

/// Counts the running jobs of a queue, including those with expired leases.
pub(crate) fn running(session: &Session<'_>, queue: i64) -> Result<u32, Fault> {
    session.one(COUNT_RUNNING, [queue], |row| Ok(row.get(0)?))
}

/// Counts the running jobs of all queues.
pub(crate) fn all_running(session: &Session<'_>) -> Result<u32, Fault> {
    session.one(COUNT_ALL_RUNNING, [], |row| Ok(row.get(0)?))
}

/// Returns the limit on running jobs of all queues.
pub(crate) fn limit(session: &Session<'_>) -> Result<Option<u32>, Fault> {
    session.one(LIMIT, [], |row| Ok(row.get(0)?))
}

fn queue_row(row: &Row<'_>) -> Result<QueueRow, Fault> {
    let defaults = QueueSettings::default();
    let retry = overrides::retry_overrides(row, 6)?;
    Ok(QueueRow {
        id: row.get(0)?,
        queue: Queue {
            name: row.get(1)?,
            settings: QueueSettings {
                limit: row.get(2)?,
                paused: row.get(3)?,
                keep_completed: row.get(4)?,
                lease: duration(row.get(5)?),
                retry: defaults.retry_of(retry.max_attempts, retry.backoff),
                timeout: overrides::timeout(row, 11)?,
            },
            created_at: row.time("created_at")?,
        },
    })
}
