//! Taking back jobs whose lease has expired: queued again at once, or failed where their attempts are used up.

use crate::error::Fault;
use crate::job::end::{self, End, Ends};
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::job::wait;
use crate::job::{finish, wish};
use crate::queue::{Known, Seen};
use crate::row::{Place, blob};
use crate::session::Session;
use crate::wake::Ring;
use leasehold_core::job::JobRef;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::ExpiredJob;
use leasehold_store::sql;
use rusqlite::params;

const EXPIRED: &str = sql!("job/expired");
const EXPIRED_OF_QUEUE: &str = sql!("job/expired_of_queue");
const SPEND: &str = sql!("node/spend");

/// Up to `limit` jobs of all queues.
pub(crate) fn take_back(session: &Session<'_>, limit: u32) -> Result<Vec<ExpiredJob>, Fault> {
    take_back_of(session, None, limit)
}

/// What stands in the way of a claim, of one queue or of all; says whether there was anything.
pub(super) fn take_back_for_claim(
    session: &Session<'_>,
    queue: Option<i64>,
) -> Result<bool, Fault> {
    Ok(!take_back_of(session, queue, SWEEP_MAX_BATCH)?.is_empty())
}

fn take_back_of(
    session: &Session<'_>,
    queue: Option<i64>,
    limit: u32,
) -> Result<Vec<ExpiredJob>, Fault> {
    let limit = limit.min(SWEEP_MAX_BATCH);
    let pages = match queue {
        None => session.all(EXPIRED, params![session.now, limit], lease::read)?,
        Some(queue) => session.all(
            EXPIRED_OF_QUEUE,
            params![session.now, limit, queue],
            lease::read,
        )?,
    };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut seen = Seen::by(session);
    let mut taken = Vec::new();
    for mut page in pages {
        if taken.len() >= most {
            break;
        }
        let left = most - taken.len();
        let expired = expired_of(&mut page, session.now, left);
        lease::put(session, &page)?;
        let queue = seen.get(page.queue)?;
        for entry in expired {
            let status = place(session, queue, &page, &entry)?;
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
    if !taken.is_empty() {
        session.ring(Ring::Workers);
    }
    Ok(taken)
}

/// Takes up to `most` expired leases out of a page.
fn expired_of(page: &mut Page, now: i64, most: usize) -> Vec<Entry> {
    let mut expired = Vec::new();
    page.entries.retain(|entry| {
        let goes = entry.ends_at <= now && expired.len() < most;
        if goes {
            expired.push(*entry);
        }
        !goes
    });
    expired
}

fn place(
    session: &Session<'_>,
    queue: &Known,
    page: &Page,
    entry: &Entry,
) -> Result<JobStatus, Fault> {
    let error = end::kept(&format!("the lease of {} expired", page.worker));
    let wishes = finish::of(session, entry.job)?;
    if let Some((of, wishes)) = wishes {
        let wish::Wishes {
            max_attempts,
            backoff,
        } = wishes;
        let retry = queue.settings().retry_of(max_attempts, backoff);
        if entry.attempt < retry.max_attempts {
            end::note(session, entry.job, &error)?;
            wait::add(session, &of.waiting(session.now, entry.attempt, page.token))?;
            return Ok(JobStatus::Queued);
        }
        if let Some(node) = of.node {
            let row = params![
                blob(node.execution),
                Place(node.place),
                entry.attempt,
                error
            ];
            session.run(SPEND, row)?;
        }
    }
    let end = End {
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
    Ends::of(session).keep([end])?;
    Ok(JobStatus::Failed)
}
