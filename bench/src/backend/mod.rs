//! What both stores must offer to be measured alike. Knows no database.

mod fill;
mod postgres;
mod sqlite;

pub(crate) use fill::{Fill, Line, NO_LIMIT, Obstacle};
pub(crate) use postgres::{PostgresBackend, connect};
pub(crate) use sqlite::SqliteBackend;

use anyhow::Result;
use async_trait::async_trait;
use clap::ValueEnum;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::Store;
use std::sync::Arc;

/// Which store to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    Postgres,
    Sqlite,
    Both,
}

/// What a server does by itself while it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// Nothing that touches buffers.
    None,
    /// What it does for everybody: it vacuums.
    Ordinary,
}

/// What holds on to an old state of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// One that only reads, as a long report.
    Reader,
    /// One that has written as well and did not commit.
    Writer,
}

impl Which {
    /// The stores it names, each with a server of its own where it needs one.
    pub(crate) fn backends(self, upkeep: Upkeep) -> Result<Vec<Box<dyn BenchBackend>>> {
        let mut backends: Vec<Box<dyn BenchBackend>> = Vec::new();
        if self != Self::Postgres {
            backends.push(Box::new(SqliteBackend::default()));
        }
        if self != Self::Sqlite {
            backends.push(Box::new(PostgresBackend::start(upkeep)?));
        }
        Ok(backends)
    }
}

/// A workspace and its one definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchWorkspace {
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
}

/// A throwaway database to measure on.
#[async_trait]
pub(crate) trait BenchBackend: Send {
    /// The store's name in the results.
    fn name(&self) -> &'static str;

    /// The store and its settings, for a reader.
    fn title(&self) -> &'static str;

    /// What a cost counts.
    fn unit(&self) -> &'static str;

    /// Begins anew with a database of its own that holds just this.
    async fn fill(&mut self, fill: &Fill) -> Result<()>;

    /// Opens what was filled for that many claimers; costs count from here.
    async fn open(&mut self, claimers: usize) -> Result<Box<dyn Opened>>;

    /// Opens what was filled as the product does; `thrifty` where a meter is read and memory would hide what is touched.
    async fn store(&mut self, thrifty: bool) -> Result<Arc<dyn Store>>;

    /// Opens it with that many connections, if it has any.
    async fn store_with(&mut self, connections: usize) -> Result<Arc<dyn Store>>;

    /// Where other programs reach the database; none where it lives in this process.
    fn address(&self) -> Option<String>;

    /// What the database has become. Waits until the stores that were opened have let go of it, as it knows all only then: drop them
    /// before.
    async fn extent(&mut self) -> Result<Extent>;

    /// Brings what was put in since to where a running system would have it, so that this is not done while it is timed.
    async fn settle(&mut self) -> Result<()>;

    /// The workspaces that were filled in, by number.
    async fn workspaces(&mut self) -> Result<Vec<BenchWorkspace>>;

    /// What counts the database's work from now on.
    async fn meter(&mut self) -> Result<Box<dyn Meter>>;

    /// Holds on to what the database shows now until it is filled anew.
    async fn pin(&mut self, pin: Pin) -> Result<()>;
}

/// A store that is being measured.
#[async_trait]
pub(crate) trait Opened: Send + Sync {
    /// The store, to claim from.
    fn store(&self) -> Arc<dyn Store>;

    /// Called by each claimer right after its claim.
    fn claimed(&self);

    /// Closes the store and says what each of the admitted requests cost.
    async fn close(self: Box<Self>, admitted: u32) -> Result<f64>;
}

/// Counts what a database does.
#[async_trait]
pub(crate) trait Meter: Send + Sync {
    /// Everything since the meter was made.
    async fn read(&self) -> Result<Reading>;

    /// The statements that took most of the time, where the database knows.
    async fn statements(&self) -> Result<Vec<StatementCost>> {
        Ok(Vec::new())
    }
}

/// What a database did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// What was touched, in the backend's unit; none where it does not say.
    pub(crate) touched: Option<f64>,
    /// Statements a client sent.
    pub(crate) statements: Option<f64>,
    /// Transactions that wrote something.
    pub(crate) transactions: Option<f64>,
    /// Bytes of its log.
    pub(crate) log_bytes: Option<f64>,
    /// Seconds of processor time of a server of its own.
    pub(crate) processor: Option<f64>,
}

impl Reading {
    /// What was done since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        fn less(later: Option<f64>, earlier: Option<f64>) -> Option<f64> {
            Some(later? - earlier?)
        }
        Self {
            touched: less(self.touched, earlier.touched),
            statements: less(self.statements, earlier.statements),
            transactions: less(self.transactions, earlier.transactions),
            log_bytes: less(self.log_bytes, earlier.log_bytes),
            processor: less(self.processor, earlier.processor),
        }
    }
}

/// How large a database is, and how much of it is dead; what it does not know is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Versions of rows that became dead so far, whether they were cleared away or not.
    pub(crate) outdated: Option<f64>,
    /// Dead versions that lie there now.
    pub(crate) dead: Option<f64>,
    /// Bytes of tables.
    pub(crate) tables: Option<f64>,
    /// Bytes of indexes.
    pub(crate) indexes: Option<f64>,
}

/// What one statement cost in all.
#[derive(Clone, Debug)]
pub(crate) struct StatementCost {
    /// How it begins.
    pub(crate) text: String,
    pub(crate) calls: f64,
    pub(crate) milliseconds: f64,
    /// Milliseconds of the call that took the least.
    pub(crate) best: f64,
    pub(crate) touched: f64,
    pub(crate) log_bytes: f64,
}
