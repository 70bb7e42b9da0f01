//! Runs the program under test in its own directory. Knows no case.

use leasehold_testkit::{Process, TempDir, temp_dir};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Generous for slow machines; conditions hold much sooner.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// A directory and environment variables for commands.
pub(crate) struct CommandEnv {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandEnv {
    pub(crate) fn new() -> Self {
        Self {
            dir: temp_dir(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
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
            .current_dir(self.dir.path())
            // Excludes settings of the developer's environment.
            .env_clear()
            .envs(self.variables.iter().cloned());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        CommandOutput {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a command in the background.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Process {
        Process::spawn(self.command(arguments))
    }
}

impl CommandOutput {
    /// Asserts exit code 0.
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// The error line without `error: `.
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
