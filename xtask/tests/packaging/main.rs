//! Checks the files under `packaging/` with linters, each of which must also reject an invalid file, and the settings in them.
//! Knows no server; the tests of the program cover its behaviour.
#![allow(clippy::unwrap_used)]

mod alerts;
mod chart;
mod compose;
mod dashboard;
mod documents;
mod github;
mod image;
mod series;
mod settings;
mod shell;
mod style;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
fn path(below_root: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(below_root)
}

/// Reads a file of the repository.
fn text(below_root: &str) -> String {
    let path = path(below_root);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The result of a command.
struct Outcome {
    success: bool,
    /// Standard output and standard error.
    said: String,
}

fn run(command: &mut Command) -> Outcome {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run: cargo xtask setup"));
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Outcome {
        success: output.status.success(),
        said,
    }
}

/// Runs promtool.
fn promtool(arguments: &[&str]) -> Outcome {
    let output = leasehold_testkit::promtool(arguments, "");
    let said = [output.stdout, output.stderr].concat();
    Outcome {
        success: output.status.success(),
        said: String::from_utf8_lossy(&said).into_owned(),
    }
}

impl Outcome {
    #[track_caller]
    fn must_succeed(self) -> String {
        assert!(self.success, "{}", self.said);
        self.said
    }

    /// Asserts a rejection for this reason; a linter that cannot run also fails.
    #[track_caller]
    fn must_fail_with(self, because: &str) {
        assert!(
            !self.success,
            "it should have been refused because of `{because}`"
        );
        assert!(
            self.said.contains(because),
            "not because of `{because}`: {}",
            self.said
        );
    }
}

/// Replaces a part that must exist.
#[track_caller]
fn with(text: &str, part: &str, other: &str) -> String {
    assert!(text.contains(part), "`{part}` not found");
    text.replace(part, other)
}
