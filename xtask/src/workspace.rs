//! Where this repository, its build folder and its cargo are. Reads the environment, changes nothing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the workspace's Cargo.toml.
pub(crate) fn root() -> PathBuf {
    // Cargo sets it at run time; the value of compile time serves a binary that is started by hand.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(Path::new(".")).to_owned()
}

/// The build folder; what set-up downloads lies in it too, and goes with `cargo clean`.
pub(crate) fn target() -> PathBuf {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    root().join(target)
}

/// The cargo that runs us, in the workspace's folder.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
