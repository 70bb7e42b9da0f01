//! SQLite backend: a file in a temporary directory, synced at every commit. The cost is the number of page reads with a tiny cache.

use super::{
    BenchBackend, BenchWorkspace, DatabaseSize, Fill, HorizonPin, Meter, OpenStore, Reading,
};
use crate::claim::claim;
use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use jiff::Timestamp;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::{SchemaStore, Store};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TempDir, temp_dir};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

const FILL_WORKSPACES: &str = include_str!("../../sql/sqlite/fill_workspaces.sql");
const FILL_DEFINITIONS: &str = include_str!("../../sql/sqlite/fill_definitions.sql");
const FILL_VERSIONS: &str = include_str!("../../sql/sqlite/fill_versions.sql");
const FILL_REQUESTS: &str = include_str!("../../sql/sqlite/fill_requests.sql");
const FILL_EVENTS: &str = include_str!("../../sql/sqlite/fill_events.sql");
const WORKSPACES: &str = include_str!("../../sql/sqlite/workspaces.sql");
const SNAPSHOT: &str = include_str!("../../sql/sqlite/snapshot.sql");

/// Page cache of the connection that fills the file, in KiB.
const FILL_CACHE_KIB: i64 = 1024 * 1024;

/// Holds the bytes read by this process: with a tiny cache, SQLite reads a page each time it touches one.
const PROC_IO: &str = "/proc/self/io";
const PAGE_BYTES: f64 = 4096.0;
/// Page cache while page reads are counted, in KiB.
const SMALL_CACHE_KIB: u32 = 4;
/// Number and size of the counted claims.
const COUNTED: u32 = 2;
const COUNTED_BATCH: u32 = 100;

/// A SQLite file, one at a time.
#[derive(Default)]
pub(crate) struct SqliteBackend {
    // Dropped in this order: the connections before their directory.
    pinned: Option<Connection>,
    dir: Option<TempDir>,
}

impl SqliteBackend {
    fn file(&self) -> Result<PathBuf> {
        let dir = self
            .dir
            .as_ref()
            .context("the database was not filled yet")?;
        Ok(dir.path().join("leasehold.db"))
    }
}

