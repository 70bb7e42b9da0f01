//! Runs every example as its own process.

use crate::WAIT_TIMEOUT;
use leasehold_testbed::postgres::database;
use leasehold_testkit::{Process, example_program};
use std::process::Command;

/// Runs an example to its end and returns its output.
fn run(name: &str, database: Option<&str>) -> String {
    let mut command = Command::new(example_program(name));
    if let Some(url) = database {
        command.env("DATABASE_URL", url);
    }
    let mut process = Process::spawn(command);
    let status = process.wait(WAIT_TIMEOUT);
    let log = process.log();
    assert!(status.success(), "{name} failed:\n{log}");
    log
}

#[test]
fn enqueue_and_work_runs() {
    let log = run("enqueue_and_work", None);
    assert_eq!(log.matches("welcome, ada").count(), 1, "{log}");
    assert!(log.contains("welcome, bob (job 2, attempt 2"), "{log}");
    assert!(
        log.ends_with("all welcome\n3 jobs completed, 1 retried"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn takeover_runs() {
    let database = database().await;
    let log = run("takeover", Some(database.url()));
    assert_eq!(log.matches("first: job").count(), 5, "{log}");
    assert_eq!(log.matches("second: job").count(), 5, "{log}");
    assert!(log.ends_with("all 5 jobs are completed"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactional_enqueue_runs() {
    let database = database().await;
    let log = run("transactional_enqueue", Some(database.url()));
    assert!(log.contains("order 1 was rolled back"), "{log}");
    assert!(
        log.ends_with("order 2 is confirmed\n1 order, 1 job"),
        "{log}"
    );
}
