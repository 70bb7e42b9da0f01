//! The store itself: holds the pool, and runs a statement on one of its connections. Knows no table.

use crate::error::postgres;
use crate::job::Jobs;
use crate::job::wake::JobWakes;
use crate::options::PostgresOptions;
use crate::pool;
use crate::wake::Wakes;
use deadpool_postgres::{Object, Pool};
use leasehold_core::Timestamp;
use leasehold_store::definition::VersionCache;
use leasehold_store::{Clock, Result};
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

/// The text of `sql/<noun>/<verb>.sql`.
pub(crate) use leasehold_store::sql;

/// Everything kept in PostgreSQL. Clones share their connections.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) pool: Pool,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) job_wakes: Arc<JobWakes>,
    pub(crate) versions: Arc<VersionCache>,
    clock: Clock,
}

pub(crate) type Params<'a> = [&'a (dyn ToSql + Sync)];

impl PostgresStore {
    /// Prepares to connect; the first operation does. Call [`schema_migrate`](leasehold_store::SchemaStore::schema_migrate) before others.
    pub fn new(options: &PostgresOptions) -> Result<Self> {
        let address = pool::address(options)?;
        Ok(Self {
            pool: pool::build(options, address.clone())?,
            wakes: Arc::new(Wakes::new(options.notify.then_some(address.clone()))),
            jobs: Arc::new(Jobs::new(options.max_connections)),
            job_wakes: Arc::new(JobWakes::new(options.notify.then_some(address))),
            versions: Arc::default(),
            clock: options.clock.clone(),
        })
    }

    /// The test's time, or none for the database's.
    pub(crate) fn given_now(&self) -> Option<Timestamp> {
        self.clock.now()
    }

    async fn prepare(&self, context: &'static str, sql: &str) -> Result<(Object, Statement)> {
        let client = pool::take(&self.pool, context).await?;
        let statement = client
            .prepare_cached(sql)
            .await
            .map_err(postgres(context))?;
        Ok((client, statement))
    }

    pub(crate) async fn many(
        &self,
        context: &'static str,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>> {
        let (client, statement) = self.prepare(context, sql).await?;
        client
            .query(&statement, params)
            .await
            .map_err(postgres(context))
    }

    pub(crate) async fn maybe(
        &self,
        context: &'static str,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Option<Row>> {
        Ok(self.many(context, sql, params).await?.into_iter().next())
    }

    pub(crate) async fn one(
        &self,
        context: &'static str,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Row> {
        let (client, statement) = self.prepare(context, sql).await?;
        client
            .query_one(&statement, params)
            .await
            .map_err(postgres(context))
    }

    pub(crate) async fn execute(
        &self,
        context: &'static str,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<u64> {
        let (client, statement) = self.prepare(context, sql).await?;
        client
            .execute(&statement, params)
            .await
            .map_err(postgres(context))
    }
}
