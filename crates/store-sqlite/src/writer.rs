//! The writer thread and its group commit: one commit makes all operations of a group durable. Knows no table.
//!
//! Each operation runs in its own savepoint, so a failure or panic rolls back only that operation. Callers get their
//! answers after the commit.

use crate::answer::{Answer, ErasedQuery, erase, restore};
use crate::broken_items::BrokenItemLog;
use crate::error::Fault;
use crate::notification::{Notifiers, NotifyTarget};
use crate::options::SqliteOptions;
use crate::session::{Session, caught};
use leasehold_store::sql;
use leasehold_store::{Error, ErrorKind, Result};
use rusqlite::Connection;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

#[cfg(test)]
mod tests;

const BEGIN: &str = sql!("transaction/begin");
const COMMIT: &str = sql!("transaction/commit");
const ROLLBACK: &str = sql!("transaction/rollback");
const SAVEPOINT: &str = sql!("transaction/savepoint");
const SAVEPOINT_RELEASE: &str = sql!("transaction/savepoint_release");
const SAVEPOINT_ROLLBACK: &str = sql!("transaction/savepoint_rollback");

/// An operation's answer, and whether its writes are committed or rolled back.
pub(crate) enum Effect<T> {
    /// Commits the writes.
    Commit(T),
    /// Rolls the writes back: the answer is an expected rejection, not an error.
    Rollback(T),
}

impl<T: Send + 'static> Effect<T> {
    fn erase(self) -> Effect<Answer> {
        match self {
            Self::Commit(answer) => Effect::Commit(Box::new(answer)),
            Self::Rollback(answer) => Effect::Rollback(Box::new(answer)),
        }
    }
}

