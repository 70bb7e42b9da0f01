//! Fails jobs that are no longer needed: queued jobs, and for the nodes of an ended graph running jobs too.

use crate::error::Fault;
use crate::job::end::{self, EndWriter, EndedJob};
use crate::job::finish::{self, JobHeader};
use crate::job::group::GroupChanges;
use crate::job::lease::{self, Page};
use crate::job::page::Entry;
use crate::job::{line, wait};
use crate::notification::NotifyTarget;
use crate::session::Session;
use leasehold_store::graph::ABANDONED;
use leasehold_store::sql;
use std::collections::{BTreeMap, HashMap};

const WAITING: &str = sql!("job/waiting_get");

/// Ends the jobs of nodes, queued or running: deletes those that were never claimed, and fails the others; a worker that runs one loses its
/// lease. Returns the attempts of each job, without deleted jobs.
pub(crate) fn abandon(session: &Session<'_>, jobs: &[i64]) -> Result<HashMap<i64, u32>, Fault> {
    let mut attempts = HashMap::new();
    let mut ends = Vec::new();
    let mut never_claimed = Vec::new();
    let mut leased: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut leased_groups: HashMap<i64, String> = HashMap::new();
    for &job in jobs {
        let Some((header, _)) = finish::job_header(session, job)? else {
            continue;
        };
        if let Some(ended) = end::ended_attempts(session, job)? {
            attempts.insert(job, ended);
        } else if let Some(end) = remove_queued(session, &header, ABANDONED)? {
            match end.token {
                0 => never_claimed.push(job),
                _ => ends.push(end),
            }
        } else {
            leased_groups.insert(job, header.group().to_owned());
            leased.entry(header.queue).or_default().push(job);
        }
    }
    let mut pages = Vec::new();
    for (queue, jobs) in &leased {
        pages.extend(revoke_leases(session, *queue, jobs)?);
        session.notify(NotifyTarget::Workers);
    }
    let mut groups = GroupChanges::default();
    for (page, taken) in &pages {
        for entry in taken {
            if let Some(group) = leased_groups.get(&entry.job) {
                groups.ended(entry.job, page.queue, group);
            }
        }
    }
    groups.write(session)?;
    for (page, taken) in &pages {
        ends.extend(taken.iter().map(|entry| EndedJob {
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
    let writer = EndWriter::new(session);
    if !ends.is_empty() {
        writer.record(ends)?;
    }
    if !never_claimed.is_empty() {
        writer.delete(never_claimed)?;
    }
    Ok(attempts)
}

/// Removes a job from its queue and returns its end; none if it is not queued.
pub(super) fn remove_queued(
    session: &Session<'_>,
    header: &JobHeader,
    error: &str,
) -> Result<Option<EndedJob<'static>>, Fault> {
    let mut ended = EndedJob {
        job: header.job.0,
        queue: header.queue,
        failed: true,
        attempts: 0,
        token: 0,
        run_at: None,
        started_at: None,
        worker: None,
        result: None,
        error: Some(error.to_owned()),
    };
    let waiting = session.optional(WAITING, [header.job.0], |row| {
        ended.run_at = row.get(0)?;
        ended.attempts = row.get(1)?;
        ended.token = row.get(2)?;
        Ok(())
    })?;
    let queued = match waiting {
        Some(()) => wait::remove(session, header.job.0)?,
        None => line::remove(session, header.queue, header.priority, header.job.0)?,
    };
    Ok(queued.then_some(ended))
}

/// Revokes the leases of these jobs.
fn revoke_leases(
    session: &Session<'_>,
    queue: i64,
    jobs: &[i64],
) -> Result<Vec<(Page, Vec<Entry>)>, Fault> {
    let mut changed = Vec::new();
    for mut page in lease::of_nodes(session, queue)? {
        let taken: Vec<Entry> = page
            .entries
            .extract_if(.., |entry| jobs.contains(&entry.job))
            .collect();
        if !taken.is_empty() {
            lease::write_back(session, &page)?;
            changed.push((page, taken));
        }
    }
    Ok(changed)
}
