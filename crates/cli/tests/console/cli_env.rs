//! A server on a file in a folder of its own, and commands that are run in that folder.

use crate::PATIENCE;
use leasehold_testkit::{Process, TempDir, temp_dir};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server process with its folder, where the commands under test run.
pub(crate) struct CliEnv {
    folder: TempDir,
    serve: Process,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program with these arguments in this folder, and nothing of anybody's own environment but where programs are.
pub(crate) fn program(folder: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments).current_dir(folder).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

pub(crate) fn run(mut command: Command, stdin: &str) -> Said {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read it may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl CliEnv {
    pub(crate) fn new() -> Self {
        let folder = temp_dir();
        let serve = start(folder.path(), "127.0.0.1:0");
        Self { folder, serve }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Where the server listens, as it says itself.
    pub(crate) fn address(&self) -> String {
        let file = self.folder.path().join("leasehold-data/address");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub(crate) fn key(&self) -> String {
        let file = self.folder.path().join("leasehold-data/admin.key");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Kills the server, lets something happen meanwhile, and starts it again at the same place.
    pub(crate) fn restart(&mut self, meanwhile: impl FnOnce()) {
        let address = self.address();
        let address = address.trim_start_matches("http://").to_owned();
        self.serve.kill();
        meanwhile();
        self.serve = start(self.folder.path(), &address);
    }

    pub(crate) fn stop(&mut self) {
        self.serve.terminate();
        assert!(self.serve.wait(PATIENCE).success());
    }

    /// Runs a command, written as in a shell without quotes.
    pub(crate) fn says(&self, words: &str) -> Said {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.says_all(&words)
    }

    pub(crate) fn says_all(&self, arguments: &[&str]) -> Said {
        run(program(self.folder(), arguments), "")
    }

    pub(crate) fn says_with(&self, words: &str, variables: &[(&str, &str)]) -> Said {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = program(self.folder(), &words);
        command.envs(variables.iter().copied());
        run(command, "")
    }

    /// What a command that ends well prints.
    pub(crate) fn ok(&self, words: &str) -> String {
        let said = self.says(words);
        assert_eq!(said.code, 0, "leasehold {words}\n{said:?}");
        said.out.trim_end().to_owned()
    }

    /// A definition that pauses for a moment and ends.
    pub(crate) fn publish_pause(&self, name: &str, millis: u32) {
        let graph = format!(
            r#"{{"nodes": [{{"id": "pause", "type": "delay", "milliseconds": {millis}}}]}}"#
        );
        self.file("pause.json", &graph);
        self.ok(&format!("definition publish {name} pause.json"));
    }

    /// A definition whose only node is a job of this queue.
    pub(crate) fn publish_task(&self, name: &str, queue: &str) {
        let graph = format!(
            r#"{{"nodes": [{{"id": "work", "type": "task", "queue": "{queue}", "retry": {{"max_attempts": 1}}}}]}}"#
        );
        self.file("task.json", &graph);
        self.ok(&format!("definition publish {name} task.json"));
    }
}

fn start(folder: &Path, listen: &str) -> Process {
    let mut command = program(folder, &["serve", "--listen", listen]);
    // Killed on purpose in some tests: what it held is free again soon.
    command.env("LEASEHOLD__EMBEDDED__LEASE", "1s");
    let serve = Process::spawn(command);
    serve.wait_for_line(PATIENCE, |line| line.contains("leasehold is running"));
    serve
}

/// The text with everything that differs from run to run named instead: ids in the order they come, moments, ages, lengths.
pub(crate) fn steady(text: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| word_of(word, &mut ids));
        words.collect::<Vec<_>>().join(" ")
    });
    let text: Vec<String> = lines.map(|line| columns(&line)).collect();
    text.join("\n") + "\n"
}

fn word_of(word: &str, ids: &mut Vec<String>) -> String {
    let bare = word.trim_matches(|one: char| !one.is_ascii_alphanumeric());
    let shown = if bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4 {
        let place = ids.iter().position(|id| id == bare).unwrap_or_else(|| {
            ids.push(bare.to_owned());
            ids.len() - 1
        });
        format!("<id {}>", place + 1)
    } else if bare.parse::<jiff::Timestamp>().is_ok() {
        "<moment>".to_owned()
    } else if is_clock(bare) {
        "<clock>".to_owned()
    } else if is_length(bare) {
        "<length>".to_owned()
    } else {
        return word.to_owned();
    };
    word.replace(bare, &shown)
}

fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    parts.len() == 3
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.parse::<u8>().is_ok())
}

fn is_length(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h'])
        && word
            .chars()
            .all(|one| one.is_ascii_digit() || ".msh".contains(one))
}

/// Widths of columns differ with what is in them, and ages with how long a test takes.
fn columns(line: &str) -> String {
    let parts = line
        .split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let indent = if line.starts_with(' ') { "  " } else { "" };
    let parts = parts.map(|part| match part {
        "now" | "<length> ago" | "in <length>" => "<age>",
        other => other,
    });
    let text = parts.collect::<Vec<_>>().join("  ");
    format!("{indent}{text}")
}
