//! The interface of both stores for measurements. Knows no database.

mod fill;
mod postgres;
mod sqlite;

pub(crate) use fill::{BlockReason, Fill, NO_LIMIT, RequestGroup};
pub(crate) use postgres::{PostgresBackend, connect};
pub(crate) use sqlite::SqliteBackend;

use anyhow::Result;
use async_trait::async_trait;
use clap::ValueEnum;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::Store;
use std::sync::Arc;

/// StoreChoice store to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreChoice {
    Postgres,
    Sqlite,
    Both,
}

/// Whether PostgreSQL runs autovacuum during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Autovacuum {
    /// Off, so that it does not touch buffers.
    Off,
    /// On, as by default.
    On,
}

/// The kind of transaction that pins the xmin horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HorizonPin {
    /// A read-only transaction, like a long report.
    Reader,
    /// A transaction that has written and stays open.
    Writer,
}

impl StoreChoice {
    /// Starts the chosen backends, PostgreSQL with its own server.
    pub(crate) fn backends(self, autovacuum: Autovacuum) -> Result<Vec<Box<dyn BenchBackend>>> {
        let mut backends: Vec<Box<dyn BenchBackend>> = Vec::new();
        if self != Self::Postgres {
            backends.push(Box::new(SqliteBackend::default()));
        }
        if self != Self::Sqlite {
            backends.push(Box::new(PostgresBackend::start(autovacuum)?));
        }
        Ok(backends)
    }
}

/// A workspace and its definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchWorkspace {
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
}

/// A temporary database to measure on.
#[async_trait]
pub(crate) trait BenchBackend: Send {
    /// Returns the store's name in the results.
    fn name(&self) -> &'static str;

    /// Returns the store and its settings, for table headings.
    fn title(&self) -> &'static str;

    /// Returns the unit of costs.
    fn unit(&self) -> &'static str;

    /// Creates a new database with exactly this data.
    async fn fill(&mut self, fill: &Fill) -> Result<()>;

    /// Opens the database for this many claimers; costs count from here.
    async fn open(&mut self, claimers: usize) -> Result<Box<dyn OpenStore>>;

    /// Opens the database with default options; with `small_cache` page reads show up in the meter.
    async fn store(&mut self, small_cache: bool) -> Result<Arc<dyn Store>>;

    /// Opens the database with this many connections, if the store has a pool.
    async fn store_with(&mut self, connections: usize) -> Result<Arc<dyn Store>>;

    /// Returns the database's URL; none for an embedded database.
    fn address(&self) -> Option<String>;

    /// Reads the database's size. Waits until all stores are closed, because PostgreSQL reports statistics then: drop them first.
    async fn size(&mut self) -> Result<DatabaseSize>;

    /// Runs vacuum and checkpoint now, so that they do not run during the measurement.
    async fn checkpoint(&mut self) -> Result<()>;

    /// Lists the workspaces, by number.
    async fn workspaces(&mut self) -> Result<Vec<BenchWorkspace>>;

    /// Starts a meter of the database's work.
    async fn meter(&mut self) -> Result<Box<dyn Meter>>;

    /// Holds a snapshot of the current state until the next `fill`.
    async fn pin(&mut self, pin: HorizonPin) -> Result<()>;
}

/// An open store under measurement.
#[async_trait]
pub(crate) trait OpenStore: Send + Sync {
    /// Returns the store.
    fn store(&self) -> Arc<dyn Store>;

    /// Called by each claimer after its claim.
    fn claimed(&self);

    /// Closes the store and returns the cost for each admitted request.
    async fn close(self: Box<Self>, admitted: u32) -> Result<f64>;
}

/// Counts the work of a database.
#[async_trait]
pub(crate) trait Meter: Send + Sync {
    /// Reads the counters since the meter was started.
    async fn read(&self) -> Result<Reading>;

    /// Returns the most expensive statements, if the database records them.
    async fn statements(&self) -> Result<Vec<StatementCost>> {
        Ok(Vec::new())
    }
}

/// Counters of a database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Buffers or pages read, in the backend's unit; none if unknown.
    pub(crate) touched: Option<f64>,
    /// Client statements.
    pub(crate) statements: Option<f64>,
    /// Writing transactions.
    pub(crate) transactions: Option<f64>,
    /// WAL bytes.
    pub(crate) log_bytes: Option<f64>,
    /// CPU seconds of the database server.
    pub(crate) cpu: Option<f64>,
}

impl Reading {
    /// Returns the difference to an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        fn less(later: Option<f64>, earlier: Option<f64>) -> Option<f64> {
            Some(later? - earlier?)
        }
        Self {
            touched: less(self.touched, earlier.touched),
            statements: less(self.statements, earlier.statements),
            transactions: less(self.transactions, earlier.transactions),
            log_bytes: less(self.log_bytes, earlier.log_bytes),
            cpu: less(self.cpu, earlier.cpu),
        }
    }
}

/// Size and dead rows of a database; none if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatabaseSize {
    /// Row versions that became dead so far, vacuumed or not.
    pub(crate) dead_total: Option<f64>,
    /// Dead row versions now.
    pub(crate) dead: Option<f64>,
    /// Bytes of tables.
    pub(crate) tables: Option<f64>,
    /// Bytes of indexes.
    pub(crate) indexes: Option<f64>,
}

/// Total cost of one statement.
#[derive(Clone, Debug)]
pub(crate) struct StatementCost {
    /// Its first line.
    pub(crate) text: String,
    pub(crate) calls: f64,
    pub(crate) milliseconds: f64,
    /// Milliseconds of the fastest call.
    pub(crate) best: f64,
    pub(crate) touched: f64,
    pub(crate) log_bytes: f64,
}
