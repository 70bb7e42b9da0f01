//! Lines of fresh jobs (never claimed, due at once): runs of consecutive ids, appended at the end and claimed from the front.

use crate::error::Fault;
use crate::session::Session;
use leasehold_store::sql;
use rusqlite::params;

const FIRST: &str = sql!("job/line_first");
const FIND: &str = sql!("job/line_find");
const ADD: &str = sql!("job/line_add");
const BEGIN: &str = sql!("job/line_begin");
const END: &str = sql!("job/line_end");
const REMOVE: &str = sql!("job/line_remove");

/// Consecutive jobs of one queue and priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) queue: i64,
    pub(super) priority: i16,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Run {
    /// Creates a run of one job.
    pub(super) fn single(queue: i64, priority: i16, job: i64) -> Self {
        Self {
            queue,
            priority,
            first: job,
            last: job,
        }
    }

    /// Appends the next run if it follows directly in the same line.
    pub(super) fn try_extend(&mut self, next: &Run) -> bool {
        let follows = self.precedes(next);
        if follows {
            self.last = next.last;
        }
        follows
    }

    fn precedes(&self, next: &Run) -> bool {
        self.queue == next.queue && self.priority == next.priority && self.last + 1 == next.first
    }
}

/// Appends new jobs to their line.
pub(super) fn append(session: &Session<'_>, run: Run) -> Result<(), Fault> {
    // Ids only grow, so every run in the line starts before this one.
    match find(session, run.queue, run.priority, run.first)? {
        Some(tail) if tail.precedes(&run) => set_last(session, &tail, run.last),
        Some(_) | None => add(session, run),
    }
}

/// Returns the first runs of a queue in claim order, enough for `jobs` jobs if there are as many; the last may be longer.
pub(super) fn first(session: &Session<'_>, queue: i64, jobs: u32) -> Result<Vec<Run>, Fault> {
    session.with_statement(FIRST, |statement| {
        let mut rows = statement.query(params![queue, jobs])?;
        let (mut runs, mut left) = (Vec::new(), i64::from(jobs));
        while left > 0
            && let Some(row) = rows.next()?
        {
            let run = Run {
                queue,
                priority: row.get(0)?,
                first: row.get(1)?,
                last: row.get(2)?,
            };
            left -= run.last - run.first + 1;
            runs.push(run);
        }
        Ok(runs)
    })
}

/// Removes the jobs up to `last` from the front of a run.
pub(super) fn remove_front(session: &Session<'_>, run: &Run, last: i64) -> Result<(), Fault> {
    if last >= run.last {
        return delete(session, run);
    }
    let row = params![run.queue, run.priority, run.first, last + 1];
    session.run(BEGIN, row).map(|_| ())
}

/// Removes one job from its line; false if it is not there.
pub(super) fn remove(
    session: &Session<'_>,
    queue: i64,
    priority: i16,
    job: i64,
) -> Result<bool, Fault> {
    let Some(run) = find(session, queue, priority, job)?.filter(|run| run.last >= job) else {
        return Ok(false);
    };
    if run.first == job {
        remove_front(session, &run, job)?;
        return Ok(true);
    }
    set_last(session, &run, job - 1)?;
    if job < run.last {
        let first = job + 1;
        add(session, Run { first, ..run })?;
    }
    Ok(true)
}

fn find(session: &Session<'_>, queue: i64, priority: i16, job: i64) -> Result<Option<Run>, Fault> {
    session.optional(FIND, params![queue, priority, job], |row| {
        Ok(Run {
            queue,
            priority,
            first: row.get(0)?,
            last: row.get(1)?,
        })
    })
}

fn add(session: &Session<'_>, run: Run) -> Result<(), Fault> {
    let row = params![run.queue, run.priority, run.first, run.last];
    session.run(ADD, row).map(|_| ())
}

fn set_last(session: &Session<'_>, run: &Run, last: i64) -> Result<(), Fault> {
    let row = params![run.queue, run.priority, run.first, last];
    session.run(END, row).map(|_| ())
}

fn delete(session: &Session<'_>, run: &Run) -> Result<(), Fault> {
    let row = params![run.queue, run.priority, run.first];
    session.run(REMOVE, row).map(|_| ())
}
