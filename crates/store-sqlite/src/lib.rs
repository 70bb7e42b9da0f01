//! The SQLite store: one process owns the file, one thread writes and commits in groups, a few threads read.
//!
//! The store has the same tables and guarantees as the PostgreSQL store, with its own SQL. One thread writes, so no
//! other write runs during an operation: operations wait for no lock and fold no appended rows. Triggers update
//! every count and every workspace's readiness in the same statement.
//!
//! Time: the database runs in this process, so its clock is this machine's. The thread that runs an operation reads the
//! clock once, when the operation begins, unless a test opened the store with a manual clock.

mod answer;
mod audit;
mod broken_items;
mod change;
mod connection;
mod database;
mod definition;
mod drift;
mod error;
mod execution;
mod file_lock;
mod graph;
mod installation;
mod instance;
mod job;
mod key;
mod lock;
mod migrate;
mod notification;
mod options;
mod prune;
mod queue;
mod queue_access;
#[cfg(test)]
mod read_cost;
mod read_limit;
mod reader;
mod request;
mod row;
mod session;
mod workspace;
mod writer;

pub use migrate::{MIGRATIONS, migration_script};
pub use options::SqliteOptions;
pub use session::Cost;

use crate::answer::{Answer, ErasedQuery, erase, restore};
use crate::error::Fault;
use crate::file_lock::FileLock;
use crate::reader::Readers;
use crate::session::Session;
use crate::writer::Writer;
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::Result;
use leasehold_store::definition::VersionCache;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The SQL fragments that statements include. Tools that read statements from files expand them.
pub const INCLUDES: &[leasehold_store::sql::Include] = leasehold_store::includes![
    "audit/columns",
    "execution/columns",
    "key/columns",
    "queue/columns",
    "request/columns",
    "request/given",
];

/// A store in one SQLite file or in memory.
///
/// Dropping the store finishes the queued writes, closes the file and releases its lock.
pub struct SqliteStore {
    // Dropped in this order: the readers close first, the writer checkpoints and closes last, then the lock is released.
    readers: Option<Readers>,
    writer: Writer,
    claim_cost: Arc<Mutex<Cost>>,
    versions: Arc<VersionCache>,
    crash_markers: CrashMarkers,
    _lock: Option<FileLock>,
}

impl SqliteStore {
    /// Opens the file, or creates it readable by this user only. Does not migrate it.
    ///
    /// # Errors
    /// `Owned` if another process has the file open; the message names that process.
    pub fn open(file: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self> {
        let file = file_lock::canonical_path(file.as_ref())?;
        let lock = FileLock::acquire(&file)?;
        file_lock::create_private(&file)?;
        let writer = connection::open_writer(&file, options).map_err(|f| f.during("open"))?;
        Ok(Self {
            readers: Some(Readers::start(&file, options)?),
            writer: Writer::start(writer, options)?,
            claim_cost: Arc::default(),
            versions: Arc::default(),
            crash_markers: CrashMarkers::default(),
            _lock: Some(lock),
        })
    }

    /// Opens an empty store in memory. Reads and writes share one connection; dropping the store deletes the data.
    ///
    /// # Errors
    /// `Unavailable` if the machine has no memory or no thread left.
    pub fn open_in_memory(options: &SqliteOptions) -> Result<Self> {
        let writer = connection::open_memory(options).map_err(|f| f.during("open"))?;
        Ok(Self {
            readers: None,
            writer: Writer::start(writer, options)?,
            claim_cost: Arc::default(),
            versions: Arc::default(),
            crash_markers: CrashMarkers::default(),
            _lock: None,
        })
    }

    /// Marks the computation of inputs with these markers.
    #[must_use]
    pub fn with_crash_markers(mut self, markers: CrashMarkers) -> Self {
        self.crash_markers = markers;
        self
    }

    /// Returns what the last claim (of requests or jobs) cost SQLite, triggers included. Independent of the machine.
    pub fn claim_cost(&self) -> Cost {
        *self
            .claim_cost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn write<T, F>(&self, context: &'static str, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.writer.write(context, operation).await
    }

    /// Applies an operation to many items at once. If it fails for one of them, applies it to each alone, and returns `broken` for those for which it fails:
    /// the caller tries these again. The failure of a single item is the call's.
    async fn write_each<I, T, F>(
        &self,
        context: &'static str,
        items: Vec<I>,
        broken: T,
        name: fn(&I) -> String,
        one: F,
    ) -> Result<Vec<T>>
    where
        I: Send + Sync + 'static,
        T: Clone + Send + 'static,
        F: Fn(&Session<'_>, &I) -> std::result::Result<T, Fault> + Send + Sync + 'static,
    {
        let (items, one) = (Arc::new(items), Arc::new(one));
        let (all, each) = (Arc::clone(&items), Arc::clone(&one));
        let written = self.write(context, move |s| {
            all.iter().map(|item| each(s, item)).collect()
        });
        match written.await {
            Err(error) if error.concerns_one_item() && items.len() > 1 => {
                let each = move |s: &Session<'_>| {
                    let isolated = items.iter().map(|item| {
                        let done = s.isolated(name(item), || one(s, item))?;
                        Ok(done.unwrap_or_else(|| broken.clone()))
                    });
                    isolated.collect()
                };
                self.write(context, each).await
            }
            written => written,
        }
    }

    async fn read<T, F>(&self, context: &'static str, query: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        restore(context, self.read_erased(context, erase(query)).await?)
    }

    async fn read_erased(&self, context: &'static str, query: ErasedQuery) -> Result<Answer> {
        match &self.readers {
            Some(readers) => readers.read(context, query).await,
            None => self.writer.write_erased(context, query).await,
        }
    }
}
