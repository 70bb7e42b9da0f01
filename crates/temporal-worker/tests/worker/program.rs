//! Starts the program under test in its own directory.

use crate::WAIT_TIMEOUT;
use leasehold_testkit::Process;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a command of the program with these environment variables.
pub(crate) fn spawn(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(directory)
        // The developer's settings must not lead to the developer's servers.
        .env_clear()
        .envs(variables.iter().copied());
    Process::spawn(command)
}

/// Returns the path of `leasehold`, which Cargo builds beside the worker's program.
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

/// Waits for a line with this text.
pub(crate) fn wait_for_text(process: &Process, text: &str) -> String {
    tokio::task::block_in_place(|| process.wait_for_line(WAIT_TIMEOUT, |line| line.contains(text)))
}

/// Returns the value of the field `name=` in a line.
pub(crate) fn field(line: &str, name: &str) -> String {
    let (_, behind) = line.split_once(&format!("{name}=")).unwrap();
    let value = behind.split_whitespace().next().unwrap();
    value.trim_matches('"').to_owned()
}
