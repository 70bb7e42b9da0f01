//! A store of a test's own: a PostgreSQL database, a SQLite file or SQLite in memory, migrated, and removed with its handle.

use leasehold_core::Timestamp;
use leasehold_store::{Clock, ManualClock, Store};
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
    /// A database of the shared PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres,
    /// A SQLite file in a temporary folder.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// SQLite in memory.
    #[cfg(feature = "sqlite")]
    SqliteMemory,
}

/// How a [`TestBackend`] is opened. A database ignores the options of the other one.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// A clock that the test moves; none for the database's own.
    pub clock: Option<ManualClock>,
    /// PostgreSQL: whether the database may have served other tests. Only for tests that leave no task behind that still writes.
    pub reuse: bool,
    /// PostgreSQL: connections at most.
    pub connections: usize,
    /// PostgreSQL: how long to wait for a connection.
    pub connect_timeout: Duration,
    /// PostgreSQL: whether to listen for what other processes do.
    pub notify: bool,
    /// PostgreSQL: `host:port` of a proxy in front of the server.
    pub proxy: Option<String>,
    /// SQLite: connections that read.
    pub readers: usize,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            clock: None,
            reuse: false,
            connections: 6,
            connect_timeout: Duration::from_secs(5),
            notify: true,
            proxy: None,
            readers: 4,
        }
    }
}

impl BackendOptions {
    /// The same with a clock that shows `start` until the test moves it.
    #[must_use]
    pub fn clock_at(self, start: Timestamp) -> Self {
        self.clock(ManualClock::starting_at(start))
    }

    /// The same with this clock.
    #[must_use]
    pub fn clock(self, clock: ManualClock) -> Self {
        Self {
            clock: Some(clock),
            ..self
        }
    }

    pub(crate) fn judge(&self) -> Clock {
        self.clock.clone().map_or(Clock::Database, Clock::Manual)
    }
}

/// Where a store keeps its data; removed when it is dropped.
pub(crate) enum Storage {
    #[cfg(feature = "postgres")]
    Database(TestDatabase),
    #[cfg(feature = "sqlite")]
    Folder(TempDir),
    #[cfg(feature = "sqlite")]
    Memory,
}

/// A migrated store and the database it lives in.
pub struct TestBackend {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The store's clock, where the test moves it.
    pub clock: Option<ManualClock>,
    storage: Storage,
}

impl TestBackend {
    /// Opens a store of this kind with ordinary options.
    pub async fn new(kind: BackendKind) -> Self {
        Self::with(kind, BackendOptions::default()).await
    }

    /// Opens a store of this kind.
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

    /// Moves the store's clock.
    ///
    /// # Panics
    /// When the store was opened with the database's clock.
    pub fn advance(&self, by: Duration) {
        let clock = self.clock.as_ref();
        clock.expect("the store has a manual clock").advance(by);
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

    /// Another store on the same PostgreSQL database with the same clock, as another process has it.
    ///
    /// # Panics
    /// When the store is on SQLite.
    #[cfg(feature = "postgres")]
    pub fn another_store(&self) -> Arc<dyn Store> {
        let clock = self.clock.clone();
        let clock = clock.map_or(Clock::Database, Clock::Manual);
        crate::postgres::store_by(self.database().url(), clock)
    }

    /// The SQLite file.
    ///
    /// # Panics
    /// When the store is not on a SQLite file.
    #[cfg(feature = "sqlite")]
    pub fn file(&self) -> PathBuf {
        match &self.storage {
            Storage::Folder(folder) => crate::sqlite::file_in(folder),
            _ => panic!("the store is not on a SQLite file"),
        }
    }
}
