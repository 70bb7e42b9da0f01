//! Whose account a server runs under: our own, except that PostgreSQL refuses root and runs as `postgres` then.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const POSTGRES_USER: &str = "postgres";

/// The account of a server: our own, or that of `postgres`.
#[derive(Clone, Copy)]
pub(crate) struct Account {
    /// User and group to change to; none when we run servers as ourselves.
    change_to: Option<(u32, u32)>,
}

impl Account {
    /// The account we run under ourselves.
    pub(crate) fn ours() -> Self {
        Self { change_to: None }
    }

    /// One that PostgreSQL accepts: our own, or that of `postgres` when we are root.
    pub(crate) fn for_postgres() -> io::Result<Self> {
        let change_to = if ask_id(&["-u"])? == 0 {
            Some((
                ask_id(&["-u", POSTGRES_USER])?,
                ask_id(&["-g", POSTGRES_USER])?,
            ))
        } else {
            None
        };
        Ok(Self { change_to })
    }

    /// A command that will run under this account, in a process group of its own: Ctrl-C in the terminal must reach the
    /// tests, not the watchdog that cleans up after them.
    pub(crate) fn command(self, program: &str) -> Command {
        let mut command = Command::new(program);
        // The caller's folder may be closed to the other account.
        command.current_dir("/").process_group(0);
        if let Some((user, group)) = self.change_to {
            command.uid(user).gid(group);
        }
        command
    }

    /// Makes an empty folder that only this account (and root) can read.
    pub(crate) fn make_folder(self) -> io::Result<PathBuf> {
        let pattern = std::env::temp_dir().join("leasehold-XXXXXXXX");
        let output = self
            .command("mktemp")
            .arg("-d")
            .arg(&pattern)
            .output()
            .map_err(|error| io::Error::other(format!("mktemp could not be started: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!(
                "no folder for the server: {}",
                said.trim()
            )));
        }
        Ok(PathBuf::from(
            String::from_utf8_lossy(&output.stdout).trim(),
        ))
    }
}

/// Asks `id` for a number; std has no safe way to ask for the effective user.
fn ask_id(arguments: &[&str]) -> io::Result<u32> {
    let output = Command::new("id").args(arguments).output()?;
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!(
                "id {} gave no number: {}",
                arguments.join(" "),
                said.trim()
            ))
        })
}
