//! The groups of a queue's jobs: which of them are in the round, in which order, and how many jobs of each run. Knows no jobs.

use crate::error::Fault;
use crate::row::Text;
use crate::session::Session;
use leasehold_store::sql;
use rusqlite::params;
use std::collections::{BTreeMap, HashMap, HashSet};

const JOIN: &str = sql!("job/group_join");
const END: &str = sql!("job/group_end");
const TAKE: &str = sql!("job/group_take");
const LEAVE: &str = sql!("job/group_leave");
const DELETE: &str = sql!("job/group_delete");
const ROUND: &str = sql!("job/group_round");
const BEGIN: &str = sql!("job/group_begin");
const BLOCKED: &str = sql!("job/group_blocked");
const UNCOUNT: &str = sql!("job/group_uncount");
const COUNT: &str = sql!("job/group_count");
const LIMIT: &str = sql!("job/group_limit");
const DELETE_IDLE: &str = sql!("job/group_delete_idle");

/// The group of jobs without one.
pub(super) const NONE: &str = "";

/// A group of the round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadyGroup {
    pub(super) name: String,
    /// How many more of its jobs may run; none is no limit.
    pub(super) room: Option<u32>,
}

/// Records that the queue has groups.
pub(super) fn begin(session: &Session<'_>, queue: i64) -> Result<(), Fault> {
    session.run(BEGIN, [queue]).map(|_| ())
}

/// Records that a job of the group is due.
pub(super) fn join(session: &Session<'_>, queue: i64, group: &str) -> Result<(), Fault> {
    session.run(JOIN, params![queue, Text(group)]).map(|_| ())
}

/// Takes the group out of the round, unless it has a ready job.
pub(super) fn leave(session: &Session<'_>, queue: i64, group: &str) -> Result<(), Fault> {
    session.run(LEAVE, params![queue, Text(group)])?;
    delete(session, queue, group)
}

/// Records that a claim took `jobs` of the group's jobs, and whether it may have more.
pub(super) fn take(
    session: &Session<'_>,
    queue: i64,
    group: &str,
    jobs: u32,
    more: bool,
) -> Result<(), Fault> {
    session.run(TAKE, params![queue, Text(group), jobs, more])?;
    delete(session, queue, group)
}

fn delete(session: &Session<'_>, queue: i64, group: &str) -> Result<(), Fault> {
    session.run(DELETE, params![queue, Text(group)]).map(|_| ())
}

/// Returns the first groups of the round.
pub(super) fn round(
    session: &Session<'_>,
    queue: i64,
    most: u32,
) -> Result<Vec<ReadyGroup>, Fault> {
    session.all(ROUND, params![queue, most], |row| {
        Ok(ReadyGroup {
            name: row.get(0)?,
            room: row.get(1)?,
        })
    })
}

/// Applies a new `group_limit`: counts what runs, and moves groups into and out of the round. Groups that join do so in the order of their names.
pub(crate) fn apply_limit(
    session: &Session<'_>,
    queue: i64,
    limit: Option<u32>,
) -> Result<(), Fault> {
    session.run(UNCOUNT, [queue])?;
    if let Some(limit) = limit {
        begin(session, queue)?;
        session.run(COUNT, [queue])?;
        session.run(LIMIT, params![queue, limit])?;
    }
    let blocked: Vec<String> = session.all(BLOCKED, [queue], |row| Ok(row.get(0)?))?;
    for group in blocked {
        join(session, queue, &group)?;
    }
    session.run(DELETE_IDLE, [queue]).map(|_| ())
}

/// What one call changed: jobs that became due, and leases that ended. Written at its end, because the order in which groups join must not depend on the
/// order of the call: first by the jobs that are due, then by those that ended.
#[derive(Debug, Default)]
pub(super) struct GroupChanges {
    due: Vec<Change>,
    ended: Vec<Change>,
    /// Queues with a `group_limit` in which the job of an ended lease was deleted by hand, so its group is not known.
    lost: BTreeMap<i64, u32>,
}

/// A job's queue and group, ordered by the job.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    job: i64,
    queue: i64,
    group: String,
}

impl GroupChanges {
    /// Records that a job with a group is due.
    pub(super) fn due(&mut self, job: i64, queue: i64, group: &str) {
        let group = group.to_owned();
        self.due.push(Change { job, queue, group });
    }

    /// Records that a lease has ended in a queue with a `group_limit`.
    pub(super) fn ended(&mut self, job: i64, queue: i64, group: &str) {
        let group = group.to_owned();
        self.ended.push(Change { job, queue, group });
    }

    /// Records that a lease has ended in a queue with this `group_limit`, and that its job was deleted by hand.
    pub(super) fn lost(&mut self, queue: i64, limit: u32) {
        self.lost.insert(queue, limit);
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.due.append(&mut other.due);
        self.ended.append(&mut other.ended);
        self.lost.append(&mut other.lost);
    }

    /// Writes the changes, after the pages of leases.
    pub(super) fn write(mut self, session: &Session<'_>) -> Result<(), Fault> {
        self.due.sort_unstable();
        let mut seen = HashSet::new();
        for Change { queue, group, .. } in &self.due {
            if seen.insert((*queue, group)) {
                join(session, *queue, group)?;
            }
        }
        self.ended.sort_unstable();
        let mut ended: HashMap<(i64, &str), u32> = HashMap::new();
        for Change { queue, group, .. } in &self.ended {
            *ended.entry((*queue, group.as_str())).or_default() += 1;
        }
        for Change { queue, group, .. } in &self.ended {
            if let Some(jobs) = ended.remove(&(*queue, group.as_str())) {
                session.run(END, params![queue, Text(group), jobs])?;
                delete(session, *queue, group)?;
            }
        }
        for (queue, limit) in self.lost {
            apply_limit(session, queue, Some(limit))?;
        }
        Ok(())
    }
}
