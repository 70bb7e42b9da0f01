//! Paths of the repository and its build directory, and the cargo command. Reads the environment, changes nothing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo sets it at run time; the compile-time value serves a binary that is started directly.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(Path::new(".")).to_owned()
}

/// The build directory; also holds downloads of setup, which `cargo clean` removes.
pub(crate) fn target() -> PathBuf {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    root().join(target)
}

/// The running cargo, in the workspace root. The variables that describe the package xtask are removed: the build script of `ring` reads them, so `cargo test`
/// and `cargo xtask test` would rebuild each other's work.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in env::vars_os() {
        if describes_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

fn describes_package(variable: &str) -> bool {
    let prefixes = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    prefixes.iter().any(|prefix| variable.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_package_are_told_from_settings_of_cargo() {
        for variable in [
            "CARGO_PKG_NAME",
            "CARGO_MANIFEST_DIR",
            "CARGO_MANIFEST_LINKS",
        ] {
            assert!(describes_package(variable), "{variable}");
        }
        for variable in [
            "CARGO_TARGET_DIR",
            "CARGO_HOME",
            "CARGO_INCREMENTAL",
            "RUSTFLAGS",
        ] {
            assert!(!describes_package(variable), "{variable}");
        }
    }
}
