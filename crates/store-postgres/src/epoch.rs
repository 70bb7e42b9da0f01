//! The epoch of each connection: recognizes the history of the server that the connection reached, and opens its epoch in the database if it is
//! unknown. Repeats an operation whose epoch has ended. Knows no pool. docs/adr/0025-epochs-and-schema.md explains the design.

use crate::error::is_other_epoch;
use crate::param::Params;
use crate::session::Session;
use leasehold_core::Timestamp;
use leasehold_store::{EpochId, Result, sql};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Row};

type Driver<T> = std::result::Result<T, Error>;

const OPEN: &str = sql!("epoch/open");
/// What the process is recorded as.
const PROGRAM: &str = concat!("leasehold ", env!("CARGO_PKG_VERSION"));

/// An epoch as a connection carries it. The history of a server never changes while a connection to it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) id: EpochId,
    /// Added to transaction numbers in jobs.
    pub(crate) job_xid_offset: i64,
    /// Events with lower ids have transaction numbers of another cluster.
    pub(crate) first_event: i64,
    /// What a transaction behind a pooler compares: a server process never changes its history.
    pub(crate) server: Server,
}

/// A server process, and the database in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) started_at: Timestamp,
    pub(crate) database: u32,
}

/// The epochs that this process has met.
#[derive(Debug)]
pub(crate) struct Epochs {
    latest: Mutex<Latest>,
    /// The id of the latest epoch; 0 for none.
    current: AtomicI64,
    /// An epoch that ended under a connection to a pooler; 0 for none.
    ended: AtomicI64,
    /// Whether the process may open epochs.
    opens: bool,
}

#[derive(Debug, Default)]
struct Latest {
    /// The server's history as a connection read it, and its epoch.
    known: Option<(String, Epoch)>,
    seen: Seen,
}

/// How far this process has seen the latest epoch: a database that has not come as far lost a part of its history.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The end of a snapshot.
    xid: i64,
    job: i64,
}

/// What a new connection reads of its server.
pub(crate) struct Identity {
    /// None on a standby.
    history: Option<(String, Server)>,
    snapshot_end: i64,
}

impl Identity {
    /// Reads the row of `sql/session/identity.sql`.
    pub(crate) fn read(answer: &[Row]) -> Self {
        let row = answer.first();
        Self {
            history: row.and_then(history),
            snapshot_end: row.map_or(0, |row| row.get("snapshot_end")),
        }
    }

    /// Whether the server accepts no writes.
    pub(crate) fn is_standby(&self) -> bool {
        self.history.is_none()
    }
}

fn history(row: &Row) -> Option<(String, Server)> {
    let server = Server {
        started_at: row.get("server_started_at"),
        database: row.get("database"),
    };
    Some((row.get::<_, Option<String>>("identity")?, server))
}

impl Epochs {
    pub(crate) fn new(opens: bool) -> Self {
        Self {
            latest: Mutex::default(),
            current: AtomicI64::new(0),
            ended: AtomicI64::new(0),
            opens,
        }
    }

    /// Returns the epoch that this process met last.
    pub(crate) fn current(&self) -> Option<EpochId> {
        let id = self.current.load(Ordering::Acquire);
        (id != 0).then_some(EpochId(id))
    }

    /// Whether the epoch of a connection is not that of the present.
    pub(crate) fn is_over(&self, epoch: Epoch) -> bool {
        let id = epoch.id.0;
        self.current.load(Ordering::Acquire) != id || self.ended.load(Ordering::Acquire) == id
    }

    /// Remembers that a pooler has led a connection of this epoch to another server. The next new connection meets the epoch of that.
    pub(crate) fn end(&self, epoch: Epoch) {
        self.ended.store(epoch.id.0, Ordering::Release);
    }

    /// Whether the process opens epochs.
    pub(crate) fn opens(&self) -> bool {
        self.opens
    }

    /// Remembers the end of a snapshot of this epoch.
    pub(crate) fn saw_snapshot(&self, epoch: Option<Epoch>, end: i64) {
        self.saw(epoch, |seen| seen.xid = seen.xid.max(end));
    }

    /// Remembers the id of a job that was enqueued in this epoch.
    pub(crate) fn saw_job(&self, epoch: Option<Epoch>, id: i64) {
        self.saw(epoch, |seen| seen.job = seen.job.max(id));
    }

    fn saw(&self, epoch: Option<Epoch>, note: impl FnOnce(&mut Seen)) {
        let mut latest = self.latest();
        if latest.known.as_ref().map(|(_, known)| *known) == epoch {
            note(&mut latest.seen);
        }
    }

    /// Returns the epoch of a connection; opens it if it is unknown. None: the database has no schema yet, or this process opens no epochs.
    pub(crate) async fn of(
        &self,
        session: Session<'_>,
        identity: &Identity,
    ) -> Driver<Option<Epoch>> {
        let Some((history, server)) = identity.history.as_ref().filter(|_| self.opens) else {
            return Ok(None);
        };
        let seen = {
            let mut latest = self.latest();
            match &latest.known {
                Some((known, epoch)) if known == history => {
                    let epoch = *epoch;
                    latest.seen.xid = latest.seen.xid.max(identity.snapshot_end);
                    self.met(epoch);
                    return Ok(Some(epoch));
                }
                _ => latest.seen,
            }
        };
        let by = format!("{PROGRAM}, process {}", std::process::id());
        let params: &Params<'_> = &[&by, &seen.xid, &seen.job];
        let rows = match session.once(OPEN, params).await {
            Err(error) if is_unmigrated(&error) => return Ok(None),
            rows => rows?,
        };
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let epoch = Epoch {
            id: EpochId(row.get("id")),
            job_xid_offset: row.get("job_xid_offset"),
            first_event: row.get("first_event_id"),
            server: *server,
        };
        if row.get("opened") {
            let cause: &str = row.get("cause");
            tracing::info!(cause, epoch = epoch.id.0, "epoch of the database opened");
        }
        self.entered(history, epoch, identity.snapshot_end);
        Ok(Some(epoch))
    }

    fn entered(&self, history: &str, epoch: Epoch, snapshot_end: i64) {
        let mut latest = self.latest();
        // Another connection may have met the epoch meanwhile, and seen more of it.
        if latest
            .known
            .as_ref()
            .is_none_or(|(known, _)| known != history)
        {
            latest.seen = Seen::default();
        }
        latest.seen.xid = latest.seen.xid.max(snapshot_end);
        latest.known = Some((history.to_owned(), epoch));
        self.current.store(epoch.id.0, Ordering::Release);
        self.met(epoch);
    }

    /// Notes that a server has this epoch.
    fn met(&self, epoch: Epoch) {
        let (id, ordering) = (epoch.id.0, Ordering::AcqRel);
        // Fails if another epoch has ended, or none.
        let _ = self
            .ended
            .compare_exchange(id, 0, ordering, Ordering::Relaxed);
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs an operation, and runs it again if its epoch ended before its first transaction: behind a pooler that changed nothing, and the process did not
/// know. Between two transactions it repeats only what may be repeated.
pub(crate) async fn repeated<T, F: Future<Output = Result<T>>>(
    operation: impl Fn() -> F,
) -> Result<T> {
    match operation().await {
        Err(error) if is_other_epoch(&error) => operation().await,
        outcome => outcome,
    }
}

/// Whether the database has no schema of Leasehold yet, or one without epochs.
fn is_unmigrated(error: &Error) -> bool {
    let missing = [
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_TABLE,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    error.code().is_some_and(|code| missing.contains(code))
}
