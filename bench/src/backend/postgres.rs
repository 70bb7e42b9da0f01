//! PostgreSQL backend: its own server, a new database for each case. Costs come from the table statistics.

use super::{
    Autovacuum, BenchBackend, BenchWorkspace, DatabaseSize, Fill, HorizonPin, Meter, OpenStore,
    Reading, RequestGroup, StatementCost,
};
use crate::cpu;
use anyhow::{Result, ensure};
use async_trait::async_trait;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::{SchemaStore, Store};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, TestDatabase, TestPostgres, eventually};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// A statement shared with the store's test of the claim's cost.
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
const SIZE: &str = include_str!("../../sql/postgres/size.sql");
const PIN_WRITING: &str = include_str!("../../sql/postgres/pin_writing.sql");
const COSTLIEST: &str = include_str!("../../sql/postgres/costliest.sql");

/// Application names of connections that must close before statistics are read.
const CLAIMERS: &str = "claimers";
const STORES: &str = "stores";
const CLOSE_LIMIT: Duration = Duration::from_secs(30);
/// Connections that insert requests in parallel.
const FILLERS: u32 = 2;

/// A PostgreSQL server with one database at a time.
pub(crate) struct PostgresBackend {
    // Dropped in this order: the database before its server.
    pinned: Option<Client>,
    client: Option<Client>,
    database: Option<TestDatabase>,
    server: TestPostgres,
    cluster: Cluster,
}

impl PostgresBackend {
    /// Starts a server with durable commits and enough memory for the largest case.
    pub(crate) fn start(autovacuum: Autovacuum) -> Result<Self> {
        let vacuums = match autovacuum {
            Autovacuum::Off => "off",
            Autovacuum::On => "on",
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
            _ => anyhow::bail!("the database was not filled yet"),
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
        for group in &fill.workspace_groups {
            let (first, last) = (
                i64::from(group.first),
                i64::from(group.first + group.count) - 1,
            );
            let limit = i32::try_from(group.limit)?;
            client
                .execute(FILL_WORKSPACES, &[&first, &last, &limit, &group.paused])
                .await?;
        }
        let mut numbered = 0;
        for line in &fill.request_groups {
            fill_requests(database.url(), line, numbered).await?;
            numbered += i64::from(line.requests);
        }
        client.batch_execute(SETTLE).await?;
        client.batch_execute(CHECKPOINT).await?;
        self.client = Some(client);
        self.database = Some(database);
        Ok(())
    }

    async fn open(&mut self, claimers: usize) -> Result<Box<dyn OpenStore>> {
        let (database, _) = self.database()?;
        let monitor = connect(database.url()).await?;
        Ok(Box::new(OpenPostgres {
            before: touched(&monitor).await?,
            store: Arc::new(PostgresStore::new(&PostgresOptions {
                max_connections: claimers,
                ..PostgresOptions::new(format!("{}?application_name={CLAIMERS}", database.url()))
            })?),
            monitor,
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

    async fn checkpoint(&mut self) -> Result<()> {
        let (_, client) = self.database()?;
        client.batch_execute(VACUUM).await?;
        Ok(client.batch_execute(CHECKPOINT).await?)
    }

    async fn size(&mut self) -> Result<DatabaseSize> {
        let (_, client) = self.database()?;
        // Connections that are still open have reported most of their statistics.
        ended(client, STORES).await;
        let row = client.query_one(SIZE, &[]).await?;
        Ok(DatabaseSize {
            dead_total: Some(row.get(0)),
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
        let monitor = connect(self.database()?.0.url()).await?;
        // Without pg_stat_statements the server counts no statements; everything else is measured.
        let counts = monitor.batch_execute(COUNT_STATEMENTS).await.is_ok()
            && monitor.batch_execute(FORGET_STATEMENTS).await.is_ok();
        let server = self.cluster.server_pid();
        Ok(Box::new(PostgresMeter {
            monitor,
            counts,
            server,
        }))
    }

    async fn pin(&mut self, pin: HorizonPin) -> Result<()> {
        let client = connect(self.database()?.0.url()).await?;
        client.batch_execute(SNAPSHOT).await?;
        if pin == HorizonPin::Writer {
            client.batch_execute(PIN_WRITING).await?;
        }
        self.pinned = Some(client);
        Ok(())
    }
}

struct OpenPostgres {
    store: Arc<PostgresStore>,
    monitor: Client,
    before: i64,
}

#[async_trait]
impl OpenStore for OpenPostgres {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn claimed(&self) {}

    /// Closes the store's connections and waits for them, because a connection reports its statistics when it ends.
    async fn close(self: Box<Self>, admitted: u32) -> Result<f64> {
        let Self {
            store,
            monitor,
            before,
        } = *self;
        drop(store);
        ensure!(
            ended(&monitor, CLAIMERS).await,
            "the claimers' connections are still open"
        );
        let touched = touched(&monitor).await? - before;
        Ok(touched as f64 / f64::from(admitted.max(1)))
    }
}

struct PostgresMeter {
    monitor: Client,
    counts: bool,
    server: Option<u32>,
}

#[async_trait]
impl Meter for PostgresMeter {
    async fn read(&self) -> Result<Reading> {
        let written = self.monitor.query_one(WRITTEN, &[]).await?;
        let mut reading = Reading {
            log_bytes: Some(written.get(0)),
            transactions: Some(written.get(1)),
            cpu: self.server.and_then(cpu::tree_seconds),
            ..Reading::default()
        };
        if self.counts {
            let row = self.monitor.query_one(STATEMENTS, &[]).await?;
            reading.statements = Some(row.get(0));
            reading.touched = Some(row.get(1));
        }
        Ok(reading)
    }

    async fn statements(&self) -> Result<Vec<StatementCost>> {
        if !self.counts {
            return Ok(Vec::new());
        }
        let rows = self.monitor.query(COSTLIEST, &[]).await?;
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

/// Waits until no connection with this application name is left; false after the timeout.
async fn ended(monitor: &Client, name: &str) -> bool {
    eventually(CLOSE_LIMIT, async || {
        let row = monitor.query_one(CONNECTED, &[&name]).await;
        row.is_ok_and(|row| row.get::<_, i64>(0) == 0)
    })
    .await
}

async fn touched(monitor: &Client) -> Result<i64> {
    Ok(monitor.query_one(TOUCHED, &[]).await?.get(0))
}

async fn fill_requests(url: &str, line: &RequestGroup, numbered: i64) -> Result<()> {
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

/// Connects without TLS, and finds Leasehold's tables by their plain names.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let mut config: tokio_postgres::Config = url.parse()?;
    config.options("-csearch_path=leasehold,public");
    let (client, connection) = config.connect(NoTls).await?;
    // The client's calls report a broken connection.
    tokio::spawn(connection);
    Ok(client)
}
