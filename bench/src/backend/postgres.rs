//! The PostgreSQL store to measure on: a server of its own, a database a case. Its cost is read from the tables' statistics.

use super::{
    BenchBackend, BenchWorkspace, Extent, Fill, Line, Meter, Opened, Pin, Reading, StatementCost,
    Upkeep,
};
use crate::processor;
use anyhow::{Result, ensure};
use async_trait::async_trait;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::{SchemaStore, Store};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, TestDatabase, TestPostgres, eventually};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// A statement that the store's own test of the claim's cost uses as well.
macro_rules! test_sql {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../crates/store-postgres/tests/sql/claim_cost_",
            $name,
            ".sql"
        ))
    };
}

const FILL_WORKSPACES: &str = test_sql!("fill_workspaces");
const FILL_REQUESTS: &str = test_sql!("fill_requests");
const SETTLE: &str = test_sql!("settle");
const TOUCHED: &str = test_sql!("touched");
const SNAPSHOT: &str = test_sql!("snapshot");
const CONNECTED: &str = include_str!("../../sql/postgres/connected.sql");
const CHECKPOINT: &str = include_str!("../../sql/postgres/checkpoint.sql");
const WORKSPACES: &str = include_str!("../../sql/postgres/workspaces.sql");
const WRITTEN: &str = include_str!("../../sql/postgres/written.sql");
const COUNT_STATEMENTS: &str = include_str!("../../sql/postgres/count_statements.sql");
const FORGET_STATEMENTS: &str = include_str!("../../sql/postgres/forget_statements.sql");
const STATEMENTS: &str = include_str!("../../sql/postgres/statements.sql");
const VACUUM: &str = include_str!("../../sql/postgres/vacuum.sql");
const EXTENT: &str = include_str!("../../sql/postgres/extent.sql");
const PIN_WRITING: &str = include_str!("../../sql/postgres/pin_writing.sql");
const COSTLIEST: &str = include_str!("../../sql/postgres/costliest.sql");

/// The names of the connections whose end is waited for.
const CLAIMERS: &str = "claimers";
const STORES: &str = "stores";
const CLOSE_LIMIT: Duration = Duration::from_secs(30);
/// Connections that fill requests in at once.
const FILLERS: u32 = 2;

/// A server with one database at a time.
pub(crate) struct PostgresBackend {
    // Dropped in this order: the database is dropped while its server runs.
    pinned: Option<Client>,
    client: Option<Client>,
    database: Option<TestDatabase>,
    server: TestPostgres,
    cluster: Cluster,
}

impl PostgresBackend {
    /// Starts the server: durable, and with room for the largest case.
    pub(crate) fn start(upkeep: Upkeep) -> Result<Self> {
        let vacuums = match upkeep {
            Upkeep::None => "off",
            Upkeep::Ordinary => "on",
        };
        let cluster = Cluster::start(&[
            ("shared_buffers", "1GB"),
            ("max_wal_size", "8GB"),
            ("checkpoint_timeout", "1h"),
            ("autovacuum", vacuums),
        ])?;
        Ok(Self {
            pinned: None,
            client: None,
            database: None,
            server: TestPostgres::at(cluster.url()),
            cluster,
        })
    }

    fn database(&self) -> Result<(&TestDatabase, &Client)> {
        match (&self.database, &self.client) {
            (Some(database), Some(client)) => Ok((database, client)),
            _ => anyhow::bail!("nothing is filled in yet"),
        }
    }
}

