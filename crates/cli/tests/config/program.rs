//! The program under test, run to its end in a folder of its own. Knows no case.

use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder, and the variables that commands in it have.
pub(crate) struct Folder {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self {
            folder: temp_dir(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            // Somebody's own settings must not lead to somebody's own servers.
            .env_clear()
            .envs(self.variables.iter().cloned());
        command
    }

    /// Runs a command that ends by itself.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        Ended {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a command that may go on.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Process {
        Process::spawn(self.command(arguments))
    }
}

impl Ended {
    /// It ended well.
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// The one line it ended with, without `error: `.
    pub(crate) fn error(&self) -> &str {
        let lines: Vec<&str> = self
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("error: "))
            .collect();
        assert_eq!(lines.len(), 1, "{self:?}");
        lines[0]
    }
}
