//! A server in a folder of its own on a port of its own, that is stopped and started again. Does not know which server.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::port::free_port;
use crate::server_process::ServerProcess;

/// A port can be taken between the choice and the start, and the last children of a killed server need a moment to go.
const START_ATTEMPTS: u32 = 5;

/// What one kind of server has of its own.
pub(crate) trait ServerKind {
    /// As messages call it.
    const NAME: &'static str;
    /// The signal that ends it at once and in order, when its owner is gone.
    const END_SIGNAL: &'static str;

    /// What to run.
    fn command(&self, folder: &Path, port: u16) -> Vec<OsString>;

    /// Whether the server with that process id serves.
    fn is_ready(&self, folder: &Path, port: u16, pid: u32) -> bool;
}

/// A server that ends, and whose folder goes, with the handle or with this process.
pub(crate) struct Server<K> {
    kind: K,
    account: Account,
    folder: PathBuf,
    port: u16,
    process: Option<ServerProcess>,
}

impl<K: ServerKind> Server<K> {
    /// Starts it on a free port and waits until it serves.
    pub(crate) fn start(account: Account, kind: K) -> io::Result<Self> {
        let mut server = Self {
            kind,
            account,
            folder: account.make_folder()?,
            port: 0,
            process: None,
        };
        server.launch(true)?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    /// Ends the server with that signal; folder and port stay for the next.
    pub(crate) fn end(&mut self, signal: &str) -> io::Result<()> {
        match &mut self.process {
            Some(process) => process.stop(signal).map_err(named::<K>),
            None => Err(named::<K>(io::Error::other("it failed to start before"))),
        }
    }

    /// Starts an ended server on the same folder and the same port.
    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        self.launch(false)
    }

    /// Starts a server on the folder, then sends the watchdog of the one before away: one always guards the folder.
    fn launch(&mut self, choose_port: bool) -> io::Result<()> {
        let mut attempt = 1;
        loop {
            if choose_port {
                self.port = free_port()?;
            }
            let command = self.kind.command(&self.folder, self.port);
            let mut process =
                ServerProcess::start(self.account, &self.folder, K::END_SIGNAL, &command)
                    .map_err(named::<K>)?;
            if let Some(before) = self.process.take() {
                before.leave()?;
            }
            let ready = process.wait_ready(|pid| self.kind.is_ready(&self.folder, self.port, pid));
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
