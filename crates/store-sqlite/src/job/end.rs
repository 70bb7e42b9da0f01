//! Ends jobs: records the end, or deletes completed jobs in queues that do not keep them. Releases the job's key and deletes its note.

use crate::error::Fault;
use crate::row::Text;
use crate::session::Session;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text;
use leasehold_store::sql;
use rusqlite::params;
use std::cell::Cell;

const END: &str = sql!("job/end");
const ERROR: &str = sql!("job/note_set_error");
const EXISTING: &str = sql!("job/keys_or_notes_exist");
const KEY_RELEASE: &str = sql!("job/key_release");
const NOTE_DELETE: &str = sql!("job/note_delete");
const DELETE: &str = sql!("job/delete");
const ENDED: &str = sql!("job/ended_attempts");

/// The end of a job.
#[derive(Clone, Debug)]
pub(super) struct EndedJob<'a> {
    pub(super) job: i64,
    pub(super) queue: i64,
    pub(super) failed: bool,
    pub(super) attempts: u32,
    pub(super) token: i64,
    pub(super) run_at: Option<i64>,
    pub(super) started_at: Option<i64>,
    pub(super) worker: Option<&'a str>,
    pub(super) result: Option<&'a str>,
    /// The error; none keeps the error of the previous attempt.
    pub(super) error: Option<String>,
}

/// Records the job ends of one call.
pub(super) struct EndWriter<'a> {
    session: &'a Session<'a>,
    existing: Cell<Option<Existing>>,
}

/// Whether any keys or notes exist at all, read once in a call. Usually none do, and the lookup for each job is skipped.
#[derive(Clone, Copy)]
struct Existing {
    keys: bool,
    notes: bool,
}

impl<'a> EndWriter<'a> {
    pub(super) fn new(session: &'a Session<'a>) -> Self {
        Self {
            session,
            existing: Cell::new(None),
        }
    }

    /// Records how jobs ended.
    pub(super) fn record<'e>(
        &self,
        ends: impl IntoIterator<Item = EndedJob<'e>>,
    ) -> Result<(), Fault> {
        let existing = self.existing()?;
        self.session.with_statement(END, |statement| {
            for end in ends {
                let error_before = self.delete_key_and_note(end.job, existing)?;
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

    /// Deletes jobs.
    pub(super) fn delete(&self, jobs: impl IntoIterator<Item = i64>) -> Result<(), Fault> {
        let existing = self.existing()?;
        self.session.with_statement(DELETE, |statement| {
            for job in jobs {
                statement.execute([job])?;
                self.delete_key_and_note(job, existing)?;
            }
            Ok(())
        })
    }

    /// Releases the job's key if it holds until the job's end, deletes its note and returns the note's last error.
    fn delete_key_and_note(&self, job: i64, existing: Existing) -> Result<Option<String>, Fault> {
        if existing.keys {
            self.session.run(KEY_RELEASE, [job])?;
        }
        if !existing.notes {
            return Ok(None);
        }
        let error = self
            .session
            .optional(NOTE_DELETE, [job], |row| Ok(row.get(0)?))?;
        Ok(error.flatten())
    }

    fn existing(&self) -> Result<Existing, Fault> {
        if let Some(existing) = self.existing.get() {
            return Ok(existing);
        }
        let existing = self.session.one(EXISTING, [], |row| {
            Ok(Existing {
                keys: row.get(0)?,
                notes: row.get(1)?,
            })
        })?;
        self.existing.set(Some(existing));
        Ok(existing)
    }
}

/// Saves the error of a job that will be retried.
pub(super) fn save_error(session: &Session<'_>, job: i64, error: &str) -> Result<(), Fault> {
    session.run(ERROR, params![job, error]).map(|_| ())
}

/// Returns the attempts of an ended job; none if it has not ended.
pub(super) fn ended_attempts(session: &Session<'_>, job: i64) -> Result<Option<u32>, Fault> {
    session.optional(ENDED, [job], |row| Ok(row.get(0)?))
}

/// Truncates an error to the stored length.
pub(crate) fn clip_error(error: &str) -> String {
    text::clip(error, ERROR_MAX_CHARS)
}
