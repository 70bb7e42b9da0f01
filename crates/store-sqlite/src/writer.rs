//! The one thread that writes, and its group commit: operations that wait together become durable together. Knows no table.
//!
//! Each operation runs in a savepoint of its own, so one that fails or panics takes back only what it did itself. Nobody
//! is answered before the commit.

use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::session::Session;
use crate::wake::{Bells, Ring};
use leasehold_store::sql;
use leasehold_store::{Error, ErrorKind, Result};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

#[cfg(test)]
mod tests;

const BEGIN: &str = sql!("transaction/begin");
const COMMIT: &str = sql!("transaction/commit");
const ROLLBACK: &str = sql!("transaction/rollback");
const OPERATION_BEGIN: &str = sql!("transaction/operation_begin");
const OPERATION_KEEP: &str = sql!("transaction/operation_keep");
const OPERATION_UNDO: &str = sql!("transaction/operation_undo");

/// What an operation answers, and whether what it wrote stays.
pub(crate) enum Effect<T> {
    /// It stays.
    Keep(T),
    /// The answer is an expected refusal: nothing was written after all.
    Undo(T),
}

/// The way to the thread that writes. Dropping it ends the thread and closes its connection.
pub(crate) struct Writer {
    line: Option<mpsc::Sender<Box<dyn Operation>>>,
    bells: Arc<Bells>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, options: &SqliteOptions) -> Result<Self> {
        let (line, waiting) = mpsc::channel(options.max_waiting.max(1));
        let bells: Arc<Bells> = Arc::default();
        let mut desk = Desk {
            connection,
            options: options.clone(),
            bells: Arc::clone(&bells),
            waiting,
        };
        let thread = std::thread::Builder::new()
            .name("leasehold-sqlite-writer".to_owned())
            .spawn(move || desk.serve())
            .map_err(|error| {
                Error::new("open", ErrorKind::Unavailable(error.to_string())).because(error)
            })?;
        Ok(Self {
            line: Some(line),
            bells,
            thread: Some(thread),
        })
    }

    /// What is rung after a commit that gives sleepers something to do.
    pub(crate) fn bells(&self) -> &Bells {
        &self.bells
    }

    /// Runs an operation in a group and answers when the group is durable.
    pub(crate) async fn write<T, F>(&self, context: &'static str, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        self.write_or_undo(context, |session| operation(session).map(Effect::Keep))
            .await
    }

    /// The same, for an operation that may take back what it wrote and answer all the same.
    pub(crate) async fn write_or_undo<T, F>(&self, context: &'static str, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault> + Send + 'static,
    {
        self.send(context, operation).await?.answer().await
    }

    /// Puts an operation into the line. Operations run in the order in which they were put there.
    pub(crate) async fn send<T, F>(&self, context: &'static str, operation: F) -> Result<Reply<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let write = Box::new(Write {
            context,
            operation: Some(operation),
            outcome: None,
            rings: Vec::new(),
            reply,
        });
        let line = self.line.as_ref().ok_or_else(|| stopped(context))?;
        let sent = line.send(write).await;
        sent.map_err(|_| stopped(context))?;
        Ok(Reply { context, answer })
    }
}

fn stopped(context: &'static str) -> Error {
    let text = "the writer has stopped".to_owned();
    Error::new(context, ErrorKind::Unavailable(text))
}

/// The answer of an operation that is in the line.
pub(crate) struct Reply<T> {
    context: &'static str,
    answer: oneshot::Receiver<Result<T>>,
}

impl<T> Reply<T> {
    /// Waits until the operation's group is durable.
    pub(crate) async fn answer(self) -> Result<T> {
        self.answer.await.map_err(|_| stopped(self.context))?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.line.take());
        if let Some(thread) = self.thread.take() {
            // Its panic was reported where it happened; here only its end matters.
            let _ = thread.join();
        }
    }
}

