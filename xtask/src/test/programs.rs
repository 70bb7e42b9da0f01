//! Builds the test programs and says where they are. Runs none.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::TestArguments;
use crate::interrupt::Interrupt;
use crate::setup::InstalledPostgres;
use crate::{child, workspace};

/// One program of tests: the unit tests of a library, or a file or folder under `tests/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// `package` for its unit tests, `package::name` for what is under `tests/`.
    pub(super) name: String,
    pub(super) executable: PathBuf,
    /// The package's folder, in which its tests run.
    pub(super) folder: PathBuf,
    /// Arguments that select a part of its tests.
    pub(super) options: Vec<String>,
    /// The PostgreSQL version that it runs on, if not the shared server.
    pub(super) postgres: Option<InstalledPostgres>,
    /// Variables that only this program gets.
    pub(super) variables: Vec<(&'static str, String)>,
}

pub(super) fn build(arguments: &TestArguments, interrupt: &Interrupt) -> Result<Vec<TestProgram>> {
    let mut command = workspace::cargo();
    command.args(["test", "--no-run", "--locked"]);
    command.arg("--message-format=json-render-diagnostics");
    narrow(&mut command, &arguments.package);
    for name in &arguments.program {
        command.args(["--test", name]);
    }
    if !arguments.program.is_empty() {
        // Some tests run examples, which Cargo leaves out when it is told which tests to build.
        command.arg("--examples");
    }
    let mut programs = Vec::new();
    let mut unread = None;
    let status = child::read(&mut command, interrupt, |line| match program(line) {
        Ok(found) => programs.extend(found),
        Err(error) => unread = Some(error),
    })?;
    if !status.success() {
        bail!("the tests do not compile");
    }
    match unread {
        Some(error) => Err(error),
        None => Ok(programs),
    }
}

/// These packages, or all.
pub(super) fn narrow(command: &mut Command, packages: &[String]) {
    if packages.is_empty() {
        command.arg("--workspace");
    }
    for package in packages {
        command.args(["-p", package]);
    }
}

/// What one line of Cargo's says, if it is about a test program.
fn program(line: &str) -> Result<Option<TestProgram>> {
    let message: Value =
        serde_json::from_str(line).with_context(|| format!("Cargo said: {line}"))?;
    let (Some(executable), Some(true)) = (
        message["executable"].as_str(),
        message["profile"]["test"].as_bool(),
    ) else {
        return Ok(None);
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = text(&message["manifest_path"]).context("an artifact without a manifest")?;
    let target = text(&message["target"]["name"]).context("an artifact without a name")?;
    let folder = PathBuf::from(&manifest)
        .parent()
        .context("a manifest without a folder")?
        .to_owned();
    let package = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_test = message["target"]["kind"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
    Ok(Some(TestProgram {
        name: if is_test {
            format!("{package}::{target}")
        } else {
            package
        },
        executable: PathBuf::from(executable),
        folder,
        options: Vec::new(),
        postgres: None,
        variables: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TestProgram {
        /// A program that is nowhere.
        pub(crate) fn named(name: &str) -> Self {
            Self {
                name: name.to_owned(),
                executable: PathBuf::new(),
                folder: PathBuf::new(),
                options: Vec::new(),
                postgres: None,
                variables: Vec::new(),
            }
        }
    }

    #[test]
    fn a_test_program_is_known_by_its_package_and_name() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/x/crates/ops/Cargo.toml","target":{"kind":["test"],"name":"enqueue"},"profile":{"test":true},"executable":"/x/target/enqueue-1"}"#;
        let found = program(line).unwrap().unwrap();
        assert_eq!(found.name, "ops::enqueue");
        assert_eq!(found.folder, PathBuf::from("/x/crates/ops"));
        let unit = line.replace(r#"["test"]"#, r#"["lib"]"#);
        assert_eq!(program(&unit).unwrap().unwrap().name, "ops");
    }

    #[test]
    fn what_is_no_test_program_is_passed_over() {
        let library =
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":null}"#;
        let binary = r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/x/target/leasehold"}"#;
        for line in [library, binary, r#"{"reason":"build-finished"}"#] {
            assert_eq!(program(line).unwrap(), None);
        }
        assert!(program("not JSON").is_err());
    }

    #[test]
    fn the_whole_workspace_is_tested_unless_narrowed() {
        let words = |packages: &[&str]| -> Vec<String> {
            let packages: Vec<String> = packages.iter().map(ToString::to_string).collect();
            let mut command = Command::new("cargo");
            narrow(&mut command, &packages);
            let words = command
                .get_args()
                .map(|word| word.to_string_lossy().into_owned());
            words.collect()
        };
        assert_eq!(words(&[]), ["--workspace"]);
        assert_eq!(words(&["leasehold-core"]), ["-p", "leasehold-core"]);
    }
}
