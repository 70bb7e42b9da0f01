//! Runs statements on a connection, each as a transaction or in an open one: names the schema in them, prepares them and maps the driver's errors.
//! Nothing else calls the driver with a statement of a noun. Knows no table.

use crate::epoch::{Epoch, Epochs};
use crate::error::{is_of_other_epoch, postgres, unexpected_rows};
use crate::options::Pooler;
use crate::param::Params;
use crate::schema::{self, Schema};
use deadpool_postgres::ClientWrapper;
use futures::future::{FutureExt, maybe_done};
use futures::{TryStreamExt, join, poll};
use leasehold_store::{Result, sql};
use std::pin::pin;
use std::task::Poll;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, RowStream, Statement};

const BACKEND: &str = sql!("session/backend");
const CONFIGURE: &str = sql!("session/configure");
const CHECK_EPOCH: &str = sql!("session/check_epoch");
const BEGIN: &str = sql!("session/begin");
const BEGIN_READ_COMMITTED: &str = sql!("session/begin_read_committed");
const COMMIT: &str = sql!("session/commit");
const ROLLBACK: &str = sql!("session/rollback");

type Driver<T> = std::result::Result<T, tokio_postgres::Error>;

/// The settings under which statements run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) pooler: Pooler,
    /// How long a statement waits for a lock.
    pub(crate) lock_timeout: &'static str,
}

impl Settings {
    /// Configures the session of a new connection. Behind a pooler other clients use the same session, so each transaction is configured instead.
    pub(crate) async fn configure_session(self, client: &ClientWrapper) -> Driver<()> {
        match self.pooler {
            Pooler::None => self.configure(client, false).await,
            Pooler::Transaction { .. } => Ok(()),
        }
    }

    async fn configure(self, client: &ClientWrapper, in_transaction: bool) -> Driver<()> {
        let params: [(&(dyn ToSql + Sync), Type); 2] = [
            (&in_transaction, Type::BOOL),
            (&self.lock_timeout, Type::TEXT),
        ];
        client.query_typed(CONFIGURE, &params).await.map(drop)
    }
}

/// The epoch that an operation knows, for transactions behind a pooler.
#[derive(Clone, Copy)]
pub(crate) struct KnownEpoch<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) epochs: &'a Epochs,
}

/// What an operation runs its statements on.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    client: &'a ClientWrapper,
    settings: Settings,
    schema: &'a Schema,
    /// Whether a transaction is open; otherwise each statement is one.
    in_transaction: bool,
    /// What each transaction behind a pooler compares with the server.
    known: Option<KnownEpoch<'a>>,
    /// The operation, for errors.
    pub(crate) context: &'static str,
}

/// What a statement returned.
struct Answer {
    rows: Vec<Row>,
    /// The number of rows that it returned or changed.
    count: u64,
}

/// Rolls the open transaction of a connection back when it is dropped, unless the transaction was ended.
pub(crate) struct OpenGuard<'a> {
    client: &'a ClientWrapper,
    is_open: bool,
}

impl<'a> OpenGuard<'a> {
    pub(crate) fn new(client: &'a ClientWrapper) -> Self {
        Self {
            client,
            is_open: true,
        }
    }

    pub(crate) async fn commit(&mut self) -> Driver<()> {
        self.is_open = false;
        self.client.batch_execute(COMMIT).await
    }

