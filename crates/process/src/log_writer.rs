//! Writes log lines by a thread of its own, many in one write: a busy server logs thousands a second. Knows nothing of what they say.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// How long lines wait for company after a write. The first after a silence waits for nothing.
const COMPANY: Duration = Duration::from_millis(5);
/// How much may wait for a reader that does not read; then whoever logs waits, as it would without the thread.
const AT_MOST: usize = 1 << 20;

/// The one of this process.
static REMEMBERED: OnceLock<LogWriter> = OnceLock::new();

/// Takes lines.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// There is something to write, or somebody waits for the writing.
    work: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// The thread waits for the first line, however long.
    idle: bool,
    /// The thread has taken lines that are not written yet.
    writing: bool,
    /// Somebody waits until all is written.
    hurry: bool,
}

impl LogWriter {
    /// A writer to this place.
    pub(crate) fn to(place: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
        });
        let its = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || its.run(place))?;
        Ok(Self(shared))
    }

    /// Makes it the one that [`LogWriter::flush`] waits for.
    pub(crate) fn remember(self) {
        let _ = REMEMBERED.set(self);
    }

    /// Waits until all lines of this process are written.
    pub(crate) fn flush() {
        if let Some(writer) = REMEMBERED.get() {
            writer.0.flush();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut place: impl Write) {
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
            // Nobody could be told that a line was not written.
            let _ = place.write_all(&lines).and_then(|()| place.flush());
            state = self.state();
            state.writing = false;
            if state.lines.is_empty() {
                state.hurry = false;
            }
            self.written.notify_all();
            if !state.hurry && state.lines.len() < AT_MOST / 2 {
                let rested = self.work.wait_timeout(state, COMPANY);
                state = rested.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn take(&self, line: &[u8]) {
        let mut state = self.state();
        while state.lines.len() > AT_MOST {
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
            state.hurry = true;
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
        self.0.take(line);
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

    /// Tells of each write, and writes no more than it is let.
    struct Slow(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>);

    impl Write for Slow {
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
    fn lines_that_come_during_a_write_are_written_together_in_order() {
        let (writes, written) = mpsc::channel();
        let (go_on, waits) = mpsc::channel();
        let mut writer = LogWriter::to(Slow(writes, waits)).unwrap();
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
        assert!(written.try_recv().is_err(), "all in one write");
    }

    #[test]
    fn whoever_logs_waits_for_a_reader_that_does_not_read() {
        let (writes, written) = mpsc::channel();
        let (go_on, waits) = mpsc::channel();
        let mut writer = LogWriter::to(Slow(writes, waits)).unwrap();
        writer.write_all(b"first").unwrap();
        written.recv().unwrap();
        let big = vec![b'x'; AT_MOST + 1];
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
        assert_eq!(written.recv().unwrap().len(), AT_MOST + 1);
        assert_eq!(written.recv().unwrap(), b"last");
    }
}
