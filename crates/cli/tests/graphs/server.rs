//! The server under test: always at the same address, killed and restarted. Knows no graph.

use crate::TIMEOUT;
use leasehold_client::Client;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use tokio::task::block_in_place;

const RUNNING: &str = "leasehold is running";

/// Short leases, so that the test need not wait for the defaults; they outlast the pauses of a busy machine.
const SETTINGS: [(&str, &str); 10] = [
    ("HTTP_NODES__ALLOW", "127.0.0.1"),
    ("EMBEDDED__LEASE", "5s"),
    ("JOBS__SWEEP_INTERVAL", "300ms"),
    ("DISPATCH__MODE", "parallel"),
    ("DISPATCH__CLAIM_LEASE", "5s"),
    ("RECOVERY__INTERVAL", "300ms"),
    ("RECOVERY__LOCK_AT_MOST_FOR", "5s"),
    ("FOLLOW__LOCK_AT_MOST_FOR", "5s"),
    ("SWEEP__LOCK_AT_MOST_FOR", "5s"),
    ("LOG__LEVEL", "warn,leasehold=info"),
];

pub(crate) struct Server {
    store: String,
    address: String,
    data: TempDir,
    process: Option<Process>,
}

impl Server {
    pub(crate) fn new(store: &str) -> Self {
        // Below the ephemeral port range, so that the port is free again after each kill.
        let port = (0..1_000)
            .map(|_| fastrand::u16(20_000..32_000))
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        Self {
            store: store.to_owned(),
            address: format!("127.0.0.1:{}", port.unwrap()),
            data: temp_dir(),
            process: None,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// An administrator client.
    pub(crate) fn admin(&self) -> Client {
        Client::new(&self.url(), &self.admin_key()).unwrap()
    }

    /// The administrator key that this server created.
    pub(crate) fn admin_key(&self) -> String {
        let key = std::fs::read_to_string(self.data.path().join("admin.key")).unwrap();
        key.trim().to_owned()
    }

    /// Starts the server, with a failpoint if given.
    pub(crate) fn start(&mut self, failpoint: Option<&str>) {
        let variable = failpoint.map(|name| (leasehold_store::failpoint::VARIABLE, name));
        self.spawn(variable.as_slice());
        if failpoint.is_none() {
            self.until_running();
        }
    }

    /// Starts the process with these variables, without waiting.
    pub(crate) fn spawn(&mut self, variables: &[(&str, &str)]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(["serve", "--store", &self.store, "--listen", &self.address])
            .arg("--data-dir")
            .arg(self.data.path())
            .env_clear();
        for (name, value) in SETTINGS {
            command.env(format!("LEASEHOLD__{name}"), value);
        }
        command.envs(variables.iter().copied());
        self.process = Some(Process::spawn(command));
    }

    /// Waits until the API is served.
    pub(crate) fn until_running(&mut self) {
        self.until_line(RUNNING);
    }

    /// Waits until it has printed a line with this text.
    pub(crate) fn until_line(&mut self, text: &str) {
        let process = self.process();
        block_in_place(|| process.wait_for_line(TIMEOUT, |line| line.contains(text)));
    }

    /// Waits until it logs a line with this text, and returns the line.
    pub(crate) fn until_logged(&mut self, text: &str) -> String {
        let process = self.process();
        block_in_place(|| process.wait_for_line(TIMEOUT, |line| line.contains(text)))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process().is_running()
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.process().pid()
    }

    /// Waits until it exits by itself, and asserts the exit code.
    pub(crate) fn until_exit(&mut self, code: i32, timeout: Duration) {
        let status = block_in_place(|| self.process().wait(timeout));
        let log = self.process().log();
        assert_eq!(status.code(), Some(code), "{log}");
    }

    /// The output of the current process.
    pub(crate) fn log(&mut self) -> String {
        self.process().log()
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().unwrap()
    }

    /// The peak resident memory in bytes. Asserts that the server runs.
    pub(crate) fn peak_memory(&mut self) -> u64 {
        self.process().peak_memory().unwrap()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) {
        block_in_place(|| self.process().kill());
    }

    /// Waits until the failpoint has killed it.
    pub(crate) fn until_dead(&mut self, step: &str) {
        let status = block_in_place(|| self.process().wait(TIMEOUT));
        assert!(!status.success(), "exited successfully at {step}");
        let log = self.process().log();
        assert!(!log.contains("error: "), "did not crash at {step}: {log}");
    }

    /// Sends SIGTERM and asserts a successful exit.
    pub(crate) fn stop(&mut self) {
        self.process().terminate();
        let status = block_in_place(|| self.process().wait(TIMEOUT));
        assert!(status.success(), "{status}\n{}", self.process().log());
    }
}
