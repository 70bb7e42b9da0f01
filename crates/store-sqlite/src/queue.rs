//! Job queues: find or create by name, update, list, count; and the limit on running jobs of all queues.

use crate::error::Fault;
use crate::job::{group, overrides};
use crate::notification::NotifyTarget;
use crate::row::{Columns, Text, blob, duration, micros};
use crate::session::Session;
use crate::{SqliteStore, audit, queue_access};
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::lease::bounded;
use leasehold_core::limits::{JOB_OVERHEAD_BYTES, PAGE_MAX};
use leasehold_core::queue::QueueSettings;
use leasehold_store::audit::AuditRecord;
use leasehold_store::queue::{
    JobCounts, Queue, QueueChange, QueueOwnership, QueueShared, QueueStore, QueueUse, SharedWith,
};
use leasehold_store::sql;
use leasehold_store::{Actor, ErrorKind, Page, Result};
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
const OPEN_BYTES: &str = sql!("queue/open_bytes");
const COUNT_READY: &str = sql!("queue/count_ready");
const LIMIT: &str = sql!("job/limit");
const LIMIT_SET: &str = sql!("job/limit_set");
const COUNT_ALL_RUNNING: &str = sql!("job/count_running");

#[async_trait]
impl QueueStore for SqliteStore {
    async fn queue_update(&self, name: &str, change: &QueueChange, by: &Actor) -> Result<Queue> {
        let (name, change, by) = (name.to_owned(), *change, by.clone());
        self.write("queue_update", move |s| {
            let updated = update(s, &name, &change)?;
            audit::record(s, &by, &AuditRecord::queue_update(&name, &change))?;
            Ok(updated)
        })
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

    async fn queue_open_bytes(&self, queues: &[String], up_to: u64) -> Result<u64> {
        let queues = queues.to_vec();
        self.read("queue_open_bytes", move |s| open_bytes(s, &queues, up_to))
            .await
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        self.read("queue_overview", move |s| overview(s, limit, up_to))
            .await
    }

    async fn queue_ownership(&self, names: &[String]) -> Result<Vec<QueueOwnership>> {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        self.read("queue_ownership", move |s| {
            s.in_snapshot(|s| {
                let found = names.iter().map(|name| queue_access::ownership(s, name));
                let found: Vec<_> = found.collect::<Result<_, Fault>>()?;
                Ok(found.into_iter().flatten().collect())
            })
        })
        .await
    }

    async fn queue_share(&self, name: &str, with: &SharedWith, by: &Actor) -> Result<QueueShared> {
        let (name, with, by) = (name.to_owned(), with.clone(), by.clone());
        self.write("queue_share", move |s| {
            let shared = queue_access::share(s, &name, &with)?;
            if let QueueShared::Shared(ownership) = &shared {
                audit::record(s, &by, &AuditRecord::queue_share(ownership))?;
            }
            Ok(shared)
        })
        .await
    }

    async fn queue_refused(
        &self,
        name: &str,
        workspaces: &[WorkspaceId],
    ) -> Result<Option<WorkspaceId>> {
        let (name, workspaces) = (name.to_owned(), workspaces.to_vec());
        self.read("queue_refused", move |s| {
            s.in_snapshot(|s| queue_access::refused(s, &name, &workspaces))
        })
        .await
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        self.read("job_limit", limit).await
    }

    async fn job_limit_set(&self, limit: Option<u32>, by: &Actor) -> Result<()> {
        let by = by.clone();
        self.write("job_limit_set", move |s| {
            s.run(LIMIT_SET, [limit])?;
            audit::record(s, &by, &AuditRecord::job_limit_set(limit))?;
            s.notify(NotifyTarget::Workers);
            Ok(())
        })
        .await
    }
}

fn open_bytes(session: &Session<'_>, queues: &[String], up_to: u64) -> Result<u64, Fault> {
    let overhead = i64::try_from(JOB_OVERHEAD_BYTES).unwrap_or(i64::MAX);
    let jobs = i64::try_from(up_to / JOB_OVERHEAD_BYTES + 1).unwrap_or(i64::MAX);
    let mut total = 0_u64;
    for name in queues {
        if let Some(queue) = find(session, name)?
            && total <= up_to
        {
            let row = params![queue.id, overhead, jobs];
            total += session.one(OPEN_BYTES, row, |row| row.count("bytes"))?;
        }
    }
    Ok(total)
}

/// A queue with its numeric id.
#[derive(Clone, Debug)]
pub(crate) struct QueueRow {
    pub(crate) id: i64,
    /// Whether it has had a job with a group, or a `group_limit`.
    pub(crate) has_groups: bool,
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
        let limited = |queue_row: &QueueRow| {
            let settings = queue_row.settings();
            settings.limit.is_some() || settings.group_limit.is_some()
        };
        Ok(!self.queues.is_empty()
            && (self.queues.values().any(limited) || limit(self.session)?.is_some()))
    }
}

