//! A program under test as a child process: its output, signals and exit status. Does not know which program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::wait::wait_until;

/// Kills the child when the test process has exited without doing so.
const GUARD: &str = "read -r _ || kill -s KILL \"$1\"";

/// A child process that is killed with `kill -9` when the handle is dropped or the test process exits.
///
/// Its output is collected line by line and printed when the test fails. All methods block the thread, each for a bounded
/// time.
pub struct Process {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    guard: Option<ChildStdin>,
    readers: Vec<JoinHandle<()>>,
    printed: Arc<Printed>,
}

/// The lines of standard output and standard error so far, in order of arrival.
#[derive(Default)]
struct Printed {
    state: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// How many of the two outputs have reached end-of-file.
    closed: u32,
}

impl Process {
    /// Starts the command with standard input closed and its output collected.
    ///
    /// # Panics
    /// When the program does not start.
    #[must_use]
    pub fn spawn(mut command: Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {name}: {error}"));
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

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The peak resident memory so far, in bytes; none once the process has exited.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Waits until the process has printed a line that matches, and returns the first such line.
    ///
    /// # Panics
    /// With the whole output, when the process exits or `timeout` passes without such a line.
    pub fn wait_for_line(&self, timeout: Duration, matches: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + timeout;
        let mut seen = 0;
        let mut state = self.printed.lock();
        loop {
            if let Some(line) = state.lines[seen..].iter().find(|line| matches(line)) {
                return line.clone();
            }
            seen = state.lines.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.closed == 2 {
                drop(state);
                panic!(
                    "{} did not print the expected line\n{}",
                    self.name,
                    self.log()
                );
            }
            state = self.printed.wait(state, left);
        }
    }

    /// The lines printed so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.printed.lock().lines.clone()
    }

    /// The output so far, as one text.
    #[must_use]
    pub fn log(&self) -> String {
        self.lines().join("\n")
    }

    /// Whether the process has not exited; a stopped process counts as running.
    pub fn is_running(&mut self) -> bool {
        self.try_wait().is_none()
    }

    /// Suspends the process (SIGSTOP) until [`cont`](Self::cont).
    pub fn stop(&mut self) {
        self.signal("STOP");
    }

    /// Continues the process after [`stop`](Self::stop) (SIGCONT).
    pub fn cont(&mut self) {
        self.signal("CONT");
    }

    /// Requests termination (SIGTERM); call [`wait`](Self::wait) afterwards.
    pub fn terminate(&mut self) {
        self.signal("TERM");
    }

    /// Kills the process (`kill -9`) and waits until it has exited.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Fails if the process has just exited by itself, which is fine.
            let _ = self.child.kill();
            if let Ok(status) = self.child.wait() {
                self.ended(status);
            }
        }
    }

    /// Waits until the process has exited and its output is read, and returns its status.
    ///
    /// # Panics
    /// With the whole output, when the process has not exited within `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> ExitStatus {
        let exited = wait_until(timeout, || self.try_wait().is_some());
        assert!(exited, "{} did not exit\n{}", self.name, self.log());
        // Its own children may hold the pipes open for longer, so this wait is bounded too.
        let read = wait_until(timeout, || self.printed.lock().closed == 2);
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

    /// Dismisses the guard: from here on the process id may belong to another process.
    fn ended(&mut self, status: ExitStatus) {
        self.status = Some(status);
        if let Some(mut guard) = self.guard.take() {
            let _ = writeln!(guard, "dismiss");
        }
    }

    fn signal(&mut self, signal: &str) {
        if self.try_wait().is_none() {
            // The shell's built-in kill needs no unsafe code and no package.
            let script = format!("kill -s {signal} {}", self.pid());
            let sent = Command::new("sh").args(["-c", &script]).status();
            assert!(
                sent.is_ok_and(|status| status.success()),
                "failed to send {signal} to {}",
                self.name
            );
        }
    }
}

impl Drop for Process {
    #[allow(
        clippy::print_stderr,
        reason = "the test harness prints it with the failure"
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

    fn wait<'a>(&self, state: MutexGuard<'a, Lines>, timeout: Duration) -> MutexGuard<'a, Lines> {
        self.changed
            .wait_timeout(state, timeout)
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
            printed.changed.notify_all();
        }
        printed.lock().closed += 1;
        printed.changed.notify_all();
    })
}

/// Starts a shell that kills the child when this process exits. It has its own process group, so that Ctrl-C does not end it first.
fn guard(pid: u32) -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", GUARD, "sh", &pid.to_string()])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let input = shell
        .stdin
        .take()
        .ok_or_else(|| io::Error::other("the guard shell has no standard input"))?;
    // The shell ends when dismissed; a thread waits for it, so that no zombie remains.
    thread::spawn(move || shell.wait());
    Ok(input)
}
