//! A migrated store for one test: a PostgreSQL database, a SQLite file or SQLite in memory. Dropping the handle removes it.

use leasehold_core::Timestamp;
use leasehold_store::{Clock, ManualClock, Store};
#[cfg(feature = "postgres")]
use leasehold_store_postgres::Pooler;
#[cfg(feature = "sqlite")]
use leasehold_testkit::TempDir;
#[cfg(feature = "postgres")]
use leasehold_testkit::TestDatabase;
#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The database behind a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A database on the shared PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres,
    /// A SQLite file in a temporary directory.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// SQLite in memory.
    #[cfg(feature = "sqlite")]
    SqliteMemory,
}

/// Options of a [`TestBackend`]. Each kind ignores the options of the other.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// A manual clock; none for the database's clock.
    pub clock: Option<ManualClock>,
    /// PostgreSQL: whether to reuse a database of an earlier test. Only for tests that leave no task behind that still writes.
    pub reuse: bool,
    /// PostgreSQL: maximum of connections.
    pub connections: usize,
    /// PostgreSQL: timeout for a connection.
    pub connect_timeout: Duration,
    /// PostgreSQL: whether to listen for notifications of other processes.
    pub notify: bool,
    /// PostgreSQL: `host:port` of a proxy or pooler in front of the server.
    pub proxy: Option<String>,
    /// PostgreSQL: whether that is a pooler in transaction mode.
    #[cfg(feature = "postgres")]
    pub pooler: Pooler,
    /// SQLite: number of read connections.
    pub readers: usize,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            clock: None,
            reuse: false,
            connections: 6,
            connect_timeout: Duration::from_secs(30),
            notify: true,
            proxy: None,
            #[cfg(feature = "postgres")]
            pooler: Pooler::None,
            readers: 4,
        }
    }
}

impl BackendOptions {
    /// Sets a manual clock that starts at `start`.
    #[must_use]
    pub fn clock_at(self, start: Timestamp) -> Self {
        self.clock(ManualClock::starting_at(start))
    }

    /// Sets a manual clock.
    #[must_use]
    pub fn clock(self, clock: ManualClock) -> Self {
        Self {
            clock: Some(clock),
            ..self
        }
    }

    pub(crate) fn store_clock(&self) -> Clock {
        self.clock.clone().map_or(Clock::Database, Clock::Manual)
    }
}

/// The storage of a store, removed when it is dropped.
pub(crate) enum Storage {
    #[cfg(feature = "postgres")]
    Database(TestDatabase),
    #[cfg(feature = "sqlite")]
    Directory(TempDir),
    #[cfg(feature = "sqlite")]
    Memory,
}

/// A migrated store and its database.
pub struct TestBackend {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The store's manual clock, if it has one.
    pub clock: Option<ManualClock>,
    storage: Storage,
}

impl TestBackend {
    /// Opens a store of this kind with default options.
    pub async fn new(kind: BackendKind) -> Self {
        Self::with(kind, BackendOptions::default()).await
    }

    /// Opens a store of this kind with these options.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or the store cannot be opened.
    pub async fn with(kind: BackendKind, options: BackendOptions) -> Self {
        let (store, storage) = match kind {
            #[cfg(feature = "postgres")]
            BackendKind::Postgres => crate::postgres::open(&options).await,
            #[cfg(feature = "sqlite")]
            BackendKind::Sqlite => crate::sqlite::open_file(&options).await,
            #[cfg(feature = "sqlite")]
            BackendKind::SqliteMemory => crate::sqlite::open_memory(&options).await,
        };
        Self {
            store,
            clock: options.clock,
            storage,
        }
    }

    /// Advances the store's clock.
    ///
    /// # Panics
    /// When the store was opened with the database's clock.
    pub fn advance(&self, by: Duration) {
        let clock = self.clock.as_ref();
        clock.expect("the store has no manual clock").advance(by);
    }

    /// The PostgreSQL database.
    ///
    /// # Panics
    /// When the store is on SQLite.
    #[cfg(feature = "postgres")]
    pub fn database(&self) -> &TestDatabase {
        match &self.storage {
            Storage::Database(database) => database,
            #[cfg(feature = "sqlite")]
            _ => panic!("the store is not on PostgreSQL"),
        }
    }

    /// Opens a second store on the same PostgreSQL database with the same clock, like another process.
    ///
    /// # Panics
    /// When the store is on SQLite.
    #[cfg(feature = "postgres")]
    pub fn second_store(&self) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        let clock = clock.map_or(Clock::Database, Clock::Manual);
        crate::postgres::store_with_clock(self.database().url(), clock)
    }

    /// The SQLite file.
    ///
    /// # Panics
    /// When the store is not on a SQLite file.
    #[cfg(feature = "sqlite")]
    pub fn file(&self) -> PathBuf {
        match &self.storage {
            Storage::Directory(directory) => crate::sqlite::database_file(directory),
            _ => panic!("the store is not on a SQLite file"),
        }
    }
}
