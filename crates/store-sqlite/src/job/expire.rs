//! Requeues jobs whose lease has expired, or fails them when their attempts are used up.

use crate::error::Fault;
use crate::job::end::{self, EndWriter, EndedJob};
use crate::job::finish;
use crate::job::group::{self, GroupChanges};
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::job::wait;
use crate::notification::NotifyTarget;
use crate::queue::{QueueCache, QueueRow};
use crate::row::{NodeIndex, blob};
use crate::session::Session;
use leasehold_core::job::JobRef;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::ExpiredJob;
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::HashSet;

/// How many pages that cannot be read or changed one call passes.
const MAX_BROKEN: usize = 1_000;

const EXPIRED: &str = sql!("job/expired");
const EXPIRED_OF_QUEUE: &str = sql!("job/expired_of_queue");
const SPENT_INSERT: &str = sql!("node/spent_insert");

/// Requeues up to `limit` expired jobs of all queues.
pub(crate) fn requeue_expired(session: &Session<'_>, limit: u32) -> Result<Vec<ExpiredJob>, Fault> {
    let mut groups = GroupChanges::default();
    let expired = requeue_expired_of(session, None, limit, &mut groups)?;
    groups.write(session)?;
    Ok(expired)
}

/// Requeues the expired jobs that limit a claim, of one queue or of all. Returns whether there were any.
pub(super) fn requeue_expired_for_claim(
    session: &Session<'_>,
    queue: Option<i64>,
) -> Result<bool, Fault> {
    let mut groups = GroupChanges::default();
    let expired = requeue_expired_of(session, queue, SWEEP_MAX_BATCH, &mut groups)?;
    groups.write(session)?;
    Ok(!expired.is_empty())
}

/// Requeues the expired jobs that limit a claim of a queue with groups, and adds the changes to `groups`.
pub(super) fn requeue_expired_with_groups(
    session: &Session<'_>,
    queue: Option<i64>,
    groups: &mut GroupChanges,
) -> Result<(), Fault> {
    requeue_expired_of(session, queue, SWEEP_MAX_BATCH, groups).map(|_| ())
}

fn requeue_expired_of(
    session: &Session<'_>,
    queue: Option<i64>,
    limit: u32,
    groups: &mut GroupChanges,
) -> Result<Vec<ExpiredJob>, Fault> {
    let most = usize::try_from(limit.min(SWEEP_MAX_BATCH)).unwrap_or(usize::MAX);
    let mut queues = QueueCache::new(session);
    let (mut taken, mut tried) = (Vec::new(), HashSet::new());
    // Pages that cannot be read or changed do not hide others, and do not count towards the limit.
    while taken.len() < most && tried.len() < most + MAX_BROKEN {
        let pages = expired_pages(session, queue, most - taken.len(), &tried)?;
        if pages.is_empty() {
            break;
        }
        for (token, page) in pages {
            if taken.len() >= most {
                break;
            }
            let left = most - taken.len();
            let expired = session.isolated(format_args!("job_lease {token}"), || {
                requeue_page(session, &mut queues, page?, left)
            })?;
            if let Some((expired, changes)) = expired {
                taken.extend(expired);
                groups.append(changes);
            }
            tried.insert(token);
        }
    }
    if !taken.is_empty() {
        session.notify(NotifyTarget::Workers);
    }
    Ok(taken)
}

/// The token of a page, and the page or why it cannot be read.
type ReadPage = (i64, Result<Page, Fault>);

/// Returns pages with an expired lease that were not tried yet.
fn expired_pages(
    session: &Session<'_>,
    queue: Option<i64>,
    most: usize,
    tried: &HashSet<i64>,
) -> Result<Vec<ReadPage>, Fault> {
    let most = i64::try_from(most + tried.len()).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| Ok((row.get(0)?, lease::read(row)));
    let mut pages = match queue {
        None => session.all(EXPIRED, params![session.now, most], read)?,
        Some(queue) => session.all(EXPIRED_OF_QUEUE, params![session.now, most, queue], read)?,
    };
    pages.retain(|(token, _)| !tried.contains(token));
    Ok(pages)
}

/// Requeues or fails up to `most` expired jobs of a page.
fn requeue_page(
    session: &Session<'_>,
    queues: &mut QueueCache<'_>,
    mut page: Page,
    most: usize,
) -> Result<(Vec<ExpiredJob>, GroupChanges), Fault> {
    let mut groups = GroupChanges::default();
    let expired = expired_of(&mut page, session.now, most);
    lease::write_back(session, &page)?;
    let queue = queues.get(page.queue)?;
    let mut taken = Vec::with_capacity(expired.len());
    for entry in expired {
        if let Some(status) = requeue_or_fail(session, queue, &page, &entry, &mut groups)? {
            taken.push(ExpiredJob {
                claim: JobRef {
                    job: JobId(entry.job),
                    token: page.token,
                },
                queue: queue.queue.name.clone(),
                worker: page.worker.clone(),
                status,
            });
        }
    }
    Ok((taken, groups))
}

/// Removes up to `most` expired leases from a page.
fn expired_of(page: &mut Page, now: i64, most: usize) -> Vec<Entry> {
    let mut expired = Vec::new();
    page.entries.retain(|entry| {
        let is_expired = entry.ends_at <= now && expired.len() < most;
        if is_expired {
            expired.push(*entry);
        }
        !is_expired
    });
    expired
}

/// Returns the new status of a job; none if somebody deleted the job.
fn requeue_or_fail(
    session: &Session<'_>,
    queue: &QueueRow,
    page: &Page,
    entry: &Entry,
    groups: &mut GroupChanges,
) -> Result<Option<JobStatus>, Fault> {
    let error = end::clip_error(&format!("the lease of {} expired", page.worker));
    let Some((header, overrides)) = finish::job_header(session, entry.job)? else {
        // Deletes its key and its note.
        EndWriter::new(session).delete([entry.job])?;
        if let Some(limit) = queue.settings().group_limit {
            groups.lost(page.queue, limit);
        }
        return Ok(None);
    };
    if queue.settings().group_limit.is_some() {
        groups.ended(entry.job, page.queue, header.group());
    }
    let retry = queue
        .settings()
        .retry_of(overrides.max_attempts, overrides.backoff);
    if entry.attempt < retry.max_attempts {
        end::save_error(session, entry.job, &error)?;
        wait::add(
            session,
            &header.waiting(session.now, entry.attempt, page.token),
        )?;
        if header.group() != group::NONE {
            groups.due(entry.job, page.queue, header.group());
        }
        return Ok(Some(JobStatus::Queued));
    }
    if let Some(node) = header.node {
        let row = params![
            blob(node.execution),
            NodeIndex(node.index),
            entry.attempt,
            error
        ];
        session.run(SPENT_INSERT, row)?;
    }
    let end = EndedJob {
        job: entry.job,
        queue: page.queue,
        failed: true,
        attempts: entry.attempt,
        token: page.token,
        run_at: entry.run_at,
        started_at: Some(page.claimed_at),
        worker: Some(&page.worker),
        result: None,
        error: Some(error),
    };
    EndWriter::new(session).record([end])?;
    Ok(Some(JobStatus::Failed))
}