#[async_trait]
impl BenchBackend for PostgresBackend {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn title(&self) -> &'static str {
        "PostgreSQL: durable commits, shared_buffers 1 GB, client and server on this machine"
    }

    fn unit(&self) -> &'static str {
        "buffers"
    }

    async fn fill(&mut self, fill: &Fill) -> Result<()> {
        (self.pinned, self.client, self.database) = (None, None, None);
        let database = self.server.fresh_database(None).await;
        let store = PostgresStore::new(&PostgresOptions::new(database.url()))?;
        store.schema_migrate().await?;
        drop(store);
        let client = connect(database.url()).await?;
        for crowd in &fill.crowds {
            let (first, last) = (
                i64::from(crowd.first),
                i64::from(crowd.first + crowd.count) - 1,
            );
            let limit = i32::try_from(crowd.limit)?;
            client
                .execute(FILL_WORKSPACES, &[&first, &last, &limit, &crowd.paused])
                .await?;
        }
        let mut numbered = 0;
        for line in &fill.lines {
            fill_line(database.url(), line, numbered).await?;
            numbered += i64::from(line.requests);
        }
        client.batch_execute(SETTLE).await?;
        client.batch_execute(CHECKPOINT).await?;
        self.client = Some(client);
        self.database = Some(database);
        Ok(())
    }

    async fn open(&mut self, claimers: usize) -> Result<Box<dyn Opened>> {
        let (database, _) = self.database()?;
        let watcher = connect(database.url()).await?;
        Ok(Box::new(OpenedPostgres {
            before: touched(&watcher).await?,
            store: Arc::new(PostgresStore::new(&PostgresOptions {
                max_connections: claimers,
                ..PostgresOptions::new(format!("{}?application_name={CLAIMERS}", database.url()))
            })?),
            watcher,
        }))
    }

    async fn store(&mut self, _thrifty: bool) -> Result<Arc<dyn Store>> {
        let options = PostgresOptions::new(self.database()?.0.url());
        Ok(Arc::new(PostgresStore::new(&options)?))
    }

    async fn store_with(&mut self, connections: usize) -> Result<Arc<dyn Store>> {
        let url = format!("{}?application_name={STORES}", self.database()?.0.url());
        Ok(Arc::new(PostgresStore::new(&PostgresOptions {
            max_connections: connections,
            ..PostgresOptions::new(url)
        })?))
    }

    fn address(&self) -> Option<String> {
        Some(self.database.as_ref()?.url().to_owned())
    }

    async fn settle(&mut self) -> Result<()> {
        let (_, client) = self.database()?;
        client.batch_execute(VACUUM).await?;
        Ok(client.batch_execute(CHECKPOINT).await?)
    }

    async fn extent(&mut self) -> Result<Extent> {
        let (_, client) = self.database()?;
        // Those that still linger have most of it told already.
        ended(client, STORES).await;
        let row = client.query_one(EXTENT, &[]).await?;
        Ok(Extent {
            outdated: Some(row.get(0)),
            dead: Some(row.get(1)),
            tables: Some(row.get(2)),
            indexes: Some(row.get(3)),
        })
    }

    async fn workspaces(&mut self) -> Result<Vec<BenchWorkspace>> {
        let rows = self.database()?.1.query(WORKSPACES, &[]).await?;
        let tenants = rows.iter().map(|row| BenchWorkspace {
            workspace: WorkspaceId(row.get(0)),
            definition: DefinitionId(row.get(1)),
        });
        Ok(tenants.collect())
    }

    async fn meter(&mut self) -> Result<Box<dyn Meter>> {
        let watcher = connect(self.database()?.0.url()).await?;
        // A server without this extension counts no statements; everything else is measured all the same.
        let counts = watcher.batch_execute(COUNT_STATEMENTS).await.is_ok()
            && watcher.batch_execute(FORGET_STATEMENTS).await.is_ok();
        let server = self.cluster.server_pid();
        Ok(Box::new(PostgresMeter {
            watcher,
            counts,
            server,
        }))
    }

    async fn pin(&mut self, pin: Pin) -> Result<()> {
        let client = connect(self.database()?.0.url()).await?;
        client.batch_execute(SNAPSHOT).await?;
        if pin == Pin::Writer {
            client.batch_execute(PIN_WRITING).await?;
        }
        self.pinned = Some(client);
        Ok(())
    }
}

struct OpenedPostgres {
    store: Arc<PostgresStore>,
    watcher: Client,
    before: i64,
}

#[async_trait]
impl Opened for OpenedPostgres {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn claimed(&self) {}

    /// A connection hands in its statistics when it ends, at the latest; so the store's are ended and waited for.
    async fn close(self: Box<Self>, admitted: u32) -> Result<f64> {
        let Self {
            store,
            watcher,
            before,
        } = *self;
        drop(store);
        ensure!(
            ended(&watcher, CLAIMERS).await,
            "the claimers' connections did not end"
        );
        let touched = touched(&watcher).await? - before;
        Ok(touched as f64 / f64::from(admitted.max(1)))
    }
}

struct PostgresMeter {
    watcher: Client,
    counts: bool,
    server: Option<u32>,
}

#[async_trait]
impl Meter for PostgresMeter {
    async fn read(&self) -> Result<Reading> {
        let written = self.watcher.query_one(WRITTEN, &[]).await?;
        let mut reading = Reading {
            log_bytes: Some(written.get(0)),
            transactions: Some(written.get(1)),
            processor: self.server.and_then(processor::of_family),
            ..Reading::default()
        };
        if self.counts {
            let row = self.watcher.query_one(STATEMENTS, &[]).await?;
            reading.statements = Some(row.get(0));
            reading.touched = Some(row.get(1));
        }
        Ok(reading)
    }

    async fn statements(&self) -> Result<Vec<StatementCost>> {
        if !self.counts {
            return Ok(Vec::new());
        }
        let rows = self.watcher.query(COSTLIEST, &[]).await?;
        let costs = rows.iter().map(|row| StatementCost {
            text: row.get(0),
            calls: row.get(1),
            milliseconds: row.get(2),
            best: row.get(3),
            touched: row.get(4),
            log_bytes: row.get(5),
        });
        Ok(costs.collect())
    }
}

/// Waits until no connection of that name is left; false if some stay.
async fn ended(watcher: &Client, name: &str) -> bool {
    eventually(CLOSE_LIMIT, async || {
        let row = watcher.query_one(CONNECTED, &[&name]).await;
        row.is_ok_and(|row| row.get::<_, i64>(0) == 0)
    })
    .await
}

async fn touched(watcher: &Client) -> Result<i64> {
    Ok(watcher.query_one(TOUCHED, &[]).await?.get(0))
}

async fn fill_line(url: &str, line: &Line, numbered: i64) -> Result<()> {
    let share = line.requests.div_ceil(FILLERS);
    let parts = (0..FILLERS).map(async |part| {
        let begin = (share * part).min(line.requests);
        let count = i64::from(share.min(line.requests - begin));
        let first = numbered + i64::from(begin);
        let (workspace, workspaces) = (i64::from(line.first), i64::from(line.workspaces));
        let (seconds, refusals) = (i64::from(line.seconds), i32::try_from(line.refusals)?);
        connect(url)
            .await?
            .execute(
                FILL_REQUESTS,
                &[&count, &first, &workspace, &workspaces, &seconds, &refusals],
            )
            .await?;
        anyhow::Ok(())
    });
    futures::future::try_join_all(parts).await?;
    Ok(())
}

/// Connects without TLS.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // A broken connection shows in the client's own calls.
    tokio::spawn(connection);
    Ok(client)
}
