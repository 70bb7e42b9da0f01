//! A program under test as a child process: its lines, its signals, its end. Does not know which program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::wait::wait_until;

/// Kills the process when the tests' own process has ended without doing so.
const GUARD: &str = "read -r _ || kill -s KILL \"$1\"";

/// A child process that is killed with `kill -9` when the handle is dropped, or when the tests end in any other way.
///
/// All it prints is collected line by line, and shown when the test fails. All methods block the thread, each for a bounded
/// time.
pub struct Process {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    guard: Option<ChildStdin>,
    readers: Vec<JoinHandle<()>>,
    printed: Arc<Printed>,
}

/// The lines so far, from standard output and standard error as they come.
#[derive(Default)]
struct Printed {
    state: Mutex<Lines>,
    grown: Condvar,
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// Of the two outputs.
    ended: u32,
}

impl Process {
    /// Starts it with its input closed and its output collected.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} could not be started: {error}"));
        let printed = Arc::new(Printed::default());
        let outputs = [
            child.stdout.take().map(|pipe| read(pipe, &printed)),
            child.stderr.take().map(|pipe| read(pipe, &printed)),
        ];
        Self {
            guard: guard(child.id()).ok(),
            name,
            child,
            status: None,
            readers: outputs.into_iter().flatten().collect(),
            printed,
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory it has held so far, in bytes; none once it has ended.
    #[must_use]
    pub fn most_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Waits until it has printed a line that fits, now or before, and returns the first such line.
    ///
    /// # Panics
    /// With all it printed, when it ends or the time is up without such a line.
    pub fn wait_for_line(&self, limit: Duration, fits: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + limit;
        let mut seen = 0;
        let mut state = self.printed.lock();
        loop {
            if let Some(line) = state.lines[seen..].iter().find(|line| fits(line)) {
                return line.clone();
            }
            seen = state.lines.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.ended == 2 {
                drop(state);
                panic!("{} did not print the line\n{}", self.name, self.log());
            }
            state = self.printed.wait(state, left);
        }
    }

    /// The lines it has printed so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.printed.lock().lines.clone()
    }

    /// All it has printed so far, as one text.
    #[must_use]
    pub fn log(&self) -> String {
        self.lines().join("\n")
    }

    /// Whether it has not ended yet; one that is stopped is running too.
    pub fn is_running(&mut self) -> bool {
        self.try_wait().is_none()
    }

    /// Holds it where it is (SIGSTOP), until [`cont`](Self::cont).
    pub fn stop(&mut self) {
        self.signal("STOP");
    }

    /// Lets it go on after [`stop`](Self::stop) (SIGCONT).
    pub fn cont(&mut self) {
        self.signal("CONT");
    }

    /// Asks it to end (SIGTERM); [`wait`](Self::wait) for it.
    pub fn terminate(&mut self) {
        self.signal("TERM");
    }

    /// Ends it at once (`kill -9`) and waits until it is gone.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // It may have ended by itself just now, which is as good.
            let _ = self.child.kill();
            if let Ok(status) = self.child.wait() {
                self.ended(status);
            }
        }
    }

    /// Waits for its end and returns its status; all it printed is in the log then.
    ///
    /// # Panics
    /// With all it printed, when it has not ended in that time.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let ended = wait_until(limit, || self.try_wait().is_some());
        assert!(ended, "{} did not end\n{}", self.name, self.log());
        // Its own children may hold the pipes open for longer, so this is bounded too.
        let read = wait_until(limit, || self.printed.lock().ended == 2);
        assert!(read, "{} left its output open\n{}", self.name, self.log());
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        self.status.unwrap_or_default()
    }

    fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended(status);
        }
        self.status
    }

    /// From here on the process id may belong to somebody else.
    fn ended(&mut self, status: ExitStatus) {
        self.status = Some(status);
        if let Some(mut guard) = self.guard.take() {
            let _ = writeln!(guard, "leave");
        }
    }

    fn signal(&mut self, signal: &str) {
        if self.try_wait().is_none() {
            // The shell's own kill: no unsafe code, and no package that may be missing.
            let order = format!("kill -s {signal} {}", self.pid());
            let sent = Command::new("sh").args(["-c", &order]).status();
            assert!(
                sent.is_ok_and(|status| status.success()),
                "{} could not be sent {signal}",
                self.name
            );
        }
    }
}

impl Drop for Process {
    #[allow(
        clippy::print_stderr,
        reason = "the test harness shows it beside the failure"
    )]
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("--- {} printed:\n{}\n---", self.name, self.log());
        }
    }
}

impl Printed {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, Lines>, limit: Duration) -> MutexGuard<'a, Lines> {
        self.grown
            .wait_timeout(state, limit)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

fn read(pipe: impl Read + Send + 'static, printed: &Arc<Printed>) -> JoinHandle<()> {
    let printed = Arc::clone(printed);
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            printed.lock().lines.push(text);
            printed.grown.notify_all();
        }
        printed.lock().ended += 1;
        printed.grown.notify_all();
    })
}

/// A shell that outlives us just long enough to kill the child. Out of our process group: Ctrl-C must not end it first.
fn guard(pid: u32) -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", GUARD, "sh", &pid.to_string()])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let orders = shell
        .stdin
        .take()
        .ok_or_else(|| io::Error::other("the guard has no input"))?;
    // It ends by itself when told to leave; waiting for it is a thread's work, so that no zombie stays.
    thread::spawn(move || shell.wait());
    Ok(orders)
}