    pub(crate) async fn rollback(&mut self) -> Driver<()> {
        self.is_open = false;
        self.client.batch_execute(ROLLBACK).await
    }
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // The driver sends a statement when its future is polled first; nothing waits for the answer.
            drop(self.client.batch_execute(ROLLBACK).now_or_never());
        }
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        client: &'a ClientWrapper,
        settings: Settings,
        schema: &'a Schema,
        context: &'static str,
    ) -> Self {
        Self {
            client,
            settings,
            schema,
            in_transaction: false,
            known: None,
            context,
        }
    }

    /// Returns the session for transactions that fail, behind a pooler, unless the server has this epoch.
    pub(crate) fn of_epoch(self, known: Option<KnownEpoch<'a>>) -> Self {
        Self { known, ..self }
    }

    /// Returns the session for statements in the transaction that [`begin`](Self::begin) opens.
    pub(crate) fn in_transaction(self) -> Self {
        Self {
            in_transaction: true,
            ..self
        }
    }

    /// Begins a transaction; the caller has a guard that ends it. It sees what others committed while it waited for a lock, whatever the database's
    /// default isolation is.
    pub(crate) async fn begin(self) -> Driver<()> {
        match self.settings.pooler {
            Pooler::None => self.client.batch_execute(BEGIN).await,
            Pooler::Transaction { .. } => {
                // Pipelined: one round trip.
                let begin = self.client.batch_execute(BEGIN_READ_COMMITTED);
                let configure = self.settings.configure(self.client, true);
                let (begun, configured, checked) = join!(begin, configure, self.check_epoch());
                begun.and(configured).and(checked)
            }
        }
    }

    /// Fails unless the server behind a pooler has the epoch that the operation knows. The pooler may have reconnected to another one.
    async fn check_epoch(self) -> Driver<()> {
        let Some(KnownEpoch { epoch, epochs }) = self.known else {
            return Ok(());
        };
        let params: [(&(dyn ToSql + Sync), Type); 2] = [
            (&epoch.server.started_at, Type::TIMESTAMPTZ),
            (&epoch.server.database, Type::OID),
        ];
        let text = self.statement(CHECK_EPOCH);
        let checked = self.client.query_typed(&text, &params).await.map(drop);
        if checked.as_ref().is_err_and(is_of_other_epoch) {
            epochs.end(epoch);
        }
        checked
    }

    /// Whether statements may use what only the session of a direct connection has.
    pub(crate) fn is_direct(self) -> bool {
        self.settings.pooler == Pooler::None
    }

    pub(crate) fn client(self) -> &'a ClientWrapper {
        self.client
    }

    /// Returns a script for the schema.
    pub(crate) fn script(self, text: &str) -> String {
        self.schema.script(text)
    }

    /// Returns a statement for the schema.
    pub(crate) fn statement(self, sql: &'static str) -> schema::Statement {
        self.schema.statement(sql)
    }

    /// Prepares the statement, unless the pooler does not know prepared statements.
    pub(crate) async fn prepare(self, text: &str) -> Driver<Option<Statement>> {
        match self.settings.pooler {
            Pooler::Transaction {
                prepared_statements: false,
            } => Ok(None),
            Pooler::None | Pooler::Transaction { .. } => {
                self.client.prepare_cached(text).await.map(Some)
            }
        }
    }

    async fn answer(
        self,
        prepared: Option<&Statement>,
        text: &str,
        params: &Params<'_>,
    ) -> Driver<Answer> {
        let values = params.iter().map(|param| *param as &(dyn ToSql + Sync));
        let types = params.iter().map(|param| param.sql_type());
        let stream: RowStream = match prepared {
            Some(statement) => {
                debug_assert!(
                    types.eq(statement.params().iter().cloned()),
                    "{}: the server expects {:?} in: {text}",
                    self.context,
                    statement.params()
                );
                self.client.query_raw(statement, values).await?
            }
            None => self.client.query_typed_raw(text, values.zip(types)).await?,
        };
        let mut stream = pin!(stream);
        let rows: Vec<Row> = stream.as_mut().try_collect().await?;
        let count = stream.rows_affected().unwrap_or_default();
        Ok(Answer { rows, count })
    }

    /// Runs a statement as a transaction behind a pooler. Begin, statement and commit are pipelined: one round trip, two when the statement is first
    /// prepared on the connection.
    async fn answer_in_own_transaction(self, text: &str, params: &Params<'_>) -> Driver<Answer> {
        let mut guard = OpenGuard::new(self.client);
        let mut begin = pin!(maybe_done(self.begin()));
        // Sends it, so that it comes before what follows.
        let _ = poll!(begin.as_mut());
        let mut prepare = pin!(self.prepare(text));
        let prepared = match poll!(prepare.as_mut()) {
            Poll::Ready(prepared) => prepared,
            // The connection reads on only while all its answers are taken.
            Poll::Pending => join!(begin.as_mut(), prepare).1,
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // A transaction that did not begin is the cause.
                begin.as_mut().await;
                begin.as_mut().take_output().unwrap_or(Ok(()))?;
                return Err(error);
            }
        };
        let answer = self.answer(prepared.as_ref(), text, params);
        let ((), answer, committed) = join!(begin.as_mut(), answer, guard.commit());
        begin.as_mut().take_output().unwrap_or(Ok(()))?;
        let answer = answer?;
        committed?;
        Ok(answer)
    }

    async fn run(self, sql: &'static str, params: &Params<'_>) -> Result<Answer> {
        let text = self.statement(sql);
        let answer = if self.in_transaction || self.is_direct() {
            match self.prepare(&text).await {
                Ok(statement) => self.answer(statement.as_ref(), &text, params).await,
                Err(error) => Err(error),
            }
        } else {
            self.answer_in_own_transaction(&text, params).await
        };
        answer.map_err(postgres(self.context))
    }

    /// Returns all rows of a statement that a connection runs once, so that it is not worth preparing.
    pub(crate) async fn once(self, sql: &'static str, params: &Params<'_>) -> Driver<Vec<Row>> {
        let text = self.statement(sql);
        let answer = match self.is_direct() {
            true => self.answer(None, &text, params).await,
            false => self.answer_in_own_transaction(&text, params).await,
        };
        Ok(answer?.rows)
    }

    /// Returns the server process that runs statements of the connection. Needs no settings and no prepared statement.
    pub(crate) async fn backend(self) -> Result<i32> {
        let row = self.client.query_typed_one(BACKEND, &[]).await;
        Ok(row.map_err(postgres(self.context))?.get("pid"))
    }

    /// Returns all rows.
    pub(crate) async fn many(self, sql: &'static str, params: &Params<'_>) -> Result<Vec<Row>> {
        Ok(self.run(sql, params).await?.rows)
    }

    /// Returns the first row, if any.
    pub(crate) async fn maybe(self, sql: &'static str, params: &Params<'_>) -> Result<Option<Row>> {
        Ok(self.many(sql, params).await?.into_iter().next())
    }

    /// Returns the only row.
    pub(crate) async fn one(self, sql: &'static str, params: &Params<'_>) -> Result<Row> {
        let mut rows = self.many(sql, params).await?;
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (last, others) => {
                let count = others + usize::from(last.is_some());
                Err(unexpected_rows(self.context, count))
            }
        }
    }

    /// Runs a statement that PostgreSQL allows only outside a transaction. Behind a pooler it runs with the settings of the role.
    pub(crate) async fn outside_transaction(self, statement: &str) -> Result<()> {
        let ran = self.client.batch_execute(statement).await;
        ran.map_err(postgres(self.context))
    }

    /// Returns the number of rows that the statement changed.
    pub(crate) async fn execute(self, sql: &'static str, params: &Params<'_>) -> Result<u64> {
        Ok(self.run(sql, params).await?.count)
    }
}
