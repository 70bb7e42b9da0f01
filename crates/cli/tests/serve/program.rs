//! The process under test: settings, start and stop. Knows no content of a database.

use crate::{TIMEOUT, blocking};
use leasehold_store_postgres::Pooler;
use leasehold_testbed::postgres::route;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Log message of a started server.
const RUNNING: &str = "leasehold is running";

/// Debug message: this process holds the dispatch lock.
pub(crate) const LOCK_ACQUIRED: &str = "lock acquired lock=\"processExecutionQueue\"";

/// Debug message: connected to Temporal. Later faults affect calls, not the connection.
pub(crate) const CONNECTED: &str = "connected to Temporal";

/// Log level that includes both messages.
pub(crate) const VERBOSE: &str = "info,leasehold_runtime=debug,leasehold_engine_temporal=debug";

/// `leasehold serve` with settings; can be started several times.
#[derive(Clone)]
pub(crate) struct Program {
    command: &'static str,
    variables: Vec<(String, String)>,
    flags: Vec<String>,
    dir: Arc<TempDir>,
}

impl Program {
    /// Default settings, in an empty directory and on a free port.
    pub(crate) fn bare() -> Self {
        Self {
            command: "serve",
            variables: Vec::new(),
            flags: Vec::new(),
            dir: Arc::new(temp_dir()),
        }
        .set("server.listen", "127.0.0.1:0")
    }

    /// With the Temporal engine.
    pub(crate) fn temporal() -> Self {
        Self::bare().set("engine.kind", "temporal")
    }

    /// With this database.
    pub(crate) fn store(self, url: &str) -> Self {
        let route = route(url);
        let program = self.set("store.url", &route.url);
        match route.pooler {
            Pooler::None => program,
            Pooler::Transaction {
                prepared_statements,
            } => program.set("store.pooler", "transaction").set(
                "store.prepared_statements",
                &prepared_statements.to_string(),
            ),
        }
    }

    /// With this database and namespace.
    pub(crate) fn new(store: &str, temporal: &str, namespace: &str) -> Self {
        Self::temporal()
            .store(store)
            .set("temporal.address", temporal)
            .set("temporal.namespace", namespace)
    }

    /// Sets `section.name` by its variable; the last call wins.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        let variable = format!("LEASEHOLD__{}", name.replace('.', "__").to_uppercase());
        self.variables.push((variable, value.to_owned()));
        self
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Shorter leases and intervals, so that tests need not wait for the defaults. The leases outlast the pauses of a process on a busy machine.
    pub(crate) fn quick(self) -> Self {
        self.set("dispatch.claim_lease", "10s")
            .set("dispatch.lock_at_most_for", "10s")
            .set("dispatch.lock_retry", "200ms")
            .set("recovery.interval", "300ms")
            .set("recovery.lock_at_most_for", "10s")
            .set("follow.interval", "300ms")
            .set("follow.lock_at_most_for", "10s")
            .set("sweep.lock_at_most_for", "10s")
    }

    /// Calls of Temporal that do not time out while a test holds them back.
    pub(crate) fn patient(self) -> Self {
        self.set("temporal.call_timeout", "5m")
            .set("dispatch.start_timeout", "6m")
    }

    /// Runs another command with the same settings.
    pub(crate) fn command(mut self, command: &'static str) -> Self {
        self.command = command;
        self
    }

    /// A path in the working directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the process without waiting.
    pub(crate) fn spawn(&self) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .arg(self.command)
            .args(&self.flags)
            .current_dir(self.dir.path())
            // Excludes settings of the developer's environment.
            .env_clear()
            .envs(self.variables.iter().cloned());
        Process::spawn(command)
    }

    /// Starts the process and waits until it runs.
    pub(crate) fn start(&self) -> Process {
        let process = self.spawn();
        blocking(|| process.wait_for_line(TIMEOUT, |line| line.contains(RUNNING)));
        process
    }
}

/// Whether `by` is the instance id of the process, which contains its pid.
pub(crate) fn is_of(process: &Process, by: &str) -> bool {
    by.contains(&format!("-{}-", process.pid()))
}

/// Waits until `times` log lines contain `text`.
pub(crate) async fn wait_for_lines(process: &Process, text: &str, times: usize) {
    let logged = leasehold_testkit::eventually(TIMEOUT, async || lines(process, text) >= times);
    assert!(logged.await, "did not log {text:?} {times} times");
}

/// Number of log lines that contain `text`.
pub(crate) fn lines(process: &Process, text: &str) -> usize {
    let lines = process.lines();
    lines.iter().filter(|line| line.contains(text)).count()
}

/// Sends SIGTERM and asserts a successful exit.
pub(crate) fn stop(process: &mut Process) {
    process.terminate();
    let status = blocking(|| process.wait(TIMEOUT));
    assert!(status.success(), "{status}\n{}", process.log());
}
