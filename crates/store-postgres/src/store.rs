//! The store: holds the connection pool, and runs a statement on one of its connections. Knows no table.

use crate::epoch::{self, Epochs};
use crate::event_log::LogAdvance;
use crate::graph::UnendedExecutions;
use crate::job::Jobs;
use crate::job::expiry_scan::ExpiryScan;
use crate::job::notification::JobNotifier;
use crate::notification::Notifier;
use crate::options::PostgresOptions;
use crate::pool::{self, Connection, Connections, Purpose};
use crate::prune::PruneScan;
use crate::schema::Schema;
use leasehold_core::Timestamp;
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::definition::VersionCache;
use leasehold_store::{Clock, PerEpoch, Result};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tokio_postgres::Row;

pub(crate) use crate::param::Params;
/// The text of `sql/<noun>/<verb>.sql`.
pub(crate) use leasehold_store::sql;

/// A store in PostgreSQL. Clones share the connection pool and the notifications.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) pool: Connections,
    /// Connections for renewals and locks only.
    heartbeats: Connections,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) job_notifier: Arc<JobNotifier>,
    /// The scans for expired claims of requests.
    pub(crate) request_expiry: Arc<PerEpoch<Mutex<ExpiryScan>>>,
    /// Whether every ready workspace can be claimed: none has a turn row that was last written in another cluster.
    pub(crate) turns_adopted: Arc<PerEpoch<AtomicBool>>,
    pub(crate) prune_scan: Arc<Mutex<PruneScan>>,
    pub(crate) log_advance: Arc<Mutex<LogAdvance>>,
    pub(crate) versions: Arc<PerEpoch<VersionCache>>,
    pub(crate) unended: Arc<UnendedExecutions>,
    pub(crate) crash_markers: CrashMarkers,
    clock: Clock,
}

impl PostgresStore {
    /// Creates the store without connecting; the first operation connects. Call [`schema_migrate`](leasehold_store::SchemaStore::schema_migrate) before other operations.
    pub fn new(options: &PostgresOptions) -> Result<Self> {
        let address = pool::address(options)?;
        let schema = Schema::new(&options.schema)?;
        let listened = options.listens().then(|| address.clone());
        let epochs = Arc::new(Epochs::new(options.opens_epochs));
        let build =
            |purpose| pool::build(options, address.clone(), schema.clone(), &epochs, purpose);
        Ok(Self {
            pool: build(Purpose::Calls)?,
            heartbeats: build(Purpose::Heartbeats)?,
            epochs: Arc::clone(&epochs),
            notifier: Arc::new(Notifier::new(listened.clone())),
            jobs: Arc::new(Jobs::new(options.max_connections)),
            job_notifier: Arc::new(JobNotifier::new(listened)),
            request_expiry: Arc::default(),
            turns_adopted: Arc::default(),
            prune_scan: Arc::default(),
            log_advance: Arc::default(),
            versions: Arc::default(),
            unended: Arc::default(),
            crash_markers: CrashMarkers::default(),
            clock: options.clock.clone(),
        })
    }

    /// Marks the computation of inputs with these markers.
    #[must_use]
    pub fn with_crash_markers(mut self, markers: CrashMarkers) -> Self {
        self.crash_markers = markers;
        self
    }

    /// Returns the time of a test's manual clock; none: statements use the database's clock.
    pub(crate) fn given_now(&self) -> Option<Timestamp> {
        self.clock.now()
    }

    /// Runs a statement on a connection for heartbeats, so that it does not wait for calls.
    pub(crate) async fn heartbeat(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>> {
        epoch::repeated(async || {
            let client = self.heartbeat_connection(context).await?;
            client.session().many(sql, params).await
        })
        .await
    }

    /// Takes a connection for heartbeats.
    pub(crate) async fn heartbeat_connection(&self, context: &'static str) -> Result<Connection> {
        pool::take(&self.heartbeats, context).await
    }

    pub(crate) async fn many(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>> {
        epoch::repeated(async || {
            let client = pool::take(&self.pool, context).await?;
            client.session().many(sql, params).await
        })
        .await
    }

    pub(crate) async fn maybe(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Option<Row>> {
        Ok(self.many(context, sql, params).await?.into_iter().next())
    }

    pub(crate) async fn one(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Row> {
        epoch::repeated(async || {
            let client = pool::take(&self.pool, context).await?;
            client.session().one(sql, params).await
        })
        .await
    }

    pub(crate) async fn execute(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<u64> {
        epoch::repeated(async || {
            let client = pool::take(&self.pool, context).await?;
            client.session().execute(sql, params).await
        })
        .await
    }
}
