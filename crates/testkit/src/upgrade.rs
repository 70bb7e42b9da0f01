//! Moves a cluster's databases into a new cluster with `pg_upgrade`. Controls the servers by their programs, never by SQL.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::cluster::Cluster;
use crate::server::Server;

impl Cluster {
    /// Stops this server, and starts a new one on the databases that `pg_upgrade` has moved into a new cluster. Both have the same version: the npm packages
    /// lack `pg_controldata` and `pg_resetwal`, which `pg_upgrade` needs of either version, and Debian has one version.
    ///
    /// # Errors
    /// When a server does not stop or start, or `pg_upgrade` fails.
    pub fn upgraded(&mut self) -> io::Result<Self> {
        self.stop()?;
        let (user, kind) = (self.server.user(), self.server.kind().clone());
        let programs = kind.programs().to_owned();
        let old = self.directory().join("data");
        let server = Server::start_with(user, kind, |directory| {
            let new = directory.join("data");
            let command = |name: &str| {
                let mut command = user.command(&programs.join(name).to_string_lossy());
                command.current_dir(directory);
                command
            };
            let locale = [
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ];
            run(command("initdb")
                .args(locale)
                .args(["--no-sync", "-D"])
                .arg(&new))?;
            let paths: [(&str, &Path); 5] = [
                ("-b", &programs),
                ("-B", &programs),
                ("-d", &old),
                ("-D", &new),
                ("-s", directory),
            ];
            let paths = paths
                .iter()
                .flat_map(|(name, path)| [OsStr::new(*name), path.as_os_str()]);
            run(command("pg_upgrade").args(["-U", "postgres"]).args(paths))
        })?;
        Ok(Self {
            server,
            checks_deadlocks: true,
        })
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let program = command.get_program().display();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Err(io::Error::other(format!(
        "{program} failed: {} {}",
        text(&output.stdout),
        text(&output.stderr)
    )))
}
