//! The lines of jobs that no worker ever had: runs of neighbouring ids, appended at the end and claimed from the front.

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

/// Neighbouring jobs of one queue and priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) queue: i64,
    pub(super) priority: i16,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Run {
    /// The run of one job.
    pub(super) fn of(queue: i64, priority: i16, job: i64) -> Self {
        Self {
            queue,
            priority,
            first: job,
            last: job,
        }
    }

    /// Takes the next run in, if it is a neighbour in the same line.
    pub(super) fn grow(&mut self, next: &Run) -> bool {
        let fits = self.is_before(next);
        if fits {
            self.last = next.last;
        }
        fits
    }

    fn is_before(&self, next: &Run) -> bool {
        self.queue == next.queue && self.priority == next.priority && self.last + 1 == next.first
    }
}

/// Puts new jobs at the end of their line.
pub(super) fn append(session: &Session<'_>, run: Run) -> Result<(), Fault> {
    // Ids only rise, so whatever is in the line begins before.
    match find(session, run.queue, run.priority, run.first)? {
        Some(tail) if tail.is_before(&run) => set_last(session, &tail, run.last),
        Some(_) | None => add(session, run),
    }
}

/// The first runs of a queue's lines in the order of claiming, enough for `jobs` jobs if there are as many; the last may be longer.
pub(super) fn first(session: &Session<'_>, queue: i64, jobs: u32) -> Result<Vec<Run>, Fault> {
    session.often(FIRST, |statement| {
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

/// Takes the jobs up to `last` off the front of a run.
pub(super) fn take(session: &Session<'_>, run: &Run, last: i64) -> Result<(), Fault> {
    if last >= run.last {
        return remove(session, run);
    }
    let row = params![run.queue, run.priority, run.first, last + 1];
    session.run(BEGIN, row).map(|_| ())
}

/// Takes one job out of its line; false if it is not in it.
pub(super) fn take_out(
    session: &Session<'_>,
    queue: i64,
    priority: i16,
    job: i64,
) -> Result<bool, Fault> {
    let Some(run) = find(session, queue, priority, job)?.filter(|run| run.last >= job) else {
        return Ok(false);
    };
    if run.first == job {
        take(session, &run, job)?;
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
    session.maybe(FIND, params![queue, priority, job], |row| {
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

fn remove(session: &Session<'_>, run: &Run) -> Result<(), Fault> {
    let row = params![run.queue, run.priority, run.first];
    session.run(REMOVE, row).map(|_| ())
}
