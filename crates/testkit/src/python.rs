//! Python programs as child processes, with Temporal's SDK installed. Does not know what they do.

use std::path::Path;
use std::process::Command;

use crate::process::Process;
use crate::tools::python_path;

/// Runs a script with Temporal's Python SDK in its path, such as a worker.
///
/// Output is unbuffered, so that a test can wait for a line that says the worker is ready. The SDK may crash Python at
/// exit: end a script with `os._exit` if the test checks its exit status.
///
/// # Panics
/// When the SDK is not installed (`cargo xtask setup` installs it) or Python does not start.
#[must_use]
pub fn python_worker(script: &Path, arguments: &[&str]) -> Process {
    let sdk = python_path().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new("python3");
    command
        // Writes no cache files, since the script lies in the source tree.
        .args(["-B", "-u"])
        .arg(script)
        .args(arguments)
        .env("PYTHONPATH", sdk);
    Process::spawn(command)
}
