//! Python programs as child processes, with Temporal's own SDK at hand. Does not know what they do.

use std::path::Path;
use std::process::Command;

use crate::process::Process;
use crate::tools::python_path;

/// Runs a script with Temporal's Python SDK in its path, such as a worker that nobody here wrote the SDK of.
///
/// What it prints comes at once, so that a test can wait for the line that says it is ready. The SDK may crash Python on
/// its way out: let a script that matters for its status end with `os._exit`.
///
/// # Panics
/// When the SDK is not installed (`cargo xtask setup` installs it) or Python does not start.
#[must_use]
pub fn python_worker(script: &Path, arguments: &[&str]) -> Process {
    let sdk = python_path().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new("python3");
    command
        // No cache beside the script, which lies in the source tree.
        .args(["-B", "-u"])
        .arg(script)
        .args(arguments)
        .env("PYTHONPATH", sdk);
    Process::spawn(command)
}
