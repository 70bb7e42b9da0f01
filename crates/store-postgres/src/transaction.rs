//! Runs prepared statements in one transaction, for operations that need more than one statement. Knows no table.

use crate::error::postgres;
use crate::pool::{self, Connection};
use crate::store::{Params, PostgresStore};
use deadpool_postgres::{Object, Transaction};
use leasehold_store::Result;
use tokio_postgres::{Row, Statement};

/// An open transaction of the operation `context`; rolled back if it is dropped.
pub(crate) struct OpenTransaction<'a> {
    pub(crate) inner: Transaction<'a>,
    pub(crate) context: &'static str,
}

/// Takes a connection from the pool for an operation that needs a transaction.
pub(crate) async fn connection(store: &PostgresStore, context: &'static str) -> Result<Connection> {
    pool::take(&store.pool, context).await
}

impl<'a> OpenTransaction<'a> {
    pub(crate) async fn begin(client: &'a mut Object, context: &'static str) -> Result<Self> {
        let inner = client.transaction().await.map_err(postgres(context))?;
        Ok(Self { inner, context })
    }

    pub(crate) async fn prepare(&self, sql: &str) -> Result<Statement> {
        let prepared = self.inner.prepare_cached(sql).await;
        prepared.map_err(postgres(self.context))
    }

    pub(crate) async fn query(
        &self,
        statement: &Statement,
        params: &Params<'_>,
    ) -> Result<Vec<Row>> {
        let rows = self.inner.query(statement, params).await;
        rows.map_err(postgres(self.context))
    }

    pub(crate) async fn many(&self, sql: &str, params: &Params<'_>) -> Result<Vec<Row>> {
        let statement = self.prepare(sql).await?;
        self.query(&statement, params).await
    }

    pub(crate) async fn one(&self, sql: &str, params: &Params<'_>) -> Result<Row> {
        let statement = self.prepare(sql).await?;
        let row = self.inner.query_one(&statement, params).await;
        row.map_err(postgres(self.context))
    }

    pub(crate) async fn execute(&self, sql: &str, params: &Params<'_>) -> Result<u64> {
        let statement = self.prepare(sql).await?;
        let touched = self.inner.execute(&statement, params).await;
        touched.map_err(postgres(self.context))
    }

    pub(crate) async fn commit(self) -> Result<()> {
        self.inner.commit().await.map_err(postgres(self.context))
    }
}