type ErasedOperation =
    Box<dyn FnOnce(&Session<'_>) -> std::result::Result<Effect<Answer>, Fault> + Send>;

/// Handle of the writer thread. Dropping it ends the thread and closes its connection.
pub(crate) struct Writer {
    sender: Option<mpsc::Sender<QueuedOperation>>,
    notifiers: Arc<Notifiers>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, options: &SqliteOptions) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(options.max_waiting.max(1));
        let notifiers: Arc<Notifiers> = Arc::default();
        let mut writer_loop = WriterLoop {
            connection,
            options: options.clone(),
            notifiers: Arc::clone(&notifiers),
            receiver,
            broken: BrokenItemLog::default(),
        };
        let thread = std::thread::Builder::new()
            .name("leasehold-sqlite-writer".to_owned())
            .spawn(move || writer_loop.run())
            .map_err(|error| {
                Error::new("open", ErrorKind::Unavailable(error.to_string())).because(error)
            })?;
        Ok(Self {
            sender: Some(sender),
            notifiers,
            thread: Some(thread),
        })
    }

    /// Returns the notifiers that wake waiting services and workers after a commit.
    pub(crate) fn notifiers(&self) -> &Notifiers {
        &self.notifiers
    }

    /// Runs an operation in a group and returns its answer once the group is durable.
    pub(crate) async fn write<T, F>(&self, context: &'static str, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        let answer = self.write_erased(context, erase(operation)).await?;
        restore(context, answer)
    }

    /// Runs an operation in a group and returns its answer once the group is durable.
    pub(crate) async fn write_erased(
        &self,
        context: &'static str,
        operation: ErasedQuery,
    ) -> Result<Answer> {
        let operation = Box::new(|session: &Session<'_>| operation(session).map(Effect::Commit));
        let answer = self.queue(context, operation).await?;
        answer.await.map_err(|_| stopped(context))?
    }

    /// Runs an operation that may roll its writes back and still return an answer.
    pub(crate) async fn write_or_rollback<T, F>(
        &self,
        context: &'static str,
        operation: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault> + Send + 'static,
    {
        self.send(context, operation).await?.wait().await
    }

    /// Queues an operation. Operations run in the order they were queued. Waits while the queue is full.
    pub(crate) async fn send<T, F>(&self, context: &'static str, operation: F) -> Result<Reply<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault> + Send + 'static,
    {
        let operation = Box::new(|session: &Session<'_>| operation(session).map(Effect::erase));
        Ok(Reply {
            context,
            answer: self.queue(context, operation).await?,
            answer_type: PhantomData,
        })
    }

    async fn queue(
        &self,
        context: &'static str,
        operation: ErasedOperation,
    ) -> Result<oneshot::Receiver<Result<Answer>>> {
        let (reply, answer) = oneshot::channel();
        let queued = QueuedOperation {
            context,
            operation: Some(operation),
            outcome: None,
            notifications: Vec::new(),
            reply,
        };
        let sender = self.sender.as_ref().ok_or_else(|| stopped(context))?;
        let sent = sender.send(queued).await;
        sent.map_err(|_| stopped(context))?;
        Ok(answer)
    }
}

fn stopped(context: &'static str) -> Error {
    let text = "the SQLite writer thread has stopped; restart the server".to_owned();
    Error::new(context, ErrorKind::Unavailable(text))
}

/// The pending answer of a queued operation.
pub(crate) struct Reply<T> {
    context: &'static str,
    answer: oneshot::Receiver<Result<Answer>>,
    answer_type: PhantomData<fn() -> T>,
}

impl<T: 'static> Reply<T> {
    /// Waits until the operation's group is durable and returns its answer.
    pub(crate) async fn wait(self) -> Result<T> {
        let answer = self.answer.await.map_err(|_| stopped(self.context))??;
        restore(self.context, answer)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic already; wait only for the thread to end.
            let _ = thread.join();
        }
    }
}

/// An operation in the writer's queue.
struct QueuedOperation {
    context: &'static str,
    operation: Option<ErasedOperation>,
    outcome: Option<Result<Answer>>,
    notifications: Vec<NotifyTarget>,
    reply: oneshot::Sender<Result<Answer>>,
}

impl QueuedOperation {
    /// Runs the operation in a savepoint and stores its outcome. Returns whether its group can still be committed.
    fn run(&mut self, session: &Session<'_>) -> bool {
        let Some(operation) = self.operation.take() else {
            return true;
        };
        let outcome = run_in_savepoint(session, operation);
        let is_intact = !matches!(&outcome, Err(failure) if failure.spoils_group);
        self.outcome = Some(outcome.map_err(|failure| failure.fault.during(self.context)));
        self.notifications = session.take_notifications();
        is_intact
    }

    /// Sends notifications and the answer, given the outcome of the group's commit.
    fn respond(self, group: &std::result::Result<(), ErrorKind>, notifiers: &Notifiers) {
        let failed = |kind: ErrorKind| Err(Error::new(self.context, kind));
        let outcome = match (self.outcome, group) {
            (Some(Ok(_)), Err(kind)) => failed(kind.clone()),
            (Some(outcome), _) => outcome,
            (None, Err(kind)) => failed(kind.clone()),
            (None, Ok(())) => failed(ErrorKind::Broken("the operation did not run".to_owned())),
        };
        if outcome.is_ok() {
            for target in &self.notifications {
                notifiers.notify(*target);
            }
        }
        // The caller may have stopped waiting; the writes stay committed.
        let _ = self.reply.send(outcome);
    }
}

/// How an operation failed.
struct Failure {
    fault: Fault,
    /// Whether the writes of the operation could not be rolled back, so its group must not be committed.
    spoils_group: bool,
}

fn run_in_savepoint(
    session: &Session<'_>,
    operation: ErasedOperation,
) -> std::result::Result<Answer, Failure> {
    let spoiled = |fault| Failure {
        fault,
        spoils_group: true,
    };
    session.run(SAVEPOINT, []).map_err(spoiled)?;
    // The savepoint rolls back what a panicking operation wrote.
    let outcome = caught(|| operation(session));
    let roll_back = || {
        session.take_notifications();
        session.run(SAVEPOINT_ROLLBACK, [])?;
        session.run(SAVEPOINT_RELEASE, [])
    };
    match outcome {
        Ok(Effect::Commit(answer)) => session
            .run(SAVEPOINT_RELEASE, [])
            .map(|_| answer)
            .map_err(spoiled),
        Ok(Effect::Rollback(answer)) => roll_back().map(|_| answer).map_err(spoiled),
        Err(fault) => Err(match roll_back() {
            Ok(_) => Failure {
                fault,
                spoils_group: false,
            },
            Err(rollback) => spoiled(cause(fault, rollback)),
        }),
    }
}

/// Returns why an operation's writes could not be rolled back. If its own error made SQLite roll back the whole transaction, the rollback found no savepoint;
/// otherwise the rollback met the trouble, for example a full disk.
fn cause(operation: Fault, rollback: Fault) -> Fault {
    if operation.is_of_store() {
        operation
    } else {
        rollback
    }
}

/// Returns why SQLite rolled the transaction back: the error of the last operation, if that rolls back.
fn rollback_cause(last: Option<&QueuedOperation>) -> ErrorKind {
    match last.and_then(|operation| operation.outcome.as_ref()) {
        Some(Err(error)) if error.is_retryable() => error.kind.clone(),
        _ => ErrorKind::Broken("SQLite rolled back the transaction".to_owned()),
    }
}

/// The loop of the writer thread: takes queued operations and commits them in groups.
struct WriterLoop {
    connection: Connection,
    options: SqliteOptions,
    notifiers: Arc<Notifiers>,
    receiver: mpsc::Receiver<QueuedOperation>,
    broken: BrokenItemLog,
}

impl WriterLoop {
    fn run(&mut self) {
        while let Some(first) = self.receiver.blocking_recv() {
            let mut group = Vec::new();
            let outcome = self
                .commit_group(first, &mut group)
                .map_err(|fault| fault.kind());
            if outcome.is_err() && !self.connection.is_autocommit() {
                // If this fails, the next group tries it again.
                let _ = self.session().run(ROLLBACK, []);
            }
            for operation in group {
                operation.respond(&outcome, &self.notifiers);
            }
        }
    }

    fn commit_group(
        &mut self,
        first: QueuedOperation,
        group: &mut Vec<QueuedOperation>,
    ) -> std::result::Result<(), Fault> {
        group.push(first);
        if !self.connection.is_autocommit() {
            self.session().run(ROLLBACK, [])?;
        }
        self.session().run(BEGIN, [])?;
        let begun = Instant::now();
        loop {
            let mut is_intact = true;
            if let Some(operation) = group.last_mut() {
                let session = Session::new(&self.connection, &self.options.clock);
                is_intact = operation.run(&session);
                self.broken.log(operation.context, session.take_broken());
            }
            // Errors such as a full disk make SQLite roll back the whole transaction.
            if !is_intact || self.connection.is_autocommit() {
                return Err(rollback_cause(group.last()).into());
            }
            if group.len() >= self.options.max_group.max(1)
                || begun.elapsed() >= self.options.max_group_time
            {
                break;
            }
            match self.receiver.try_recv() {
                Ok(next) => group.push(next),
                Err(_) => break,
            }
        }
        self.session().run(COMMIT, []).map(|_| ())
    }

    fn session(&self) -> Session<'_> {
        Session::new(&self.connection, &self.options.clock)
    }
}
