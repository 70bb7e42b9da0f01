//! Reader threads, each with its own connection. A read sees everything committed before the call. Knows no table.

use crate::answer::{Answer, ErasedQuery};
use crate::broken_items::BrokenItemLog;
use crate::connection::open_reader;
use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::read_limit::{self, ReadLimit};
use crate::session::Session;
use leasehold_store::{Clock, Condition, Error, ErrorKind, Result};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

struct ReadTask {
    context: &'static str,
    query: Box<dyn FnOnce(&Session<'_>) + Send>,
}

/// Handle of the reader threads. Dropping it ends them after their current query, drops the queued ones and closes the
/// connections.
pub(crate) struct Readers {
    sender: Option<mpsc::Sender<ReadTask>>,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    timeout: Duration,
}

impl Readers {
    pub(crate) fn start(file: &Path, options: &SqliteOptions) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut readers = Self {
            sender: Some(sender),
            stopping: Arc::default(),
            threads: Vec::new(),
            timeout: options.read_timeout,
        };
        for number in 0..options.readers.max(1) {
            let opened = |fault: Fault| fault.during("open");
            let mut connection = open_reader(file, options).map_err(opened)?;
            let limit =
                ReadLimit::install(&mut connection).map_err(|error| opened(error.into()))?;
            let mut reader = Reader {
                connection,
                clock: options.clock.clone(),
                limit,
                timeout: options.read_timeout,
                broken: BrokenItemLog::default(),
            };
            let (receiver, stopping) = (Arc::clone(&receiver), Arc::clone(&readers.stopping));
            let thread = std::thread::Builder::new()
                .name(format!("leasehold-sqlite-reader-{number}"))
                .spawn(move || reader.serve(&receiver, &stopping))
                .map_err(|error| {
                    Error::new("open", ErrorKind::Unavailable(error.to_string())).because(error)
                })?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// Runs a query on the next free reader and waits for its answer.
    pub(crate) async fn read(&self, context: &'static str, query: ErasedQuery) -> Result<Answer> {
        let stopped = || {
            let text = "the SQLite reader threads have stopped; restart the server".to_owned();
            Error::new(context, ErrorKind::Unavailable(text))
        };
        let (reply, answer) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(stopped)?;
        sender
            .send(ReadTask {
                context,
                query: Box::new(move |session| {
                    // The caller may have stopped waiting while the query was queued.
                    if !reply.is_closed() {
                        let _ = reply.send(query(session));
                    }
                }),
            })
            .map_err(|_| stopped())?;
        // A query that panicked dropped its reply.
        let panicked = || ErrorKind::Broken("the query panicked".to_owned());
        answer
            .await
            .map_err(|_| Error::new(context, panicked()))?
            .map_err(|fault| {
                if !fault.is_interrupted() {
                    return fault.during(context);
                }
                let limit = read_limit::limit(context, self.timeout);
                let text = format!("the read took longer than {limit:?}");
                Error::new(context, Condition::Interrupted.kind(text))
            })
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.sender.take());
        for thread in self.threads.drain(..) {
            // The panic hook has reported a panic already; wait only for the thread to end.
            let _ = thread.join();
        }
    }
}

/// A reader thread's connection.
struct Reader {
    connection: Connection,
    clock: Clock,
    limit: ReadLimit,
    timeout: Duration,
    broken: BrokenItemLog,
}

impl Reader {
    fn serve(&mut self, receiver: &Mutex<mpsc::Receiver<ReadTask>>, stopping: &AtomicBool) {
        loop {
            // The lock covers only the receive, not the query.
            let task = receiver
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(ReadTask { context, query }) = task else {
                return;
            };
            if stopping.load(Ordering::Relaxed) {
                return;
            }
            self.limit.begin(read_limit::limit(context, self.timeout));
            let session = Session::new(&self.connection, &self.clock);
            // The caller detects a panic by its dropped reply.
            let _ = catch_unwind(AssertUnwindSafe(|| query(&session)));
            self.limit.end();
            self.broken.log(context, session.take_broken());
        }
    }
}
