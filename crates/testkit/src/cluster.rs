//! A throwaway PostgreSQL cluster: its directory, port and settings, and the check that no transactions deadlocked in it. Controls the server by
//! signals, never by SQL.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use crate::frozen::FrozenServer;
use crate::os_user::OsUser;
use crate::programs::postgres_programs;
use crate::server::{Server, ServerKind};

/// Initializes the cluster and runs the server.
const POSTGRES: &str = include_str!("postgres.sh");
/// What the server logs when it ends a deadlock.
const DEADLOCK: &str = "ERROR:  deadlock detected";

/// The address of the server to test on; `cargo xtask test` sets it.
pub const SERVER_VARIABLE: &str = "LEASEHOLD_TEST_PG";

/// A private PostgreSQL server in its own directory, on a free loopback port, that a test may stop, kill and restart.
///
/// `track_commit_timestamp` is on, and the server is durable (`fsync` and `synchronous_commit` are on). It stops, and its
/// directory is removed, when the handle is dropped or the process exits, even by `kill -9`. All methods block the thread.
///
/// Dropping the handle panics if transactions deadlocked in any of its databases. The server's log tells, because the counters of
/// `pg_stat_database` vanish when the server crashes.
pub struct Cluster {
    pub(crate) server: Server<Postgres>,
    pub(crate) checks_deadlocks: bool,
}

#[derive(Clone)]
pub(crate) struct Postgres {
    programs: PathBuf,
    settings: Vec<(String, String)>,
}

impl Postgres {
    /// The directory of the server's programs.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }
}

impl ServerKind for Postgres {
    const NAME: &'static str = "PostgreSQL";
    const END_SIGNAL: &'static str = "QUIT";

    fn command(&self, directory: &Path, port: u16) -> Vec<OsString> {
        let mut command: Vec<OsString> = ["sh", "-c", POSTGRES, "sh"].map(OsString::from).into();
        command.push(self.programs.clone().into());
        command.push(directory.join("data").into());
        let port = ("port".to_owned(), port.to_string());
        for (name, value) in std::iter::once(&port).chain(&self.settings) {
            command.push("-c".into());
            command.push(format!("{name}={value}").into());
        }
        command
    }

    /// Reads the state from the server's pid file; the file of a previous server has another pid.
    fn is_ready(&self, directory: &Path, _port: u16, pid: u32) -> bool {
        let file = fs::read_to_string(directory.join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = file.lines();
        let states = ["ready", "standby"];
        lines.next() == Some(pid.to_string().as_str())
            && lines
                .nth(6)
                .is_some_and(|state| states.contains(&state.trim()))
    }
}

/// Starts a private cluster for one test; `settings` override the defaults.
///
/// # Panics
/// When PostgreSQL is not installed (`cargo xtask setup` installs it) or does not start.
#[must_use]
pub fn fresh_cluster(settings: &[(&str, &str)]) -> Cluster {
    match Cluster::start(settings) {
        Ok(cluster) => cluster,
        Err(error) => panic!("{error}"),
    }
}

impl Cluster {
    /// Initializes and starts a cluster; `settings` override the defaults.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start; the message says what to do.
    pub fn start(settings: &[(&str, &str)]) -> io::Result<Self> {
        let programs = postgres_programs().ok_or_else(|| {
            io::Error::other("PostgreSQL is not installed; run: cargo xtask setup")
        })?;
        Self::start_in(&programs, settings)
    }

    /// Like [`start`](Self::start), with the version in this directory.
    ///
    /// # Errors
    /// When PostgreSQL does not start.
    pub fn start_in(programs: &Path, settings: &[(&str, &str)]) -> io::Result<Self> {
        let mut all = default_settings(programs);
        all.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let kind = Postgres {
            programs: programs.to_owned(),
            settings: all,
        };
        Ok(Self {
            server: Server::start(OsUser::for_postgres()?, kind)?,
            checks_deadlocks: true,
        })
    }

    /// Does not check for deadlocks when the handle is dropped: each test checks its own database.
    #[must_use]
    pub fn without_deadlock_check(mut self) -> Self {
        self.checks_deadlocks = false;
        self
    }

    /// Returns how many deadlocks the server has ended since it was initialized, crashes included.
    ///
    /// # Errors
    /// When the server's log cannot be read.
    pub fn deadlocks(&self) -> io::Result<usize> {
        let log = fs::read(self.directory().join("log"))?;
        Ok(String::from_utf8_lossy(&log).matches(DEADLOCK).count())
    }

    /// The address of the maintenance database.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@127.0.0.1:{}/postgres",
            self.server.port()
        )
    }

    /// The process id of the current server.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// The directory with the cluster (`data`) and the server's log (`log`).
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.server.directory()
    }

    /// Shuts the server down cleanly: open transactions are rolled back, all data is written (`pg_ctl stop -m fast`).
    pub fn stop(&mut self) -> io::Result<()> {
        self.server.end("INT")
    }

    /// Kills the server with `kill -9`, like a machine failure; its backends exit immediately.
    pub fn kill(&mut self) -> io::Result<()> {
        self.server.end("KILL")
    }

    /// Freezes the server until the handle is dropped: it accepts packets and answers nothing.
    ///
    /// # Panics
    /// When the server is not running.
    #[must_use]
    pub fn freeze(&self) -> FrozenServer {
        FrozenServer::freeze(self.server_pid().expect("the server is not running"))
    }

    /// Starts a stopped or killed server on the same data and port.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.server.start_again()
    }

    /// Crashes the server (`pg_ctl stop -m immediate`) and starts it again; it recovers from its write-ahead log.
    pub fn restart_immediate(&mut self) -> io::Result<()> {
        self.server.end("QUIT")?;
        self.server.start_again()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.checks_deadlocks || thread::panicking() {
            return;
        }
        let deadlocks = self.deadlocks();
        let deadlocks = deadlocks
            .unwrap_or_else(|error| panic!("failed to read the log of PostgreSQL: {error}"));
        assert!(
            deadlocks == 0,
            "PostgreSQL detected {deadlocks} deadlocks in the cluster of this test"
        );
    }
}

fn default_settings(programs: &Path) -> Vec<(String, String)> {
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("track_commit_timestamp", "on"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("max_connections", "300"),
        // Deadlocks are found before any wait for a lock of the program times out; every test database is checked for them.
        ("deadlock_timeout", "10ms"),
        ("shared_buffers", "256MB"),
    ];
    // Debian's directory of libraries, and that of the npm packages.
    let mut libraries = ["../lib", "../lib/postgresql"].iter();
    if libraries.any(|lib| programs.join(lib).join("pg_stat_statements.so").is_file()) {
        settings.push(("shared_preload_libraries", "pg_stat_statements"));
    }
    settings
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
