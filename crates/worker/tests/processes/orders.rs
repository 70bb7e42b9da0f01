//! What a test and the processes it starts say to each other: orders on the way in, one JSON line an event on the way out. Runs nothing.

use leasehold_core::JobId;
use leasehold_store::Store;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_worker::Stats;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) place: Place,
    pub(crate) queues: Vec<String>,
    /// Its workers are called after it, with a number.
    pub(crate) name: String,
    pub(crate) workers: usize,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    /// How often expired leases are looked for.
    pub(crate) sweep: Duration,
    pub(crate) behaviour: Behaviour,
    /// Whether what is said of each job is left out.
    pub(crate) quiet: bool,
}

/// Where the jobs are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Place {
    Postgres { url: String },
    Sqlite { file: PathBuf },
}

/// What handlers do with jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Behaviour {
    /// Complete them at once.
    Finish,
    /// Work on them and never end.
    Hold,
    /// Every second one ends after so long by itself, the others never. However a handler ends, its claim is shown to the store once more, to
    /// renew it, to end it and to report progress, past the worker.
    Defy { ends_after: Duration },
    /// What each one's payload says.
    AsTold,
    /// Anything, over a connection that loses and delays renewals and ends.
    Chance,
}

/// What a payload says.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    /// How long the work takes.
    pub(crate) takes: Duration,
    /// Whether the first attempt fails.
    pub(crate) fails_once: bool,
    /// Whether the first attempt never ends.
    pub(crate) hangs_once: bool,
}

/// What a process says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Said {
    /// Its workers run.
    Ready {
        /// The time that it believes in, in seconds since 1970.
        clock: i64,
    },
    /// A handler began.
    Started {
        job: JobId,
        token: i64,
        attempt: u32,
        worker: String,
    },
    /// A handler answered.
    Answered { job: JobId, token: i64 },
    /// A handler was dropped before it answered.
    Dropped {
        job: JobId,
        token: i64,
        /// Whether it had been told to stop.
        cancelled: bool,
    },
    /// What the store said to a claim after its handler's end.
    Defied {
        job: JobId,
        token: i64,
        renewed: usize,
        ends: Vec<String>,
        progress: bool,
    },
    /// All workers have stopped, and have done this together.
    Stopped { done: Done },
}

/// What workers did, as far as it is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) claimed: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) snoozed: u64,
    pub(crate) given_back: u64,
    pub(crate) lost: u64,
    pub(crate) timed_out: u64,
}

impl Done {
    pub(crate) fn add(self, stats: Stats) -> Self {
        Self {
            claimed: self.claimed + stats.claimed,
            completed: self.completed + stats.completed,
            failed: self.failed + stats.failed,
            retried: self.retried + stats.retried,
            snoozed: self.snoozed + stats.snoozed,
            given_back: self.given_back + stats.given_back,
            lost: self.lost + stats.lost,
            timed_out: self.timed_out + stats.timed_out,
        }
    }
}

impl Place {
    /// The store there.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres { url } => {
                Arc::new(PostgresStore::new(&PostgresOptions::new(url)).unwrap())
            }
            Self::Sqlite { file } => {
                Arc::new(SqliteStore::open(file, &SqliteOptions::default()).unwrap())
            }
        }
    }
}