#[async_trait]
impl BenchBackend for SqliteBackend {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn title(&self) -> &'static str {
        "SQLite: one file, synced to disk at every commit"
    }

    fn unit(&self) -> &'static str {
        if bytes_read().is_some() {
            "pages"
        } else {
            "vm steps"
        }
    }

    async fn fill(&mut self, fill: &Fill) -> Result<()> {
        self.pinned = None;
        self.dir = Some(temp_dir());
        let file = self.file()?;
        let store = SqliteStore::open(&file, &SqliteOptions::default())?;
        store.schema_migrate().await?;
        drop(store);
        let fill = fill.clone();
        tokio::task::spawn_blocking(move || fill_file(&file, &fill)).await?
    }

    async fn open(&mut self, _claimers: usize) -> Result<Box<dyn OpenStore>> {
        let file = self.file()?;
        Ok(Box::new(OpenSqlite {
            pages: pages(&file).await?,
            store: Arc::new(SqliteStore::open(&file, &SqliteOptions::default())?),
            steps: AtomicU64::new(0),
        }))
    }

    async fn store(&mut self, small_cache: bool) -> Result<Arc<dyn Store>> {
        let mut options = SqliteOptions::default();
        if small_cache {
            options.cache_kib = SMALL_CACHE_KIB;
        }
        Ok(Arc::new(SqliteStore::open(self.file()?, &options)?))
    }

    async fn store_with(&mut self, _connections: usize) -> Result<Arc<dyn Store>> {
        self.store(false).await
    }

    fn address(&self) -> Option<String> {
        None
    }

    async fn checkpoint(&mut self) -> Result<()> {
        let connection = Connection::open(self.file()?)?;
        connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
        Ok(())
    }

    async fn size(&mut self) -> Result<DatabaseSize> {
        let bytes = std::fs::metadata(self.file()?)?.len();
        Ok(DatabaseSize {
            tables: Some(bytes as f64),
            ..DatabaseSize::default()
        })
    }

    async fn workspaces(&mut self) -> Result<Vec<BenchWorkspace>> {
        let connection = Connection::open(self.file()?)?;
        let mut statement = connection.prepare(WORKSPACES)?;
        let rows = statement.query_map([], |row| {
            Ok(BenchWorkspace {
                workspace: WorkspaceId(Uuid::from_bytes(row.get(0)?)),
                definition: DefinitionId(Uuid::from_bytes(row.get(1)?)),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    async fn meter(&mut self) -> Result<Box<dyn Meter>> {
        Ok(Box::new(SqliteMeter))
    }

    async fn pin(&mut self, pin: HorizonPin) -> Result<()> {
        ensure!(
            pin == HorizonPin::Reader,
            "an open write transaction would block all other writers"
        );
        let connection = Connection::open(self.file()?)?;
        connection.execute_batch(SNAPSHOT)?;
        self.pinned = Some(connection);
        Ok(())
    }
}

/// Counts the pages that this process reads; meaningful only with a small cache.
struct SqliteMeter;

#[async_trait]
impl Meter for SqliteMeter {
    async fn read(&self) -> Result<Reading> {
        Ok(Reading {
            touched: bytes_read().map(|bytes| bytes as f64 / PAGE_BYTES),
            ..Reading::default()
        })
    }
}

/// Returns the pages read for each admitted request; none if the kernel does not report them or nothing was admitted.
async fn pages(file: &Path) -> Result<Option<f64>> {
    let options = SqliteOptions {
        cache_kib: SMALL_CACHE_KIB,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(file, &options)?;
    let Some(before) = bytes_read() else {
        return Ok(None);
    };
    let mut admitted = 0;
    for _ in 0..COUNTED {
        admitted += claim(&store, COUNTED_BATCH).await?.requests.len();
    }
    let read = bytes_read().unwrap_or(before) - before;
    Ok((admitted > 0).then(|| read as f64 / PAGE_BYTES / admitted as f64))
}

fn bytes_read() -> Option<u64> {
    let text = std::fs::read_to_string(PROC_IO).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "))?;
    line.trim().parse().ok()
}

struct OpenSqlite {
    store: Arc<SqliteStore>,
    pages: Option<f64>,
    steps: AtomicU64,
}

#[async_trait]
impl OpenStore for OpenSqlite {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn claimed(&self) {
        // With several claimers this may be another's claim; the sum is approximate.
        self.steps
            .fetch_add(self.store.claim_cost().steps, Ordering::Relaxed);
    }

    async fn close(self: Box<Self>, admitted: u32) -> Result<f64> {
        let steps = self.steps.into_inner() as f64 / f64::from(admitted.max(1));
        Ok(self.pages.unwrap_or(steps))
    }
}

/// Fills the file in one transaction without syncing: the fill is not measured.
fn fill_file(file: &Path, fill: &Fill) -> Result<()> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -FILL_CACHE_KIB)?;
    let now = Timestamp::now().as_microsecond();
    let transaction = connection.transaction()?;
    for group in &fill.workspace_groups {
        let (first, last) = (group.first, group.first + group.count - 1);
        let workspaces = params![first, last, group.limit, group.paused, now];
        transaction.execute(FILL_WORKSPACES, workspaces)?;
        transaction.execute(FILL_DEFINITIONS, params![first, last, now])?;
        transaction.execute(FILL_VERSIONS, params![first, last, now])?;
    }
    let mut numbered = 0;
    for line in &fill.request_groups {
        let due = now + i64::from(line.seconds) * 1_000_000;
        transaction.execute(
            FILL_REQUESTS,
            params![
                line.requests,
                numbered,
                line.first,
                line.workspaces,
                now,
                due,
                line.refusals
            ],
        )?;
        numbered += line.requests;
    }
    transaction.execute(FILL_EVENTS, [])?;
    transaction.commit()?;
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
    Ok(())
}
