//! Runs every test on throwaway servers and sums up. Knows how tests are started, not what they test.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use leasehold_testkit::{
    Cluster, PYTHON_PATH_VARIABLE, SCHEMATHESIS_VARIABLE, TEMPORAL_CLI_VARIABLE, TEMPORAL_VARIABLE,
    TemporalOptions, TestTemporal, postgres_programs, postgres_version,
};

use crate::interrupt::Interrupt;
use crate::setup::{self, Ready};
use crate::tally::Tally;
use crate::{child, workspace};

/// What the tests run on; all of it ends with this process, however that ends.
struct Servers {
    postgres: Cluster,
    temporal: TestTemporal,
}

/// Whether every test passed.
pub(crate) fn run(full: bool, arguments: &[String]) -> Result<bool> {
    let interrupt = Interrupt::install()?;
    let ready = setup::run()?;
    interrupt.check()?;
    let servers = start_servers(&ready)?;
    let url = servers.postgres.url();
    let address = servers.temporal.address().to_owned();
    println!("test: PostgreSQL runs at {url}, Temporal at {address}");

    let mut command = cargo_test(arguments);
    command
        .env("LEASEHOLD_TEST_PG", &url)
        .env(TEMPORAL_VARIABLE, &address)
        .env(TEMPORAL_CLI_VARIABLE, &ready.temporal)
        .env(PYTHON_PATH_VARIABLE, &ready.python_path)
        .env(SCHEMATHESIS_VARIABLE, &ready.schemathesis);
    if full {
        command.env("LEASEHOLD_TEST_FULL", "1");
    }
    let begun = Instant::now();
    let mut tally = Tally::default();
    let status = child::run(&mut command, &interrupt, |line| tally.read(line))?;
    let took = begun.elapsed();
    drop(servers);
    if !status.success() && tally.failed == 0 {
        println!(
            "test: cargo test failed without a failed test (a build error, or a crash): counted as 1 failed"
        );
    }
    tally.settle(status.success());
    sum_up(&tally, took, (&url, &address), &ready)?;
    Ok(tally.is_green())
}

/// Starts both at once: each takes a second or more, on a cold disk several.
fn start_servers(ready: &Ready) -> Result<Servers> {
    let (postgres, temporal) = thread::scope(|scope| {
        let temporal =
            scope.spawn(|| TestTemporal::start_with(&ready.temporal, TemporalOptions::default()));
        (Cluster::start(&[]), temporal.join())
    });
    let temporal = temporal.map_err(|_| anyhow!("the thread that starts Temporal panicked"))?;
    Ok(Servers {
        postgres: postgres?,
        temporal: temporal?,
    })
}

/// All tests of all crates; `-p` among the arguments narrows it to some.
fn cargo_test(arguments: &[String]) -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--locked", "--no-fail-fast"]);
    let narrowed = arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"));
    if !narrowed {
        command.arg("--workspace");
    }
    command.args(arguments);
    command
}

fn sum_up(
    tally: &Tally,
    took: Duration,
    (url, address): (&str, &str),
    ready: &Ready,
) -> Result<()> {
    let programs = postgres_programs().context("PostgreSQL has gone away")?;
    let version = postgres_version(&programs).unwrap_or_default();
    println!();
    println!("test: took {:.1} s, on", took.as_secs_f64());
    println!("  PostgreSQL {version} ({url})");
    println!("  SQLite (bundled)");
    println!("  Temporal {} ({address})", ready.temporal_version);
    if tally.ignored > 0 {
        println!("test: {} ignored, which is not allowed", tally.ignored);
    }
    if tally.passed + tally.failed == 0 {
        println!("test: nothing ran");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        cargo_test(&arguments)
            .get_args()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_whole_workspace_is_tested_unless_narrowed() {
        assert!(words(&["claim"]).contains(&"--workspace".to_owned()));
        assert!(words(&["--", "-p"]).contains(&"--workspace".to_owned()));
        assert!(!words(&["-p", "leasehold-core"]).contains(&"--workspace".to_owned()));
    }
}
