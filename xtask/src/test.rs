//! Runs every test on throwaway servers and sums up. Knows how tests are started, not what they test.

mod history;
mod outcome;
mod pool;
mod poolers;
mod programs;
mod report;
mod versions;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use leasehold_testkit::{
    Cluster, FULL_VARIABLE, POSTGRES_BIN_VARIABLE, PYTHON_PATH_VARIABLE, SCHEMATHESIS_VARIABLE,
    SERVER_VARIABLE, TEMPORAL_CLI_VARIABLE, temp_root,
};
use tempfile::TempDir;

use crate::interrupt::Interrupt;
use crate::setup::{self, InstalledPostgres, InstalledTools, PostgresVersions};
use crate::{child, workspace};
use history::{History, minutes};
use outcome::Outcome;
use programs::TestProgram;

/// What to test.
#[derive(Args)]
pub(crate) struct TestArguments {
    /// Runs tests at their full sizes: more cases, more requests, longer loads.
    #[arg(long)]
    full: bool,
    /// Runs everything so many times, to find tests that fail now and then.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Runs the tests on this PostgreSQL version, 14 to 18, instead of Debian's newest.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u32).range(14..=18))]
    postgres: Option<u32>,
    /// Only tests of this package.
    #[arg(short, long, value_name = "PACKAGE")]
    package: Vec<String>,
    /// Only this test program: a name under `tests/`.
    #[arg(long = "test", value_name = "NAME")]
    program: Vec<String>,
    /// Only tests whose name contains one of these.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Passed on to each test program, such as `--nocapture`.
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl TestArguments {
    fn is_whole(&self) -> bool {
        let narrowed = [&self.package, &self.program, &self.filter, &self.options];
        !self.full && self.postgres.is_none() && narrowed.iter().all(|part| part.is_empty())
    }

    /// Examples in doc comments belong to a run of everything or of packages.
    fn has_examples(&self) -> bool {
        self.program.is_empty() && self.filter.is_empty() && self.options.is_empty()
    }
}

/// Whether every test passed.
pub(crate) fn run(arguments: &TestArguments) -> Result<bool> {
    let interrupt = Interrupt::install()?;
    let mut history = History::read();
    let versions = versions::needed(arguments);
    let missing = setup::missing(versions);
    print!("{}", report::announcement(&missing, history.last()));
    let (mut programs, ready) = build_and_set_up(arguments, versions, &interrupt)?;
    let files = temporary_files()?;
    println!("test: temporary files are in {}", files.path().display());
    let server = versions::shared(arguments, &ready.postgres, files.path())?;
    let further = versions::further(&ready.postgres, &server, files.path())?;
    versions::add(&mut programs, &further, arguments.full);
    poolers::add(&mut programs, arguments.full, !arguments.filter.is_empty());
    history.sort(&mut programs);
    let postgres = Cluster::start_in(&server.programs, &[])?.without_deadlock_check();
    println!(
        "test: PostgreSQL {} runs at {}",
        server.version,
        postgres.url()
    );
    let environment = environment(&postgres, &server, &ready, files.path(), arguments.full);

    let begun = Instant::now();
    let mut outcome = Outcome::default();
    for turn in 1..=arguments.repeat {
        if arguments.repeat > 1 {
            println!("test: run {turn} of {}", arguments.repeat);
        }
        let has_examples = arguments.has_examples() && turn == 1;
        // Examples are compiled by Cargo while the first programs wait for servers.
        let (tests, examples) = thread::scope(|scope| {
            let examples =
                has_examples.then(|| scope.spawn(|| examples(arguments, &environment, &interrupt)));
            let tests = pool::run(&programs, arguments, &environment, &interrupt);
            (tests, examples.map(thread::ScopedJoinHandle::join))
        });
        outcome.add(tests?);
        if let Some(examples) = examples {
            let panicked = |_| anyhow!("the thread that runs examples panicked");
            outcome.add(examples.map_err(panicked)??);
        }
    }
    let took = begun.elapsed();
    let url = postgres.url();
    drop((postgres, files));
    let is_whole = arguments.is_whole() && arguments.repeat == 1;
    if is_whole && outcome.is_green() {
        history.keep(took, &outcome)?;
    }
    let servers = servers(&format!("{} ({url})", server.version), &further, &ready);
    print!("{}", report::summary(&outcome, took, &servers));
    write_slowest(&outcome)?;
    if let Some(warning) = report::budget_warning(took).filter(|_| is_whole) {
        print!("{warning}");
    }
    println!("{} passed, {} failed", outcome.passed, outcome.failed());
    Ok(outcome.is_green())
}

/// Set-up waits for the network, the compiler for the processor: together they take as long as the longer one.
fn build_and_set_up(
    arguments: &TestArguments,
    versions: PostgresVersions,
    interrupt: &Interrupt,
) -> Result<(Vec<TestProgram>, InstalledTools)> {
    let begun = Instant::now();
    let (programs, ready) = thread::scope(|scope| {
        let ready = scope.spawn(|| setup::run(versions));
        (programs::build(arguments, interrupt), ready.join())
    });
    let ready = ready.map_err(|_| anyhow!("the thread that sets up panicked"))??;
    let programs = programs?;
    interrupt.check()?;
    println!(
        "test: {} test programs, built in {}",
        programs.len(),
        minutes(begun.elapsed())
    );
    Ok((programs, ready))
}

/// Where the tests find PostgreSQL and their tools. Each program that needs Temporal starts its own server: one for all kept half a core busy with
/// the workflows that ended tests had left in it.
fn environment(
    postgres: &Cluster,
    server: &InstalledPostgres,
    ready: &InstalledTools,
    files: &Path,
    full: bool,
) -> Vec<(&'static str, String)> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut variables = vec![
        ("TMPDIR", path(files)),
        (SERVER_VARIABLE, postgres.url()),
        (POSTGRES_BIN_VARIABLE, path(&server.programs)),
        (TEMPORAL_CLI_VARIABLE, path(&ready.temporal)),
        (PYTHON_PATH_VARIABLE, path(&ready.python_path)),
        (SCHEMATHESIS_VARIABLE, path(&ready.schemathesis)),
    ];
    if full {
        variables.push((FULL_VARIABLE, "1".to_owned()));
    }
    variables
}

