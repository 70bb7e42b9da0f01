//! Checks the files under `packaging/` with the linters of their kind, each of which must also refuse a broken one, and the names of settings in them.
//! Knows no server: whether the program does what its settings say is tested elsewhere.
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

/// What a file of the repository holds.
fn text(below_root: &str) -> String {
    let path = path(below_root);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a command came to.
struct Outcome {
    well: bool,
    /// Both streams.
    said: String,
}

fn run(command: &mut Command) -> Outcome {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run: cargo xtask setup"));
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Outcome {
        well: output.status.success(),
        said,
    }
}

/// What Prometheus' checker comes to.
fn promtool(arguments: &[&str]) -> Outcome {
    let output = leasehold_testkit::promtool(arguments, "");
    let said = [output.stdout, output.stderr].concat();
    Outcome {
        well: output.status.success(),
        said: String::from_utf8_lossy(&said).into_owned(),
    }
}

impl Outcome {
    #[track_caller]
    fn must_be_well(self) -> String {
        assert!(self.well, "{}", self.said);
        self.said
    }

    /// Refused, and for this reason: a linter that cannot run refuses everything.
    #[track_caller]
    fn must_be_refused(self, because: &str) {
        assert!(
            !self.well,
            "it should have been refused because of `{because}`"
        );
        assert!(
            self.said.contains(because),
            "not because of `{because}`: {}",
            self.said
        );
    }
}

/// Replaces a part that must be there.
#[track_caller]
fn with(text: &str, part: &str, other: &str) -> String {
    assert!(text.contains(part), "`{part}` is not there");
    text.replace(part, other)
}
