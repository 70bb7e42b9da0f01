//! A server on a SQLite file in its own directory, and the commands that run there.

use crate::TIMEOUT;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server process and the directory in which commands run.
pub(crate) struct CliEnv {
    dir: TempDir,
    serve: Process,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Builds a command with an empty environment except `PATH`.
pub(crate) fn program(dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments).current_dir(dir).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

pub(crate) fn run(mut command: Command, stdin: &str) -> CommandOutput {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command may exit without reading its input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl CliEnv {
    pub(crate) fn new() -> Self {
        Self::with_settings(&[])
    }

    /// Starts the server with these variables.
    pub(crate) fn with_settings(variables: &[(&str, &str)]) -> Self {
        Self::starting("127.0.0.1:0", variables)
    }

    /// Starts the server on an address that no other process of this machine uses, so that its port stays free after its end.
    pub(crate) fn on_own_address() -> Self {
        Self::starting("127.0.0.77:0", &[])
    }

    fn starting(listen: &str, variables: &[(&str, &str)]) -> Self {
        let dir = temp_dir();
        let serve = start(dir.path(), listen, variables);
        Self { dir, serve }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// The URL in the address file.
    pub(crate) fn address(&self) -> String {
        let file = self.dir.path().join("leasehold-data/address");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub(crate) fn key(&self) -> String {
        let file = self.dir.path().join("leasehold-data/admin.key");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Kills the server, runs `meanwhile`, and restarts the server. Another process may have taken its port meanwhile; commands find the
    /// server by its socket.
    pub(crate) fn restart(&mut self, meanwhile: impl FnOnce()) {
        self.serve.kill();
        meanwhile();
        self.serve = start(self.dir.path(), "127.0.0.1:0", &[]);
    }

    /// Kills the server; its files stay.
    pub(crate) fn kill(&mut self) {
        self.serve.kill();
    }

    pub(crate) fn stop(&mut self) {
        self.serve.terminate();
        assert!(self.serve.wait(TIMEOUT).success());
    }

    /// Runs a command line, split at spaces.
    pub(crate) fn run(&self, words: &str) -> CommandOutput {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run_args(&words)
    }

    pub(crate) fn run_args(&self, arguments: &[&str]) -> CommandOutput {
        run(program(self.dir(), arguments), "")
    }

    pub(crate) fn run_with_env(&self, words: &str, variables: &[(&str, &str)]) -> CommandOutput {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = program(self.dir(), &words);
        command.envs(variables.iter().copied());
        run(command, "")
    }

    /// Runs a command over TCP with this key instead of the socket and the key of the data directory.
    pub(crate) fn run_with_key(&self, words: &str, key: &str) -> CommandOutput {
        let address = self.address();
        let variables = [
            ("LEASEHOLD_SERVER", address.as_str()),
            ("LEASEHOLD_KEY", key),
        ];
        self.run_with_env(words, &variables)
    }

    /// Runs a command, asserts exit code 0 and returns its standard output.
    pub(crate) fn ok(&self, words: &str) -> String {
        let output = self.run(words);
        assert_eq!(output.code, 0, "leasehold {words}\n{output:?}");
        output.out.trim_end().to_owned()
    }

    /// Publishes a definition with one `delay` node.
    pub(crate) fn publish_pause(&self, name: &str, millis: u32) {
        let graph = format!(
            r#"{{"nodes": [{{"id": "pause", "type": "delay", "milliseconds": {millis}}}]}}"#
        );
        self.file("pause.json", &graph);
        self.ok(&format!("definition publish {name} pause.json"));
    }

    /// Publishes a definition with one task in this queue.
    pub(crate) fn publish_task(&self, name: &str, queue: &str) {
        let graph = format!(
            r#"{{"nodes": [{{"id": "work", "type": "task", "queue": "{queue}", "retry": {{"max_attempts": 1}}}}]}}"#
        );
        self.file("task.json", &graph);
        self.ok(&format!("definition publish {name} task.json"));
    }
}

/// Starts a server in this directory and waits until it runs.
pub(crate) fn start(dir: &Path, listen: &str, variables: &[(&str, &str)]) -> Process {
    let mut command = program(dir, &["serve", "--listen", listen]);
    command.envs(variables.iter().copied());
    let serve = Process::spawn(command);
    serve.wait_for_line(TIMEOUT, |line| line.contains("leasehold is running"));
    serve
}

/// Replaces values that differ between runs: ids (numbered), timestamps, ages, durations.
pub(crate) fn normalize(text: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| normalize_word(word, &mut ids));
        words.collect::<Vec<_>>().join(" ")
    });
    let text: Vec<String> = lines.map(|line| collapse_columns(&line)).collect();
    text.join("\n") + "\n"
}

fn normalize_word(word: &str, ids: &mut Vec<String>) -> String {
    let bare = word.trim_matches(|one: char| !one.is_ascii_alphanumeric());
    let placeholder = if bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4
    {
        let index = ids.iter().position(|id| id == bare).unwrap_or_else(|| {
            ids.push(bare.to_owned());
            ids.len() - 1
        });
        format!("<id {}>", index + 1)
    } else if bare.parse::<jiff::Timestamp>().is_ok() {
        "<timestamp>".to_owned()
    } else if is_time_of_day(bare) {
        "<time>".to_owned()
    } else if is_duration(bare) {
        "<duration>".to_owned()
    } else {
        return word.to_owned();
    };
    word.replace(bare, &placeholder)
}

fn is_time_of_day(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.parse::<u8>().is_ok())
}

fn is_duration(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h'])
        && word
            .chars()
            .all(|one| one.is_ascii_digit() || ".msh".contains(one))
}

/// Collapses column padding and ages.
fn collapse_columns(line: &str) -> String {
    let parts = line
        .split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let indent = if line.starts_with(' ') { "  " } else { "" };
    let parts = parts.map(|part| match part {
        "now" | "<duration> ago" | "in <duration>" => "<age>",
        other => other,
    });
    let text = parts.collect::<Vec<_>>().join("  ");
    format!("{indent}{text}")
}
