//! One run of a server process under its watchdog. Knows signals and pipes, not settings or ports.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::os_user::OsUser;
use crate::wait::wait_until;

const WATCHDOG: &str = include_str!("watchdog.sh");
const START_TIMEOUT: Duration = Duration::from_secs(180);
const STOP_TIMEOUT: Duration = Duration::from_secs(180);

/// A server process and its watchdog shell. Dropping it stops the server and removes the directory.
pub(crate) struct ServerProcess {
    directory: PathBuf,
    watchdog: Child,
    /// The watchdog cleans up when this pipe closes, which happens at the latest when this process exits.
    stdin: Option<ChildStdin>,
    /// Finishes when the server and all its children have exited.
    ended: JoinHandle<()>,
    server: u32,
}

impl ServerProcess {
    /// Runs the command. The watchdog sends `signal` when this process has exited.
    pub(crate) fn start(
        user: OsUser,
        directory: &Path,
        signal: &str,
        command: &[OsString],
    ) -> io::Result<Self> {
        let mut watchdog = user
            .command("sh")
            .args(["-c", WATCHDOG, "sh"])
            .arg(directory)
            .arg(signal)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = watchdog.stdin.take();
        let mut output = BufReader::new(
            watchdog
                .stdout
                .take()
                .ok_or_else(|| io::Error::other("the watchdog has no standard output"))?,
        );
        let mut first_line = String::new();
        output.read_line(&mut first_line)?;
        let ended = thread::spawn(move || {
            // The watchdog writes nothing more: only end-of-file matters.
            let _ = output.read_to_end(&mut Vec::new());
        });
        let Ok(server) = first_line.trim().parse() else {
            let error = failure(directory, "the watchdog did not start");
            drop(stdin);
            watchdog.wait()?;
            return Err(error);
        };
        Ok(Self {
            directory: directory.to_owned(),
            watchdog,
            stdin,
            ended,
            server,
        })
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.server
    }

    /// Waits until the server is ready; fails if it exits first.
    pub(crate) fn wait_ready(&self, mut is_ready: impl FnMut(u32) -> bool) -> io::Result<()> {
        let settled = wait_until(START_TIMEOUT, || {
            self.ended.is_finished() || is_ready(self.server)
        });
        if settled && !self.ended.is_finished() {
            return Ok(());
        }
        Err(failure(&self.directory, "the server did not start"))
    }

    /// Stops the server with the given signal and waits until it has exited. Keeps the directory.
    pub(crate) fn stop(&mut self, signal: &str) -> io::Result<()> {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{signal}")?;
        }
        if wait_until(STOP_TIMEOUT, || self.ended.is_finished()) {
            return Ok(());
        }
        Err(failure(&self.directory, "the server did not stop"))
    }

    /// Ends the watchdog of a stopped server and keeps the directory for the next server.
    pub(crate) fn detach(mut self) -> io::Result<()> {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "detach")?;
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // An error here cannot be handled.
        let _ = self.watchdog.wait();
    }
}

/// Returns an error with the end of the server's log, because the directory is removed before the message is read.
fn failure(directory: &Path, what: &str) -> io::Error {
    let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(10)..].join("\n");
    io::Error::other(format!("{what}\n{tail}"))
}