/// An operation in the line, whatever it answers.
trait Operation: Send {
    /// Runs it in a savepoint and keeps its outcome for later.
    fn run(&mut self, session: &Session<'_>);
    /// Rings and answers for it, now that it is known what became of the group.
    fn answer(self: Box<Self>, group: &std::result::Result<(), ErrorKind>, bells: &Bells);
}

struct Write<T, F> {
    context: &'static str,
    operation: Option<F>,
    outcome: Option<Result<T>>,
    rings: Vec<Ring>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Operation for Write<T, F>
where
    T: Send,
    F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault> + Send,
{
    fn run(&mut self, session: &Session<'_>) {
        if let Some(operation) = self.operation.take() {
            self.outcome = Some(guarded(session, operation).map_err(|f| f.during(self.context)));
            self.rings = session.take_rings();
        }
    }

    fn answer(self: Box<Self>, group: &std::result::Result<(), ErrorKind>, bells: &Bells) {
        let failed = |kind: ErrorKind| Err(Error::new(self.context, kind));
        let outcome = match (self.outcome, group) {
            (Some(Ok(_)), Err(kind)) => failed(kind.clone()),
            (Some(outcome), _) => outcome,
            (None, Err(kind)) => failed(kind.clone()),
            (None, Ok(())) => failed(ErrorKind::Broken("the operation was not run".to_owned())),
        };
        if outcome.is_ok() {
            self.rings.iter().for_each(|ring| bells.ring(*ring));
        }
        // Whoever asked may have gone away; what was written stays written.
        let _ = self.reply.send(outcome);
    }
}

fn guarded<T, F>(session: &Session<'_>, operation: F) -> std::result::Result<T, Fault>
where
    F: FnOnce(&Session<'_>) -> std::result::Result<Effect<T>, Fault>,
{
    session.run(OPERATION_BEGIN, [])?;
    // What a panic leaves half done is undone by the savepoint, so nobody sees it.
    let outcome = catch_unwind(AssertUnwindSafe(|| operation(session))).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(ErrorKind::Broken(format!("the operation panicked: {said}")).into())
    });
    let undo = || {
        session.take_rings();
        session.run(OPERATION_UNDO, [])?;
        session.run(OPERATION_KEEP, [])
    };
    match outcome {
        Ok(Effect::Keep(answer)) => session.run(OPERATION_KEEP, []).map(|_| answer),
        Ok(Effect::Undo(answer)) => undo().map(|_| answer),
        Err(fault) => {
            // Where even this fails SQLite has given the whole group up, which the group notices itself.
            let _ = undo();
            Err(fault)
        }
    }
}

/// Where the thread works.
struct Desk {
    connection: Connection,
    options: SqliteOptions,
    bells: Arc<Bells>,
    waiting: mpsc::Receiver<Box<dyn Operation>>,
}

impl Desk {
    fn serve(&mut self) {
        while let Some(first) = self.waiting.blocking_recv() {
            let mut group = Vec::new();
            let outcome = self.work(first, &mut group).map_err(|fault| fault.kind());
            if outcome.is_err() && !self.connection.is_autocommit() {
                // If this fails too, so does the next BEGIN, and its callers are told.
                let _ = self.session().run(ROLLBACK, []);
            }
            for operation in group {
                operation.answer(&outcome, &self.bells);
            }
        }
    }

    fn work(
        &mut self,
        first: Box<dyn Operation>,
        group: &mut Vec<Box<dyn Operation>>,
    ) -> std::result::Result<(), Fault> {
        group.push(first);
        self.session().run(BEGIN, [])?;
        let begun = Instant::now();
        loop {
            if let Some(operation) = group.last_mut() {
                operation.run(&Session::new(&self.connection, &self.options.clock));
            }
            // A full disk and its like make SQLite roll everything back at once.
            if self.connection.is_autocommit() {
                return Err(ErrorKind::Broken("SQLite gave the transaction up".to_owned()).into());
            }
            if group.len() >= self.options.max_group.max(1)
                || begun.elapsed() >= self.options.max_group_time
            {
                break;
            }
            match self.waiting.try_recv() {
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
