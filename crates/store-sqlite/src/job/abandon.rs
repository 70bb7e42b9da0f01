//! Failing jobs that are no longer wanted: queued ones, and for nodes of a graph that has ended also those that workers have.

use crate::error::Fault;
use crate::job::end::{self, End, Ends};
use crate::job::finish::{self, Of};
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::job::{line, wait};
use crate::session::Session;
use crate::wake::Ring;
use leasehold_store::graph::ABANDONED;
use leasehold_store::sql;
use std::collections::{BTreeMap, HashMap};

const WAITING: &str = sql!("job/waiting");

/// Fails the jobs of nodes, wherever they are; a worker that has one has lost its lease. Says how often each was tried; one that is
/// no longer kept is left out.
pub(crate) fn abandon(session: &Session<'_>, jobs: &[i64]) -> Result<HashMap<i64, u32>, Fault> {
    let mut attempts = HashMap::new();
    let mut ends = Vec::new();
    let mut leased: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for &job in jobs {
        let Some((of, _)) = finish::of(session, job)? else {
            continue;
        };
        if let Some(ended) = end::ended(session, job)? {
            attempts.insert(job, ended);
        } else if let Some(end) = take_queued(session, &of, ABANDONED)? {
            ends.push(end);
        } else {
            leased.entry(of.queue).or_default().push(job);
        }
    }
    let mut pages = Vec::new();
    for (queue, jobs) in &leased {
        pages.extend(take_leased(session, *queue, jobs)?);
        session.ring(Ring::Workers);
    }
    for (page, taken) in &pages {
        ends.extend(taken.iter().map(|entry| End {
            job: entry.job,
            queue: page.queue,
            failed: true,
            attempts: entry.attempt,
            token: page.token,
            run_at: entry.run_at,
            started_at: Some(page.claimed_at),
            worker: Some(&page.worker),
            result: None,
            error: Some(ABANDONED.to_owned()),
        }));
    }
    attempts.extend(ends.iter().map(|end| (end.job, end.attempts)));
    if !ends.is_empty() {
        Ends::of(session).keep(ends)?;
    }
    Ok(attempts)
}

/// Takes a job out of where it waits, and says how it ended; none if it is not queued.
pub(super) fn take_queued(
    session: &Session<'_>,
    of: &Of,
    error: &str,
) -> Result<Option<End<'static>>, Fault> {
    let mut ended = End {
        job: of.job.0,
        queue: of.queue,
        failed: true,
        attempts: 0,
        token: 0,
        run_at: None,
        started_at: None,
        worker: None,
        result: None,
        error: Some(error.to_owned()),
    };
    let waited = session.maybe(WAITING, [of.job.0], |row| {
        ended.run_at = row.get(0)?;
        ended.attempts = row.get(1)?;
        ended.token = row.get(2)?;
        Ok(())
    })?;
    let queued = match waited {
        Some(()) => wait::remove(session, of.job.0)?,
        None => line::take_out(session, of.queue, of.priority, of.job.0)?,
    };
    Ok(queued.then_some(ended))
}

/// Takes the leases of these jobs from whoever has them.
fn take_leased(
    session: &Session<'_>,
    queue: i64,
    jobs: &[i64],
) -> Result<Vec<(Page, Vec<Entry>)>, Fault> {
    let mut touched = Vec::new();
    for mut page in lease::of_nodes(session, queue)? {
        let taken: Vec<Entry> = page
            .entries
            .extract_if(.., |entry| jobs.contains(&entry.job))
            .collect();
        if !taken.is_empty() {
            lease::put(session, &page)?;
            touched.push((page, taken));
        }
    }
    Ok(touched)
}
