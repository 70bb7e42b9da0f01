//! A throwaway PgBouncer in transaction mode, from Debian's package `pgbouncer`. Installs nothing, and knows no database.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::os_user::OsUser;
use crate::server::{Server, ServerKind};

/// The Debian package of PgBouncer. Its version 1.18 knows no prepared statements.
pub const PGBOUNCER_PACKAGE: &str = "pgbouncer";

/// If set, tests that know it reach PostgreSQL through a PgBouncer in transaction mode. The value is the default isolation level of their databases;
/// `cargo xtask test` sets it for some programs.
pub const POOLER_VARIABLE: &str = "LEASEHOLD_TEST_POOLER";

/// Writes the configuration and runs the server.
const PGBOUNCER: &str = include_str!("pgbouncer.sh");
/// Debian installs it in a directory that only root's `PATH` contains.
const PROGRAMS: [&str; 2] = ["pgbouncer", "/usr/sbin/pgbouncer"];

/// A private PgBouncer in front of a PostgreSQL server, on a free loopback port.
///
/// It runs in transaction mode and accepts every user without a password. It stops, and its directory is removed, when the handle is dropped or the
/// process exits, even by `kill -9`. All methods block the thread.
pub struct PgBouncer {
    server: Server<Pooler>,
}

struct Pooler {
    program: &'static str,
    /// `host:port` of the PostgreSQL server.
    upstream: (String, String),
    settings: Vec<(String, String)>,
}

impl ServerKind for Pooler {
    const NAME: &'static str = "PgBouncer";
    /// Ends it at once; with other signals it waits for its clients.
    const END_SIGNAL: &'static str = "TERM";

    fn command(&self, directory: &Path, port: u16) -> Vec<OsString> {
        let file = directory.join("pgbouncer.ini");
        let mut command: Vec<OsString> = ["sh", "-c", PGBOUNCER, "sh", self.program]
            .map(OsString::from)
            .into();
        command.push(file.into());
        command.push(self.configuration(port).into());
        command
    }

    fn is_ready(&self, _directory: &Path, port: u16, _pid: u32) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    }
}

impl Pooler {
    fn configuration(&self, port: u16) -> String {
        let (host, upstream_port) = &self.upstream;
        let mut lines = vec![
            "[databases]".to_owned(),
            format!("* = host={host} port={upstream_port} user=postgres"),
            "[pgbouncer]".to_owned(),
            "listen_addr = 127.0.0.1".to_owned(),
            format!("listen_port = {port}"),
            "unix_socket_dir =".to_owned(),
            "auth_type = any".to_owned(),
            "pool_mode = transaction".to_owned(),
            // Some tests restart the server.
            "server_login_retry = 1".to_owned(),
        ];
        lines.extend(
            self.settings
                .iter()
                .map(|(name, value)| format!("{name} = {value}")),
        );
        lines.join("\n")
    }
}

/// Returns the first line of PgBouncer's version, if it is installed.
#[must_use]
pub fn pgbouncer_version() -> Option<String> {
    let program = program()?;
    let output = Command::new(program).arg("--version").output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.lines().next().map(|line| line.trim().to_owned())
}

fn program() -> Option<&'static str> {
    let runs = |program: &&str| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    PROGRAMS.into_iter().find(runs)
}

impl PgBouncer {
    /// Starts a PgBouncer in front of the server at `upstream` (`host:port`); `settings` are added to its configuration.
    ///
    /// # Panics
    /// When PgBouncer is not installed (`cargo xtask setup` installs it) or does not start.
    #[must_use]
    pub fn start(upstream: &str, settings: &[(&str, &str)]) -> Self {
        match Self::try_start(upstream, settings) {
            Ok(started) => started,
            Err(error) => panic!("{error}"),
        }
    }

    fn try_start(upstream: &str, settings: &[(&str, &str)]) -> io::Result<Self> {
        let program = program().ok_or_else(|| {
            io::Error::other(format!(
                "Debian's package {PGBOUNCER_PACKAGE} is not installed; run: cargo xtask setup"
            ))
        })?;
        let (host, port) = upstream.rsplit_once(':').ok_or_else(|| {
            io::Error::other(format!(
                "the address of the server must be host:port, is {upstream}"
            ))
        })?;
        let kind = Pooler {
            program,
            upstream: (host.to_owned(), port.to_owned()),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let server = Server::start(OsUser::for_postgres()?, kind)?;
        Ok(Self { server })
    }

    /// `host:port` of the pooler, to be used instead of the server's.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port())
    }

    /// Stops the pooler at once; its clients and its connections to the server break.
    ///
    /// # Errors
    /// When it does not stop.
    pub fn stop(&mut self) -> io::Result<()> {
        self.server.end("TERM")
    }

    /// Starts a stopped pooler on the same port.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_again(&mut self) -> io::Result<()> {
        self.server.start_again()
    }
}
