//! Copies of a cluster's files: a streaming replica, and a saved state to go back to. Controls servers by signals and files, never by SQL.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::os_user::OsUser;
use crate::server::Server;

/// The files of a cluster at one moment.
pub struct SavedCluster {
    directory: PathBuf,
}

impl Cluster {
    /// Starts a streaming replica of this server. Restarts this server, because its files are copied while it is stopped.
    ///
    /// # Errors
    /// When a server does not stop or start, or the files cannot be copied.
    pub fn standby(&mut self) -> io::Result<Self> {
        self.stop()?;
        let (user, kind) = (self.server.user(), self.server.kind().clone());
        let (from, port) = (self.directory().join("data"), self.server.port());
        let primary = format!(
            "primary_conninfo = 'host=127.0.0.1 port={port} user=postgres'\nhot_standby = on\n"
        );
        let mut own = Some(self);
        let server = Server::start_with(user, kind, |directory| {
            let data = directory.join("data");
            copy(user, &from, &data)?;
            fs::write(data.join("standby.signal"), "")?;
            let mut settings = OpenOptions::new()
                .append(true)
                .open(data.join("postgresql.auto.conf"))?;
            settings.write_all(primary.as_bytes())?;
            own.take().map_or(Ok(()), Self::start_again)
        })?;
        Ok(Self {
            server,
            checks_deadlocks: true,
        })
    }

    /// Saves the files of this server, which is frozen meanwhile: a server on the copy recovers as after a crash.
    ///
    /// # Errors
    /// When the files cannot be copied.
    pub fn save(&self) -> io::Result<SavedCluster> {
        let directory = self.directory().join("saved");
        let frozen = self.freeze();
        copy(
            self.server.user(),
            &self.directory().join("data"),
            &directory,
        )?;
        drop(frozen);
        fs::remove_file(directory.join("postmaster.pid"))?;
        Ok(SavedCluster { directory })
    }

    /// Replaces the files of this server by saved ones and starts it: what was committed since is lost, and the timeline stays the same.
    ///
    /// # Errors
    /// When the server does not stop or start, or the files cannot be replaced.
    pub fn restore(&mut self, saved: SavedCluster) -> io::Result<()> {
        self.kill()?;
        let data = self.directory().join("data");
        fs::remove_dir_all(&data)?;
        fs::rename(saved.directory, data)?;
        self.start_again()
    }
}

fn copy(user: OsUser, from: &Path, to: &Path) -> io::Result<()> {
    let status = user.command("cp").arg("-a").args([from, to]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "failed to copy {} to {}",
            from.display(),
            to.display()
        ))),
    }
}
