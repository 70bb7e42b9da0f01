//! The process under test: its settings, its start, its end. Knows no database.

use crate::{PATIENCE, blocking};
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// The line that says that it has begun.
const RUNNING: &str = "leasehold is running";

/// In the line that says, at level debug, that it is the one that dispatches.
pub(crate) const WORKS: &str = "lock acquired lock=\"processExecutionQueue\"";

/// In the line that says, at level debug, that Temporal has answered: calls can be held up from now on, and the connection is not.
pub(crate) const CONNECTED: &str = "connected to Temporal";

/// A level at which both are said.
pub(crate) const TELLING: &str = "info,leasehold_runtime=debug,leasehold_engine_temporal=debug";

/// `leasehold serve` with settings, to be started once or more often.
#[derive(Clone)]
pub(crate) struct Program {
    command: &'static str,
    variables: Vec<(String, String)>,
    flags: Vec<String>,
    folder: Arc<TempDir>,
}

impl Program {
    /// With everything as it is by default, in an empty folder of its own and on a free port.
    pub(crate) fn bare() -> Self {
        Self {
            command: "serve",
            variables: Vec::new(),
            flags: Vec::new(),
            folder: Arc::new(temp_dir()),
        }
        .set("server.listen", "127.0.0.1:0")
    }

    /// With Temporal.
    pub(crate) fn temporal() -> Self {
        Self::bare().set("engine.kind", "temporal")
    }

    /// On this database and this namespace.
    pub(crate) fn new(store: &str, temporal: &str, namespace: &str) -> Self {
        Self::temporal()
            .set("store.url", store)
            .set("temporal.address", temporal)
            .set("temporal.namespace", namespace)
    }

    /// Sets `section.name` by its variable; the last one counts.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        let variable = format!("LEASEHOLD__{}", name.replace('.', "__").to_uppercase());
        self.variables.push((variable, value.to_owned()));
        self
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Crashes heal in seconds, so that tests need not wait for the defaults.
    pub(crate) fn quick(self) -> Self {
        self.set("dispatch.claim_lease", "2s")
            .set("dispatch.lock_at_most_for", "2s")
            .set("dispatch.lock_retry", "200ms")
            .set("recovery.interval", "300ms")
            .set("recovery.lock_at_most_for", "2s")
            .set("follow.interval", "300ms")
            .set("follow.lock_at_most_for", "2s")
            .set("sweep.lock_at_most_for", "2s")
    }

    /// The same settings for another of the program's commands.
    pub(crate) fn command(mut self, command: &'static str) -> Self {
        self.command = command;
        self
    }

    /// Something in the folder that it runs in.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts it, whatever comes of it.
    pub(crate) fn spawn(&self) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .arg(self.command)
            .args(&self.flags)
            .current_dir(self.folder.path())
            // Somebody's own settings must not lead to somebody's own servers.
            .env_clear()
            .envs(self.variables.iter().cloned());
        Process::spawn(command)
    }

    /// Starts it and waits until it runs.
    pub(crate) fn start(&self) -> Process {
        let process = self.spawn();
        blocking(|| process.wait_for_line(PATIENCE, |line| line.contains(RUNNING)));
        process
    }
}

/// The name it signs with, which has its process id in it.
pub(crate) fn is_of(process: &Process, by: &str) -> bool {
    by.contains(&format!("-{}-", process.pid()))
}

/// Waits until so many lines have that text.
pub(crate) async fn said(process: &Process, text: &str, times: usize) {
    let seen = leasehold_testkit::eventually(PATIENCE, async || lines(process, text) >= times);
    assert!(seen.await, "did not say {text:?} {times} times");
}

/// How many lines have that text so far.
pub(crate) fn lines(process: &Process, text: &str) -> usize {
    let lines = process.lines();
    lines.iter().filter(|line| line.contains(text)).count()
}

/// Asks it to stop and waits for its end, which must be a good one.
pub(crate) fn stop(process: &mut Process) {
    process.terminate();
    let status = blocking(|| process.wait(PATIENCE));
    assert!(status.success(), "{status}\n{}", process.log());
}
