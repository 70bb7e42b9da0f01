//! A throwaway PostgreSQL cluster: its folder, port and settings. Speaks to the server by signals only, never by SQL.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::programs::postgres_programs;
use crate::server_process::ServerProcess;

/// Below the ports that systems hand out to outgoing connections, so that a server can stop and have its port back.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;
/// A port can be taken between the choice and the start, and the last children of a killed server need a moment to go.
const START_ATTEMPTS: u32 = 5;

/// A private PostgreSQL server in a folder of its own, on a free loopback port, that a test may stop, kill and restart.
///
/// It has `track_commit_timestamp` on and is as durable as a real one (`fsync` and `synchronous_commit` are on). It ends,
/// and its folder goes, when the handle is dropped or the process ends, even by `kill -9`. All methods block the thread.
pub struct Cluster {
    account: Account,
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
    process: Option<ServerProcess>,
}

/// Starts a private cluster for one test; later settings win over the usual ones.
///
/// # Panics
/// When PostgreSQL is not installed or does not start: `cargo xtask setup` installs it.
#[must_use]
pub fn fresh_cluster(settings: &[(&str, &str)]) -> Cluster {
    match Cluster::start(settings) {
        Ok(cluster) => cluster,
        Err(error) => panic!("{error}"),
    }
}

impl Cluster {
    /// Makes and starts a cluster; later settings win over the usual ones.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start; the message says what to do.
    pub fn start(settings: &[(&str, &str)]) -> io::Result<Self> {
        let programs = postgres_programs().ok_or_else(|| {
            io::Error::other("PostgreSQL is not installed; run: cargo xtask setup")
        })?;
        let account = Account::for_servers()?;
        let mut all = usual_settings(&programs);
        all.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let mut cluster = Self {
            account,
            folder: account.make_folder()?,
            programs,
            port: 0,
            settings: all,
            process: None,
        };
        cluster.launch(true)?;
        Ok(cluster)
    }

    /// The address of the maintenance database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The process id of the server that was started last.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    /// The folder that holds the cluster (`data`) and the server's messages (`log`).
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops the server in order: transactions are rolled back, everything is written (`pg_ctl stop -m fast`).
    pub fn stop(&mut self) -> io::Result<()> {
        self.end("INT")
    }

    /// Kills the server with `kill -9`, as a failing machine would; its backends follow at once.
    pub fn kill(&mut self) -> io::Result<()> {
        self.end("KILL")
    }

    /// Starts a stopped or killed server again on the same data and the same port.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.launch(false)
    }

    /// Crashes the server (`pg_ctl stop -m immediate`) and starts it again: it recovers from its log.
    pub fn restart_immediate(&mut self) -> io::Result<()> {
        self.end("QUIT")?;
        self.launch(false)
    }

    fn end(&mut self, signal: &str) -> io::Result<()> {
        match &mut self.process {
            Some(process) => process.stop(signal),
            None => Err(io::Error::other("this cluster failed to start before")),
        }
    }

    /// Starts a server on the folder, then sends the watchdog of the one before away: one always guards the folder.
    fn launch(&mut self, choose_port: bool) -> io::Result<()> {
        let mut attempt = 1;
        loop {
            if choose_port {
                self.port = free_port()?;
            }
            let mut process =
                ServerProcess::start(self.account, &self.programs, &self.folder, &self.options())?;
            if let Some(before) = self.process.take() {
                before.leave()?;
            }
            let error = match process.wait_ready() {
                Ok(()) => {
                    self.process = Some(process);
                    return Ok(());
                }
                Err(error) => error,
            };
            if attempt == START_ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            process.stop("QUIT")?;
            self.process = Some(process);
        }
    }

    fn options(&self) -> Vec<String> {
        let port = ("port".to_owned(), self.port.to_string());
        std::iter::once(&port)
            .chain(&self.settings)
            .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
            .collect()
    }
}

fn usual_settings(programs: &Path) -> Vec<(String, String)> {
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("track_commit_timestamp", "on"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("max_connections", "300"),
        ("shared_buffers", "256MB"),
    ];
    if programs.join("../lib/pg_stat_statements.so").is_file() {
        settings.push(("shared_preload_libraries", "pg_stat_statements"));
    }
    settings
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn free_port() -> io::Result<u16> {
    let offset = RandomState::new().build_hasher().finish() % u64::from(PORTS);
    (0..PORTS)
        .map(|step| FIRST_PORT + (u16::try_from(offset).unwrap_or(0) + step) % PORTS)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| io::Error::other("no free loopback port"))
}
