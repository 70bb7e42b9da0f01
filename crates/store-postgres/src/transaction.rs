//! One transaction, for operations that need more than one statement. Knows no table.

use crate::error::postgres;
use crate::param::Params;
use crate::pool::{self, Connection};
use crate::session::{OpenGuard, Session};
use crate::store::PostgresStore;
use bytes::Bytes;
use futures::{SinkExt, pin_mut};
use leasehold_store::Result;
use tokio_postgres::Row;

/// An open transaction of the operation `context`; rolled back if it is dropped.
pub(crate) struct OpenTransaction<'a> {
    session: Session<'a>,
    guard: OpenGuard<'a>,
    pub(crate) context: &'static str,
    /// Added to transaction numbers in jobs.
    pub(crate) job_xid_offset: i64,
}

/// Takes a connection from the pool for an operation that needs a transaction.
pub(crate) async fn connection(store: &PostgresStore, context: &'static str) -> Result<Connection> {
    pool::take(&store.pool, context).await
}

impl<'a> OpenTransaction<'a> {
    /// Begins a transaction of the operation for which the connection was taken. It sees what others committed while it waited for a lock, whatever
    /// the database's default isolation is.
    pub(crate) async fn begin(client: &'a mut Connection) -> Result<Self> {
        let job_xid_offset = client.job_xid_offset();
        let session = client.session().in_transaction();
        let context = session.context;
        let guard = OpenGuard::new(session.client());
        session.begin().await.map_err(postgres(context))?;
        Ok(Self {
            session,
            guard,
            context,
            job_xid_offset,
        })
    }

    /// Returns a session for functions that also run outside a transaction.
    pub(crate) fn session(&self) -> Session<'_> {
        self.session
    }

    /// Whether it may use `COPY`.
    pub(crate) fn can_copy(&self) -> bool {
        self.session.is_direct()
    }

    pub(crate) async fn many(&self, sql: &'static str, params: &Params<'_>) -> Result<Vec<Row>> {
        self.session.many(sql, params).await
    }

    pub(crate) async fn one(&self, sql: &'static str, params: &Params<'_>) -> Result<Row> {
        self.session.one(sql, params).await
    }

    pub(crate) async fn execute(&self, sql: &'static str, params: &Params<'_>) -> Result<u64> {
        self.session.execute(sql, params).await
    }

    /// Runs a `COPY … FROM STDIN` statement with this document, if [`can_copy`](Self::can_copy).
    pub(crate) async fn copy_in(&self, sql: &'static str, document: Bytes) -> Result<()> {
        let copied = async {
            let client = self.session.client();
            let statement = client.prepare_cached(&self.session.statement(sql)).await?;
            let sink = client.copy_in::<_, Bytes>(&statement).await?;
            pin_mut!(sink);
            sink.send(document).await?;
            sink.finish().await
        };
        copied.await.map(drop).map_err(postgres(self.context))
    }

    /// Runs a script of statements without parameters. `name`: what it is, for an error.
    pub(crate) async fn script(&self, name: &'static str, text: &str) -> Result<()> {
        let text = self.session.script(text);
        let run = self.session.client().batch_execute(&text).await;
        run.map_err(postgres(name))
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.guard.commit().await.map_err(postgres(self.context))
    }

    pub(crate) async fn rollback(mut self) -> Result<()> {
        self.guard.rollback().await.map_err(postgres(self.context))
    }
}
