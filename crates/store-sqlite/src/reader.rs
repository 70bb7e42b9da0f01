//! Threads that only read, each with a connection of its own: a read sees all that was committed before it was asked. Knows no table.

use crate::connection::open_reader;
use crate::error::Fault;
use crate::options::SqliteOptions;
use crate::session::Session;
use leasehold_store::{Clock, Error, ErrorKind, Result};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

type Question = Box<dyn FnOnce(&Session<'_>) + Send>;

/// The way to the threads that read. Dropping it ends them after the question under way, whatever still waits, and closes
/// their connections.
pub(crate) struct Readers {
    line: Option<mpsc::Sender<Question>>,
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(file: &Path, options: &SqliteOptions) -> Result<Self> {
        let (line, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut readers = Self {
            line: Some(line),
            ending: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..options.readers.max(1) {
            let connection = open_reader(file, options).map_err(|fault| fault.during("open"))?;
            let (waiting, clock) = (Arc::clone(&waiting), options.clock.clone());
            let ending = Arc::clone(&readers.ending);
            let thread = std::thread::Builder::new()
                .name(format!("leasehold-sqlite-reader-{number}"))
                .spawn(move || serve(&connection, &clock, &waiting, &ending))
                .map_err(|error| {
                    Error::new("open", ErrorKind::Unavailable(error.to_string())).because(error)
                })?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    pub(crate) async fn read<T, F>(&self, context: &'static str, question: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
    {
        let gone = || {
            let text = "the readers have stopped".to_owned();
            Error::new(context, ErrorKind::Unavailable(text))
        };
        let (reply, answer) = oneshot::channel();
        let line = self.line.as_ref().ok_or_else(gone)?;
        line.send(Box::new(move |session| {
            // Whoever asked may have gone away: while it waited in the line, or while it was answered.
            if !reply.is_closed() {
                let _ = reply.send(question(session));
            }
        }))
        .map_err(|_| gone())?;
        // A question that panicked dropped its reply.
        let broken = || ErrorKind::Broken("the read panicked".to_owned());
        answer
            .await
            .map_err(|_| Error::new(context, broken()))?
            .map_err(|fault| fault.during(context))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        drop(self.line.take());
        for thread in self.threads.drain(..) {
            // Its panic was reported where it happened; here only its end matters.
            let _ = thread.join();
        }
    }
}

fn serve(
    connection: &Connection,
    clock: &Clock,
    waiting: &Mutex<mpsc::Receiver<Question>>,
    ending: &AtomicBool,
) {
    loop {
        // Nothing is held while a question is answered: the lock is only for taking the next one.
        let question = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(question) = question else { return };
        if ending.load(Ordering::Relaxed) {
            return;
        }
        let session = Session::new(connection, clock);
        // The asker learns of a panic by its reply being dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| question(&session)));
    }
}
