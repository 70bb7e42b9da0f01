//! The program under test in a folder of its own, by its command and its settings. Knows no case.

use crate::PATIENCE;
use leasehold_testkit::Process;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a command of the program with these variables.
pub(crate) fn spawn(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(folder)
        // Somebody's own settings must not lead to somebody's own servers.
        .env_clear()
        .envs(variables.iter().copied());
    Process::spawn(command)
}

/// `leasehold`, which Cargo puts beside the worker's program.
fn program() -> PathBuf {
    let program =
        Path::new(env!("CARGO_BIN_EXE_leasehold-temporal-worker")).with_file_name("leasehold");
    assert!(
        program.exists(),
        "{} is missing: `cargo build -p leasehold` builds it",
        program.display()
    );
    program
}

/// Waits for the line with that text.
pub(crate) fn says(process: &Process, text: &str) -> String {
    tokio::task::block_in_place(|| process.wait_for_line(PATIENCE, |line| line.contains(text)))
}

/// What stands behind `name=` in a line.
pub(crate) fn field(line: &str, name: &str) -> String {
    let (_, behind) = line.split_once(&format!("{name}=")).unwrap();
    let value = behind.split_whitespace().next().unwrap();
    value.trim_matches('"').to_owned()
}
