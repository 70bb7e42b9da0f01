//! The protocol between a test and its worker processes: a configuration in, one JSON line per event out. Runs nothing.

use leasehold_core::JobId;
use leasehold_store::Store;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_worker::Stats;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a worker process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessConfig {
    pub(crate) location: StoreLocation,
    pub(crate) queues: Vec<String>,
    /// The prefix of the workers' names.
    pub(crate) name: String,
    pub(crate) workers: usize,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    /// The interval of the sweeper of expired leases.
    pub(crate) sweep: Duration,
    pub(crate) behaviour: Behaviour,
    /// Whether the process reports no events of jobs.
    pub(crate) quiet: bool,
}

/// The database of the jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum StoreLocation {
    Postgres { url: String },
    Sqlite { file: PathBuf },
}

/// What handlers do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Behaviour {
    /// Complete at once.
    Finish,
    /// Never return.
    Hold,
    /// Half of the handlers return after this time, the others never. When a handler has ended, the process uses its claim directly on the
    /// store: it tries to renew it, to finish it and to report progress.
    LateWrites { ends_after: Duration },
    /// Follow the instructions in the payload.
    FromPayload,
    /// Behave at random, over a connection that loses and delays renewals and results.
    Random,
}

/// The payload of [`Behaviour::FromPayload`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Instructions {
    /// How long the handler runs.
    pub(crate) takes: Duration,
    /// Whether the first attempt fails.
    pub(crate) fails_once: bool,
    /// Whether the first attempt never ends.
    pub(crate) hangs_once: bool,
}

/// An event that a process reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum ProcessEvent {
    /// The workers run.
    Ready {
        /// The process's wall clock, in seconds since 1970.
        clock: i64,
    },
    /// A handler started.
    Started {
        job: JobId,
        token: i64,
        attempt: u32,
        worker: String,
    },
    /// A handler returned.
    Returned { job: JobId, token: i64 },
    /// A handler was dropped before it returned.
    Dropped {
        job: JobId,
        token: i64,
        /// Whether it was cancelled before.
        cancelled: bool,
    },
    /// The store's answers to the claim of a handler that has ended.
    LateWrite {
        job: JobId,
        token: i64,
        renewed: usize,
        ends: Vec<String>,
        progress: bool,
    },
    /// All workers have stopped.
    Stopped { totals: WorkTotals },
}

/// The counters of all workers of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkTotals {
    pub(crate) claimed: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retried: u64,
    pub(crate) snoozed: u64,
    pub(crate) returned: u64,
    pub(crate) lost: u64,
    pub(crate) timed_out: u64,
}

impl WorkTotals {
    pub(crate) fn add(self, stats: Stats) -> Self {
        Self {
            claimed: self.claimed + stats.claimed,
            completed: self.completed + stats.completed,
            failed: self.failed + stats.failed,
            retried: self.retried + stats.retried,
            snoozed: self.snoozed + stats.snoozed,
            returned: self.returned + stats.returned,
            lost: self.lost + stats.lost,
            timed_out: self.timed_out + stats.timed_out,
        }
    }
}

impl StoreLocation {
    /// Opens the store.
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
