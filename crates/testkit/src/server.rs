//! A server with its own directory and port that tests stop and start again. Does not know which server.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::os_user::OsUser;
use crate::port::free_port;
use crate::server_process::ServerProcess;

/// Another process can take a port before the server binds it, and children of a killed server need time to exit.
const START_ATTEMPTS: u32 = 5;

/// What differs between PostgreSQL and Temporal.
pub(crate) trait ServerKind {
    /// The name in error messages.
    const NAME: &'static str;
    /// The signal that the watchdog sends when the owner has exited.
    const END_SIGNAL: &'static str;

    /// The command line that runs the server.
    fn command(&self, directory: &Path, port: u16) -> Vec<OsString>;

    /// Whether the server with this process id accepts calls.
    fn is_ready(&self, directory: &Path, port: u16, pid: u32) -> bool;
}

/// A server that stops, and whose directory is removed, when the handle is dropped or this process exits.
pub(crate) struct Server<K> {
    kind: K,
    user: OsUser,
    directory: PathBuf,
    port: u16,
    process: Option<ServerProcess>,
}

impl<K: ServerKind> Server<K> {
    /// Starts the server on a free port and waits until it is ready.
    pub(crate) fn start(user: OsUser, kind: K) -> io::Result<Self> {
        Self::start_with(user, kind, |_| Ok(()))
    }

    /// Like [`start`](Self::start), after `prepare` has filled the server's directory.
    pub(crate) fn start_with(
        user: OsUser,
        kind: K,
        prepare: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut server = Self {
            kind,
            user,
            directory: user.create_directory()?,
            port: 0,
            process: None,
        };
        prepare(&server.directory)?;
        server.launch(true)?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn user(&self) -> OsUser {
        self.user
    }

    pub(crate) fn kind(&self) -> &K {
        &self.kind
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    /// Stops the server with the given signal; keeps directory and port for the next start.
    pub(crate) fn end(&mut self, signal: &str) -> io::Result<()> {
        match &mut self.process {
            Some(process) => process.stop(signal).map_err(named::<K>),
            None => Err(named::<K>(io::Error::other(
                "the server is not running: its last start failed",
            ))),
        }
    }

    /// Starts a stopped server in the same directory and on the same port.
    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        self.launch(false)
    }

    /// Starts a server, then ends the watchdog of the previous one, so that a watchdog always guards the directory.
    fn launch(&mut self, choose_port: bool) -> io::Result<()> {
        let mut attempt = 1;
        loop {
            if choose_port {
                self.port = free_port()?;
            }
            let command = self.kind.command(&self.directory, self.port);
            let mut process =
                ServerProcess::start(self.user, &self.directory, K::END_SIGNAL, &command)
                    .map_err(named::<K>)?;
            if let Some(before) = self.process.take() {
                before.detach()?;
            }
            let ready =
                process.wait_ready(|pid| self.kind.is_ready(&self.directory, self.port, pid));
            let error = match ready {
                Ok(()) => {
                    self.process = Some(process);
                    return Ok(());
                }
                Err(error) => error,
            };
            if attempt == START_ATTEMPTS {
                return Err(named::<K>(error));
            }
            attempt += 1;
            process.stop("KILL").map_err(named::<K>)?;
            self.process = Some(process);
        }
    }
}

fn named<K: ServerKind>(error: io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", K::NAME))
}
