//! Decides which tests run on which PostgreSQL version. Starts no server: a test program without an address starts its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use leasehold_testkit::{can_run_postgres, postgres_programs, postgres_version};

use super::TestArguments;
use super::programs::TestProgram;
use crate::setup::{InstalledPostgres, PostgresVersions};

/// The package and the test program of the PostgreSQL store.
const PACKAGE: &str = "leasehold-store-postgres";
const PROGRAM: &str = "postgres";
const NAME: &str = "store-postgres::postgres";
/// Its unit tests, some of which use a database.
const UNIT_TESTS: &str = "store-postgres";

/// The tests of a smoke run: schema, functions, epochs, the event log, the rebuild, and conformance cases of each noun. They take some sixty seconds, four at once.
const SMOKE: [&str; 24] = [
    "schema::",
    "functions::",
    "own_transaction::",
    "epoch::",
    "event_log::",
    "rebuild::",
    "conformance::request_enqueue::",
    "conformance::request_claim::concurrent",
    "conformance::request_claim::each_limit",
    "conformance::request_claim::unknown_start",
    "conformance::request_claim::workspace",
    "conformance::execution_finish::",
    "conformance::job_enqueue::",
    "conformance::job_claim::",
    "conformance::job_finish::",
    "conformance::graph_start::",
    "conformance::node_finish::",
    "conformance::change::",
    "conformance::lock::",
    "conformance::key::",
    "conformance::queue::",
    "conformance::prune::",
    "conformance::job_prune::",
    "conformance::drift_check::",
];

/// Returns the versions that these tests need besides Debian's newest.
pub(super) fn needed(arguments: &TestArguments) -> PostgresVersions {
    if let Some(major) = arguments.postgres {
        return PostgresVersions::One(major);
    }
    let includes =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let has_program =
        includes(&arguments.package, PACKAGE) && includes(&arguments.program, PROGRAM);
    match (has_program, arguments.full) {
        (false, _) => PostgresVersions::None,
        (true, true) => PostgresVersions::All,
        // The caller chose the tests, and the smoke run would add others.
        (true, false) if !arguments.filter.is_empty() => PostgresVersions::None,
        (true, false) => PostgresVersions::Newest,
    }
}

/// The server that most tests share: the requested version, or else the reference version, which is Debian's newest.
pub(super) fn shared(
    arguments: &TestArguments,
    installed: &[InstalledPostgres],
    files: &Path,
) -> Result<InstalledPostgres> {
    let Some(major) = arguments.postgres else {
        let programs = postgres_programs().context("PostgreSQL has gone away")?;
        let version = postgres_version(&programs).unwrap_or_default();
        return Ok(InstalledPostgres {
            major: major(&version),
            version,
            programs,
        });
    };
    let found = installed.iter().find(|one| one.major == major);
    let found = found.with_context(|| format!("PostgreSQL {major} is not available"))?;
    runnable(found, files)
}

/// The versions that only the PostgreSQL store's tests run on.
pub(super) fn further(
    installed: &[InstalledPostgres],
    shared: &InstalledPostgres,
    files: &Path,
) -> Result<Vec<InstalledPostgres>> {
    let others = installed.iter().filter(|one| one.major != shared.major);
    others.map(|version| runnable(version, files)).collect()
}

/// Adds the tests of the PostgreSQL store for each further version: all of them in a full run, otherwise a smoke run.
pub(super) fn add(programs: &mut Vec<TestProgram>, servers: &[InstalledPostgres], full: bool) {
    let (names, options): (&[&str], &[&str]) = match full {
        true => (&[NAME, UNIT_TESTS], &[]),
        false => (&[NAME], &SMOKE),
    };
    let is_store = |program: &&TestProgram| names.contains(&program.name.as_str());
    let store: Vec<TestProgram> = programs.iter().filter(is_store).cloned().collect();
    for server in servers {
        programs.extend(store.iter().map(|program| TestProgram {
            name: format!("{}@{}", program.name, server.major),
            options: options.iter().map(ToString::to_string).collect(),
            postgres: Some(server.clone()),
            ..program.clone()
        }));
    }
}

/// These programs, or a copy if the user `postgres` cannot reach their directory, for example below `/root`.
fn runnable(version: &InstalledPostgres, files: &Path) -> Result<InstalledPostgres> {
    if can_run_postgres(&version.programs)? {
        return Ok(version.clone());
    }
    let package = version
        .programs
        .parent()
        .context("a directory of programs without a parent")?;
    let copy = files.join(format!("postgres-{}", version.major));
    let copied = Command::new("cp")
        .arg("-R")
        .arg(package)
        .arg(&copy)
        .status()?;
    let programs = copy.join("bin");
    if !copied.success() || !can_run_postgres(&programs)? {
        bail!(
            "the user postgres cannot run PostgreSQL {} in {}: make the directory readable for all users",
            version.version,
            version.programs.display()
        );
    }
    Ok(InstalledPostgres {
        programs,
        ..version.clone()
    })
}

/// The first number of a version, such as 18 of `18.4`.
fn major(version: &str) -> u32 {
    let digits = version.split('.').next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn arguments(full: bool, package: &[&str], filter: &[&str]) -> TestArguments {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        TestArguments {
            full,
            repeat: 1,
            postgres: None,
            package: owned(package),
            program: Vec::new(),
            filter: owned(filter),
            options: Vec::new(),
        }
    }

    fn server(major: u32) -> InstalledPostgres {
        InstalledPostgres {
            major,
            version: format!("{major}.1"),
            programs: PathBuf::from("/nowhere"),
        }
    }

    #[test]
    fn newest_version_is_needed_unless_the_caller_chose_other_tests() {
        use PostgresVersions::{All, Newest, None, One};
        assert_eq!(needed(&arguments(false, &[], &[])), Newest);
        assert_eq!(needed(&arguments(false, &[PACKAGE], &[])), Newest);
        assert_eq!(needed(&arguments(false, &[PACKAGE], &["claim"])), None);
        assert_eq!(needed(&arguments(true, &[], &["claim"])), All);
        assert_eq!(needed(&arguments(true, &["leasehold-core"], &[])), None);
        let mut one = arguments(true, &["leasehold-core"], &[]);
        one.postgres = Some(16);
        assert_eq!(needed(&one), One(16));
    }

    #[test]
    fn only_the_store_runs_on_other_versions_than_the_shared_one() {
        let added = |full| {
            let mut programs: Vec<_> = ["core", UNIT_TESTS, NAME].map(TestProgram::named).into();
            add(&mut programs, &[server(14), server(18)], full);
            let added = programs.split_off(3).into_iter();
            let text = |one: TestProgram| (one.name, one.options.len());
            added.map(text).collect::<Vec<_>>()
        };
        let named = |name: &str, options| (name.to_owned(), options);
        let smoke = ["store-postgres::postgres@14", "store-postgres::postgres@18"];
        assert_eq!(added(false), smoke.map(|name| named(name, SMOKE.len())));
        let full = [
            "store-postgres::postgres@14",
            "store-postgres@14",
            "store-postgres::postgres@18",
            "store-postgres@18",
        ];
        let mut found = added(true);
        found.sort();
        let mut full = full.map(|name| named(name, 0));
        full.sort();
        assert_eq!(found, full);
        let nowhere = Path::new("/nowhere");
        assert_eq!(further(&[server(15)], &server(15), nowhere).unwrap(), []);
    }

    #[test]
    fn major_version_is_the_first_number() {
        assert_eq!((major("18.4"), major("14.23"), major("")), (18, 14, 0));
    }
}
