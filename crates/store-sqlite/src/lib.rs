//! The SQLite store: one process owns the file, one thread writes and commits in groups, a few threads read.
//!
//! The same tables and the same promises as on PostgreSQL, with SQL of its own. Because there is one writer, an
//! operation sees a database nobody else changes meanwhile: nothing here waits for a lock or folds what others wrote,
//! and triggers keep every count and every workspace's readiness true at once.
//!
//! Time: the database lives in this process, so the database's clock is this machine's. The thread that runs an
//! operation reads it once, when the operation begins, unless the store was opened with a clock that a test moves.

mod capacity;
mod change;
mod connection;
mod database;
mod definition;
mod error;
mod execution;
mod graph;
mod instance;
mod job;
mod key;
mod lock;
mod migrate;
mod options;
mod owner;
mod prune;
mod queue;
mod reader;
mod request;
mod row;
mod session;
mod wake;
mod workspace;
mod writer;

pub use migrate::{MIGRATIONS, migration_script};
pub use options::SqliteOptions;
pub use session::Cost;

use crate::error::Fault;
use crate::owner::Owner;
use crate::reader::Readers;
use crate::session::Session;
use crate::writer::Writer;
use leasehold_store::Result;
use leasehold_store::definition::VersionCache;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The files that statements include, for programs that read statements from their files.
pub const INCLUDES: &[leasehold_store::sql::Include] = leasehold_store::includes![
    "execution/columns",
    "queue/columns",
    "request/columns",
    "request/given",
];

/// Everything Leasehold keeps, in one SQLite file or in memory.
///
/// Dropping it finishes the writes that wait, closes the file and gives its ownership back.
pub struct SqliteStore {
    // Dropped in this order: the readers close first, the writer tidies up and closes last, then others may own the file.
    readers: Option<Readers>,
    writer: Writer,
    claim_cost: Arc<Mutex<Cost>>,
    versions: Arc<VersionCache>,
    _owner: Option<Owner>,
}

impl SqliteStore {
    /// Opens the file, which is made if it is not there, for this user only. It is not migrated yet.
    ///
    /// # Errors
    /// `Owned` if another process has it; the message says which.
    pub fn open(file: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self> {
        let file = owner::true_path(file.as_ref())?;
        let owner = Owner::take(&file)?;
        owner::make(&file)?;
        let writer = connection::open_writer(&file, options).map_err(|f| f.during("open"))?;
        Ok(Self {
            readers: Some(Readers::start(&file, options)?),
            writer: Writer::start(writer, options)?,
            claim_cost: Arc::default(),
            versions: Arc::default(),
            _owner: Some(owner),
        })
    }

    /// Makes a store that lives in memory and ends with this value. Reads and writes share its one connection.
    ///
    /// # Errors
    /// Only when the machine gives no memory or no thread.
    pub fn open_in_memory(options: &SqliteOptions) -> Result<Self> {
        let writer = connection::open_memory(options).map_err(|f| f.during("open"))?;
        Ok(Self {
            readers: None,
            writer: Writer::start(writer, options)?,
            claim_cost: Arc::default(),
            versions: Arc::default(),
            _owner: None,
        })
    }

    /// What the last claim, of requests or of jobs, cost SQLite, triggers included; the same on every machine, so it can be compared.
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

    async fn read<T, F>(&self, context: &'static str, question: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        match &self.readers {
            Some(readers) => readers.read(context, question).await,
            None => self.writer.write(context, question).await,
        }
    }
}