/// Returns the queue with this name.
pub(crate) fn find(session: &Session<'_>, name: &str) -> Result<Option<QueueRow>, Fault> {
    session.optional(FIND, [Text(name)], queue_row)
}

/// Returns the queue with this name; creates it for the installation, with default settings, if it does not exist.
pub(crate) fn get_or_create(session: &Session<'_>, name: &str) -> Result<QueueRow, Fault> {
    match find(session, name)? {
        Some(found) => Ok(found),
        None => create(session, name, None),
    }
}

/// Creates a queue with default settings, for a workspace or for the installation.
pub(crate) fn create(
    session: &Session<'_>,
    name: &str,
    owner: Option<WorkspaceId>,
) -> Result<QueueRow, Fault> {
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
        session.now,
        owner.map(blob)
    ];
    session.run(CREATE, row)?;
    session.one(FIND, [Text(name)], queue_row)
}

fn update(session: &Session<'_>, name: &str, change: &QueueChange) -> Result<Queue, Fault> {
    let mut found = get_or_create(session, name)?;
    let settings = &mut found.queue.settings;
    settings.limit = change.limit.unwrap_or(settings.limit);
    let group_limit = change.group_limit.unwrap_or(settings.group_limit);
    let changes_groups = group_limit != settings.group_limit;
    settings.group_limit = group_limit;
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
        settings.timeout.map(micros),
        settings.group_limit
    ];
    session.run(UPDATE, row)?;
    if changes_groups {
        group::apply_limit(session, found.id, group_limit)?;
    }
    session.notify(NotifyTarget::Workers);
    // Read back as stored: durations are truncated to microseconds.
    session.one(GET, [found.id], |row| Ok(queue_row(row)?.queue))
}

pub(crate) fn counts(session: &Session<'_>, name: &str) -> Result<JobCounts, Fault> {
    session.in_snapshot(|session| {
        let Some(found) = find(session, name)? else {
            return Ok(JobCounts::default());
        };
        let fresh = session.one(COUNT_FRESH, [found.id], |row| row.count("fresh"))?;
        let row = params![found.id, session.now];
        let (due, scheduled) = session.one(COUNT_WAITING, row, |row| {
            Ok((row.count("due")?, row.count("scheduled")?))
        })?;
        let running = u64::from(running(session, found.id)?);
        let (jobs, failed) = session.one(COUNT_ENDED, [found.id], |row| {
            Ok((row.count("jobs")?, row.count("failed")?))
        })?;
        // Each job is in one state.
        let others = fresh + due + scheduled + running + failed;
        Ok(JobCounts {
            ready: fresh + due,
            scheduled,
            running,
            completed: jobs.saturating_sub(others),
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
        has_groups: row.get("has_groups")?,
        queue: Queue {
            name: row.get(1)?,
            settings: QueueSettings {
                limit: row.get(2)?,
                group_limit: row.get("group_limit")?,
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
