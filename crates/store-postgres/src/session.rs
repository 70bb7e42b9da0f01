//! Runs statements on a connection or in a transaction: names the schema in them, prepares them and maps the driver's errors. Nothing else calls the
//! driver with a statement of a noun. Knows no table.

use crate::error::postgres;
use crate::schema::Schema;
use deadpool_postgres::{ClientWrapper, Transaction};
use leasehold_store::Result;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

/// The parameters of a statement.
pub(crate) type Params<'a> = [&'a (dyn ToSql + Sync)];

/// What an operation runs its statements on.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    runner: Runner<'a>,
    schema: &'a Schema,
    /// The operation, for errors.
    pub(crate) context: &'static str,
}

#[derive(Clone, Copy)]
enum Runner<'a> {
    Connection(&'a ClientWrapper),
    Transaction(&'a Transaction<'a>),
}

impl<'a> Session<'a> {
    pub(crate) fn on_connection(
        client: &'a ClientWrapper,
        schema: &'a Schema,
        context: &'static str,
    ) -> Self {
        let runner = Runner::Connection(client);
        Self {
            runner,
            schema,
            context,
        }
    }

    pub(crate) fn in_transaction(
        transaction: &'a Transaction<'a>,
        schema: &'a Schema,
        context: &'static str,
    ) -> Self {
        let runner = Runner::Transaction(transaction);
        Self {
            runner,
            schema,
            context,
        }
    }

    async fn prepare(self, sql: &'static str) -> Result<Statement> {
        let text = self.schema.statement(sql);
        let prepared = match self.runner {
            Runner::Connection(client) => client.prepare_cached(&text).await,
            Runner::Transaction(transaction) => transaction.prepare_cached(&text).await,
        };
        prepared.map_err(postgres(self.context))
    }

    /// Returns all rows.
    pub(crate) async fn many(self, sql: &'static str, params: &Params<'_>) -> Result<Vec<Row>> {
        let statement = self.prepare(sql).await?;
        let rows = match self.runner {
            Runner::Connection(client) => client.query(&statement, params).await,
            Runner::Transaction(transaction) => transaction.query(&statement, params).await,
        };
        rows.map_err(postgres(self.context))
    }

    /// Returns the first row, if any.
    pub(crate) async fn maybe(self, sql: &'static str, params: &Params<'_>) -> Result<Option<Row>> {
        Ok(self.many(sql, params).await?.into_iter().next())
    }

    /// Returns the only row.
    pub(crate) async fn one(self, sql: &'static str, params: &Params<'_>) -> Result<Row> {
        let statement = self.prepare(sql).await?;
        let row = match self.runner {
            Runner::Connection(client) => client.query_one(&statement, params).await,
            Runner::Transaction(transaction) => transaction.query_one(&statement, params).await,
        };
        row.map_err(postgres(self.context))
    }

    /// Runs a statement that PostgreSQL allows only outside a transaction.
    pub(crate) async fn outside_transaction(self, statement: &str) -> Result<()> {
        let ran = match self.runner {
            Runner::Connection(client) => client.batch_execute(statement).await,
            Runner::Transaction(transaction) => transaction.batch_execute(statement).await,
        };
        ran.map_err(postgres(self.context))
    }

    /// Returns the number of rows that the statement changed.
    pub(crate) async fn execute(self, sql: &'static str, params: &Params<'_>) -> Result<u64> {
        let statement = self.prepare(sql).await?;
        let changed = match self.runner {
            Runner::Connection(client) => client.execute(&statement, params).await,
            Runner::Transaction(transaction) => transaction.execute(&statement, params).await,
        };
        changed.map_err(postgres(self.context))
    }
}
