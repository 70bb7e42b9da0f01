//! The end of a job: written down or, where completed jobs are not kept, forgotten; its key and progress go with it.

use crate::error::Fault;
use crate::row::Text;
use crate::session::Session;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text;
use leasehold_store::sql;
use rusqlite::params;
use std::cell::Cell;

const END: &str = sql!("job/end");
const ERROR: &str = sql!("job/error");
const SAID: &str = sql!("job/said");
const KEY_RELEASE: &str = sql!("job/key_release");
const NOTE_DELETE: &str = sql!("job/note_delete");
const DELETE: &str = sql!("job/delete");
const ENDED: &str = sql!("job/ended");

/// A job's end.
#[derive(Clone, Debug)]
pub(super) struct End<'a> {
    pub(super) job: i64,
    pub(super) queue: i64,
    pub(super) failed: bool,
    pub(super) attempts: u32,
    pub(super) token: i64,
    pub(super) run_at: Option<i64>,
    pub(super) started_at: Option<i64>,
    pub(super) worker: Option<&'a str>,
    pub(super) result: Option<&'a str>,
    /// What went wrong now; none leaves what went wrong last.
    pub(super) error: Option<String>,
}

/// Writes the ends of one call.
pub(super) struct Ends<'a> {
    session: &'a Session<'a>,
    said: Cell<Option<Said>>,
}

/// Whether there is anything to forget at all, asked once a call: mostly there is not, and then no job's is looked for.
#[derive(Clone, Copy)]
struct Said {
    keys: bool,
    notes: bool,
}

impl<'a> Ends<'a> {
    pub(super) fn of(session: &'a Session<'a>) -> Self {
        Self {
            session,
            said: Cell::new(None),
        }
    }

    /// Writes down how jobs ended.
    pub(super) fn keep<'e>(&self, ends: impl IntoIterator<Item = End<'e>>) -> Result<(), Fault> {
        let said = self.said()?;
        self.session.often(END, |statement| {
            for end in ends {
                let error_before = self.forget_what_was_said(end.job, said)?;
                statement.execute(params![
                    end.job,
                    end.queue,
                    end.failed,
                    end.attempts,
                    end.token,
                    end.run_at,
                    end.started_at,
                    self.session.now,
                    end.worker.map(Text),
                    end.result.map(Text),
                    end.error.or(error_before)
                ])?;
            }
            Ok(())
        })
    }

    /// Deletes jobs that are not kept.
    pub(super) fn forget(&self, jobs: impl IntoIterator<Item = i64>) -> Result<(), Fault> {
        let said = self.said()?;
        self.session.often(DELETE, |statement| {
            for job in jobs {
                statement.execute([job])?;
                self.forget_what_was_said(job, said)?;
            }
            Ok(())
        })
    }

    /// Its key, if held for so long, and what was remembered of it. Returns what went wrong with it last.
    fn forget_what_was_said(&self, job: i64, said: Said) -> Result<Option<String>, Fault> {
        if said.keys {
            self.session.run(KEY_RELEASE, [job])?;
        }
        if !said.notes {
            return Ok(None);
        }
        let error = self
            .session
            .maybe(NOTE_DELETE, [job], |row| Ok(row.get(0)?))?;
        Ok(error.flatten())
    }

    fn said(&self) -> Result<Said, Fault> {
        if let Some(said) = self.said.get() {
            return Ok(said);
        }
        let said = self.session.one(SAID, [], |row| {
            Ok(Said {
                keys: row.get(0)?,
                notes: row.get(1)?,
            })
        })?;
        self.said.set(Some(said));
        Ok(said)
    }
}

/// Keeps what went wrong with a job that is tried again.
pub(super) fn note(session: &Session<'_>, job: i64, error: &str) -> Result<(), Fault> {
    session.run(ERROR, params![job, error]).map(|_| ())
}

/// After how many attempts a job ended; none if it has not.
pub(super) fn ended(session: &Session<'_>, job: i64) -> Result<Option<u32>, Fault> {
    session.maybe(ENDED, [job], |row| Ok(row.get(0)?))
}

/// What is kept of an error.
pub(crate) fn kept(error: &str) -> String {
    text::clip(error, ERROR_MAX_CHARS)
}