/// A directory for the temporary files of all programs: a killed test leaves nothing behind. The user `postgres` may write there too.
fn temporary_files() -> Result<TempDir> {
    let directory = tempfile::Builder::new()
        .prefix("leasehold-test-")
        .tempdir_in(temp_root())?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777))?;
    Ok(directory)
}

/// The examples in doc comments, which only Cargo can run. Shows one line, or everything if one failed.
fn examples(
    arguments: &TestArguments,
    environment: &[(&'static str, String)],
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let begun = Instant::now();
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--doc", "--locked", "--no-fail-fast"]);
    programs::narrow(&mut command, &arguments.package);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let mut outcome = Outcome::default();
    let mut output = String::new();
    let status = child::read(&mut command, interrupt, |line| {
        outcome.read("doc", line);
        output.push_str(line);
        output.push('\n');
    })?;
    outcome.settle("doc", status.success());
    let details = if status.success() { "" } else { &output };
    print!(
        "test: examples in doc comments: {} passed in {}\n{details}",
        outcome.passed,
        minutes(begun.elapsed())
    );
    Ok(outcome)
}

/// What the tests ran on.
fn servers(postgres: &str, further: &[InstalledPostgres], ready: &InstalledTools) -> Vec<String> {
    let mut servers = vec![format!("PostgreSQL {postgres}")];
    let further: Vec<&str> = further.iter().map(|one| one.version.as_str()).collect();
    if !further.is_empty() {
        servers.push(format!(
            "PostgreSQL {} (store-postgres)",
            further.join(", ")
        ));
    }
    servers.push("SQLite (bundled)".to_owned());
    servers.push(format!("Temporal {}", ready.temporal_version));
    servers
}

/// Writes the slowest tests by program, so that a slow run can be explained afterwards.
fn write_slowest(outcome: &Outcome) -> Result<()> {
    let file = workspace::target().join("slowest-tests.txt");
    fs::write(&file, report::slowest_by_program(outcome))
        .with_context(|| format!("{} cannot be written", file.display()))?;
    println!("test: the slowest by program: {}", file.display());
    Ok(())
}

/// Gives a command the variables of the tests. A program for another PostgreSQL version starts its own server. It and a program behind a pooler take
/// their usual sizes: these do not depend on version or pooler, and so many full runs would take hours.
fn with(command: &mut Command, environment: &[(&'static str, String)], program: &TestProgram) {
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .envs(program.variables.iter().map(|(name, value)| (name, value)));
    if let Some(server) = &program.postgres {
        command
            .env(POSTGRES_BIN_VARIABLE, &server.programs)
            .env_remove(SERVER_VARIABLE);
    }
    if program.postgres.is_some() || !program.variables.is_empty() {
        command.env_remove(FULL_VARIABLE);
    }
}
