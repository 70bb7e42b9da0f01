//! One run of a server, from its start to its end, under its watchdog. Knows signals and pipes, not settings or ports.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::account::Account;
use crate::wait::wait_until;

const WATCHDOG: &str = include_str!("watchdog.sh");
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A server and the shell that watches over it. Dropping it stops the server and removes the folder.
pub(crate) struct ServerProcess {
    folder: PathBuf,
    watchdog: Child,
    /// Closed when this process ends, which is the watchdog's sign to clean up.
    orders: Option<ChildStdin>,
    /// Finished when the server and all its children are gone.
    ended: JoinHandle<()>,
    server: u32,
}

impl ServerProcess {
    /// Runs the command; `signal` is what ends it when its owner has ended.
    pub(crate) fn start(
        account: Account,
        folder: &Path,
        signal: &str,
        command: &[OsString],
    ) -> io::Result<Self> {
        let mut watchdog = account
            .command("sh")
            .args(["-c", WATCHDOG, "sh"])
            .arg(folder)
            .arg(signal)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = watchdog.stdin.take();
        let mut output = BufReader::new(
            watchdog
                .stdout
                .take()
                .ok_or_else(|| io::Error::other("the watchdog has no standard output"))?,
        );
        let mut first_line = String::new();
        output.read_line(&mut first_line)?;
        let ended = thread::spawn(move || {
            // Nothing is ever written: only the end of the pipe matters.
            let _ = output.read_to_end(&mut Vec::new());
        });
        let Ok(server) = first_line.trim().parse() else {
            let error = failure(folder, "the watchdog did not start");
            drop(orders);
            watchdog.wait()?;
            return Err(error);
        };
        Ok(Self {
            folder: folder.to_owned(),
            watchdog,
            orders,
            ended,
            server,
        })
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.server
    }

    /// Waits until the server is ready, and fails when it ends instead.
    pub(crate) fn wait_ready(&self, mut is_ready: impl FnMut(u32) -> bool) -> io::Result<()> {
        let settled = wait_until(START_LIMIT, || {
            self.ended.is_finished() || is_ready(self.server)
        });
        if settled && !self.ended.is_finished() {
            return Ok(());
        }
        Err(failure(&self.folder, "the server did not start"))
    }

    /// Stops the server with that signal and waits for its end; the folder stays.
    pub(crate) fn stop(&mut self, signal: &str) -> io::Result<()> {
        if let Some(orders) = &mut self.orders {
            writeln!(orders, "{signal}")?;
        }
        if wait_until(STOP_LIMIT, || self.ended.is_finished()) {
            return Ok(());
        }
        Err(failure(&self.folder, "the server did not stop"))
    }

    /// Ends the watchdog of a stopped server and leaves the folder to the next one.
    pub(crate) fn leave(mut self) -> io::Result<()> {
        if let Some(orders) = &mut self.orders {
            writeln!(orders, "leave")?;
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.orders.take());
        // Nothing better can be done about a watchdog that cannot be waited for.
        let _ = self.watchdog.wait();
    }
}

/// An error that carries the end of the server's log: the folder is gone by the time somebody reads the message.
fn failure(folder: &Path, what: &str) -> io::Error {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let tail = lines[lines.len().saturating_sub(10)..].join("\n");
    io::Error::other(format!("{what}\n{tail}"))
}
