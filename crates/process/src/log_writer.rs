//! Writes log lines on a separate thread in batches: a busy server logs thousands of lines per second. Knows nothing of their content.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Batching delay after a write. The first line after an idle period is written at once.
const FLUSH_DELAY: Duration = Duration::from_millis(5);
/// Maximum size of the buffer. When it is full, because standard error is not read, logging blocks, as it would without the thread.
const BUFFER_MAX_BYTES: usize = 1 << 20;

/// The writer of this process.
static GLOBAL: OnceLock<LogWriter> = OnceLock::new();

/// Accepts log lines.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when there are lines to write, or a flush is requested.
    work: Condvar,
    /// Notified after each write.
    written: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Whether the thread waits for a line without a timeout.
    idle: bool,
    /// Whether the thread is writing lines.
    writing: bool,
    /// Whether a flush waits, which skips the batching delay.
    flushing: bool,
}

impl LogWriter {
    /// Starts a writer to this output.
    pub(crate) fn to(output: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.run(output))?;
        Ok(Self(shared))
    }

    /// Makes this the writer that [`LogWriter::flush`] flushes.
    pub(crate) fn install(self) {
        let _ = GLOBAL.set(self);
    }

    /// Waits until all lines of this process are written.
    pub(crate) fn flush() {
        if let Some(writer) = GLOBAL.get() {
            writer.0.flush();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut output: impl Write) {
        let mut state = self.state();
        loop {
            while state.lines.is_empty() {
                state.idle = true;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.idle = false;
            state.writing = true;
            let lines = std::mem::take(&mut state.lines);
            drop(state);
            // There is no place to report that a log line was not written.
            let _ = output.write_all(&lines).and_then(|()| output.flush());
            state = self.state();
            state.writing = false;
            if state.lines.is_empty() {
                state.flushing = false;
            }
            self.written.notify_all();
            if !state.flushing && state.lines.len() < BUFFER_MAX_BYTES / 2 {
                let waited = self.work.wait_timeout(state, FLUSH_DELAY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        while state.lines.len() > BUFFER_MAX_BYTES {
            self.work.notify_one();
            state = self
                .written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.lines.extend_from_slice(line);
        if state.idle {
            state.idle = false;
            self.work.notify_one();
        }
    }

    fn flush(&self) {
        let mut state = self.state();
        while !state.lines.is_empty() || state.writing {
            state.flushing = true;
            self.work.notify_one();
            state = self
                .written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::mpsc;

    /// Reports each write, and blocks until the test lets it continue.
    struct BlockingSink(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>);

    impl Write for BlockingSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            self.1.recv().unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_during_a_write_are_batched_in_order() {
        let (writes, written) = mpsc::channel();
        let (go_on, waits) = mpsc::channel();
        let mut writer = LogWriter::to(BlockingSink(writes, waits)).unwrap();
        writer.write_all(b"0\n").unwrap();
        assert_eq!(written.recv().unwrap(), b"0\n");
        for number in 1..100 {
            writer.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        go_on.send(()).unwrap();
        go_on.send(()).unwrap();
        writer.0.flush();
        let rest = String::from_utf8(written.recv().unwrap()).unwrap();
        let expected: Vec<String> = (1..100).map(|number| number.to_string()).collect();
        assert_eq!(rest.lines().collect::<Vec<_>>(), expected);
        assert!(written.try_recv().is_err(), "expected one write");
    }

    #[test]
    fn full_buffer_blocks_logging() {
        let (writes, written) = mpsc::channel();
        let (go_on, waits) = mpsc::channel();
        let mut writer = LogWriter::to(BlockingSink(writes, waits)).unwrap();
        writer.write_all(b"first").unwrap();
        written.recv().unwrap();
        let big = vec![b'x'; BUFFER_MAX_BYTES + 1];
        writer.write_all(&big).unwrap();
        let mut other = writer.clone();
        let (done, seen) = mpsc::channel();
        let logs = std::thread::spawn(move || {
            other.write_all(b"last").unwrap();
            done.send(()).unwrap();
        });
        assert!(seen.recv_timeout(Duration::from_millis(50)).is_err());
        for _ in 0..3 {
            go_on.send(()).unwrap();
        }
        seen.recv_timeout(Duration::from_secs(30)).unwrap();
        logs.join().unwrap();
        writer.0.flush();
        assert_eq!(written.recv().unwrap().len(), BUFFER_MAX_BYTES + 1);
        assert_eq!(written.recv().unwrap(), b"last");
    }
}
