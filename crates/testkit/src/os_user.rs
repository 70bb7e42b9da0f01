//! The operating system user that a server runs as: the current one, or `postgres` if PostgreSQL is started by root.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const POSTGRES_USER: &str = "postgres";

/// The operating system user of a server: the current user or `postgres`.
#[derive(Clone, Copy)]
pub(crate) struct OsUser {
    /// User and group to switch to; none for the current user.
    switch_to: Option<(u32, u32)>,
}

impl OsUser {
    /// The current user.
    pub(crate) fn current() -> Self {
        Self { switch_to: None }
    }

    /// A user that PostgreSQL accepts: the current user, or `postgres` if the current user is root.
    pub(crate) fn for_postgres() -> io::Result<Self> {
        let switch_to = if query_id(&["-u"])? == 0 {
            Some((
                query_id(&["-u", POSTGRES_USER])?,
                query_id(&["-g", POSTGRES_USER])?,
            ))
        } else {
            None
        };
        Ok(Self { switch_to })
    }

    /// Returns a command that runs as this user in its own process group: Ctrl-C must reach the tests, not the watchdog that
    /// cleans up after them.
    pub(crate) fn command(self, program: &str) -> Command {
        let mut command = Command::new(program);
        // The other user may have no access to the current directory.
        command.current_dir("/").process_group(0);
        if let Some((user, group)) = self.switch_to {
            command.uid(user).gid(group);
        }
        command
    }

    /// Creates an empty directory that only this user and root can read.
    pub(crate) fn create_directory(self) -> io::Result<PathBuf> {
        let pattern = crate::temp_root().join("leasehold-XXXXXXXX");
        let output = self
            .command("mktemp")
            .arg("-d")
            .arg(&pattern)
            .output()
            .map_err(|error| io::Error::other(format!("failed to start mktemp: {error}")))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!(
                "failed to create a directory for the server: {}",
                error.trim()
            )));
        }
        Ok(PathBuf::from(
            String::from_utf8_lossy(&output.stdout).trim(),
        ))
    }
}

/// Runs `id` and parses its number; std has no safe function for the effective user.
fn query_id(arguments: &[&str]) -> io::Result<u32> {
    let output = Command::new("id").args(arguments).output()?;
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .map_err(|_| {
            let error = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!(
                "id {} printed no number: {}",
                arguments.join(" "),
                error.trim()
            ))
        })
}
