//! Settings that `leasehold worker` rejects with one error line, and servers that it waits for.

use crate::WAIT_TIMEOUT;
use crate::program::{field, spawn, wait_for_text};
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::{TestTemporal, temp_dir};
use std::path::Path;

/// A well-formed key that no server knows.
fn unknown_key() -> String {
    let queues = vec!["q".to_owned()];
    let secret = Secret::new(&KeyScope::Worker { queues }, &[7; 32]);
    secret.reveal().to_owned()
}

/// Arguments, variables, and a part of the error.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

/// Runs the worker and returns its single error line.
fn error_line(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let arguments: Vec<&str> = ["worker"].iter().chain(arguments).copied().collect();
    let mut process = spawn(directory, &arguments, variables);
    let status = tokio::task::block_in_place(|| process.wait(WAIT_TIMEOUT));
    let log = process.log();
    assert!(!status.success(), "{log}");
    let errors: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{log}");
    errors[0].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_named() {
    let directory = temp_dir();
    let key = unknown_key();
    let with_key = [("LEASEHOLD_KEY", key.as_str())];
    std::fs::write(directory.path().join("empty"), "").unwrap();
    let cases: [Case<'_>; 11] = [
        (&[], &[], "no API key: set LEASEHOLD_KEY"),
        (&[], &[("LEASEHOLD_KEY", "secret")], "invalid API key"),
        (&["--key-file", "nowhere"], &[], "cannot read nowhere"),
        (&["--key-file", "empty"], &[], "invalid API key"),
        (&["--key", "x"], &with_key, "--key"),
        (
            &["--server", "ftp://x"],
            &with_key,
            "--server: must be a URL",
        ),
        (&["--ca-file", "nowhere"], &with_key, "cannot read nowhere"),
        (
            &["--concurrency", "0"],
            &with_key,
            "--concurrency: must be from 1",
        ),
        (
            &["--temporal-address", "ftp://x"],
            &with_key,
            "--temporal-address: must be host:port",
        ),
        (&[], &with_key, "no server address"),
        (
            &["--server", "http://127.0.0.1:1"],
            &[
                with_key[0],
                ("LEASEHOLD__TEMPORAL__GRAPH_WORKFLOW_TYPE", "Other"),
            ],
            "LeaseholdGraph",
        ),
    ];
    for (arguments, variables, named) in cases {
        let line = error_line(directory.path(), arguments, variables);
        assert!(line.contains(named), "{arguments:?} {named}: {line}");
        assert!(!line.contains(&key), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_key_is_rejected_at_once() {
    let directory = temp_dir();
    let server = spawn(directory.path(), &["serve", "--listen", "127.0.0.1:0"], &[]);
    let line = wait_for_text(&server, "leasehold is running");
    let url = format!("http://{}", field(&line, "listens"));
    let key = unknown_key();
    let variables = [("LEASEHOLD_KEY", key.as_str())];
    let line = error_line(directory.path(), &["--server", &url], &variables);
    assert!(line.contains("rejected the API key"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_waits_for_temporal_and_server_and_stops_on_a_signal() {
    let directory = temp_dir();
    let key = unknown_key();
    let arguments = [
        "worker",
        "--temporal-address",
        "127.0.0.1:1",
        "--server",
        "http://127.0.0.1:1",
    ];
    let mut process = spawn(directory.path(), &arguments, &[("LEASEHOLD_KEY", &key)]);
    wait_for_text(&process, "server is unreachable");
    wait_for_text(&process, "failed to connect to Temporal; retrying");
    process.terminate();
    let status = tokio::task::block_in_place(|| process.wait(WAIT_TIMEOUT));
    assert!(status.success(), "{}", process.log());
    assert!(process.log().contains("stopped"), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_worker_stops_at_once() {
    let directory = temp_dir();
    let key = unknown_key();
    let address = tokio::task::block_in_place(TestTemporal::shared).address();
    let arguments = [
        "worker",
        "--temporal-address",
        address,
        "--server",
        "http://127.0.0.1:1",
        "--task-queue",
        "nobody",
    ];
    let mut process = spawn(directory.path(), &arguments, &[("LEASEHOLD_KEY", &key)]);
    wait_for_text(&process, "connected to Temporal; running graphs");
    process.terminate();
    let status = tokio::task::block_in_place(|| process.wait(WAIT_TIMEOUT));
    assert!(status.success(), "{}", process.log());
}
