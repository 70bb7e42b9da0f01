//! What `leasehold worker` refuses, each with one clear line; and what it waits for.

use crate::PATIENCE;
use crate::program::{field, says, spawn};
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::{TestTemporal, temp_dir};
use std::path::Path;

/// A key that looks like one and opens nothing.
fn stray_key() -> String {
    let queues = vec!["q".to_owned()];
    let secret = Secret::new(&KeyScope::Worker { queues }, &[7; 32]);
    secret.reveal().to_owned()
}

/// Arguments, variables, and what the refusal names.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

/// The one line it ends with.
fn refused(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let arguments: Vec<&str> = ["worker"].iter().chain(arguments).copied().collect();
    let mut process = spawn(folder, &arguments, variables);
    let status = tokio::task::block_in_place(|| process.wait(PATIENCE));
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
async fn what_cannot_work_is_named() {
    let folder = temp_dir();
    let key = stray_key();
    let with_key = [("LEASEHOLD_KEY", key.as_str())];
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let cases: [Case<'_>; 10] = [
        (&[], &[], "there is no key: set LEASEHOLD_KEY"),
        (&[], &[("LEASEHOLD_KEY", "secret")], "no key of Leasehold's"),
        (&["--key-file", "nowhere"], &[], "nowhere cannot be read"),
        (&["--key-file", "empty"], &[], "no key of Leasehold's"),
        (&["--key", "x"], &with_key, "--key"),
        (
            &["--server", "ftp://x"],
            &with_key,
            "--server: must be a URL",
        ),
        (
            &["--ca-file", "nowhere"],
            &with_key,
            "nowhere cannot be read",
        ),
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
        (
            &[],
            &[
                with_key[0],
                ("LEASEHOLD__TEMPORAL__GRAPH_WORKFLOW_TYPE", "Other"),
            ],
            "LeaseholdGraph",
        ),
    ];
    for (arguments, variables, named) in cases {
        let line = refused(folder.path(), arguments, variables);
        assert!(line.contains(named), "{arguments:?} {named}: {line}");
        assert!(!line.contains(&key), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_server_does_not_know_is_refused_at_once() {
    let folder = temp_dir();
    let server = spawn(folder.path(), &["serve", "--listen", "127.0.0.1:0"], &[]);
    let line = says(&server, "leasehold is running");
    let url = format!("http://{}", field(&line, "listens"));
    let key = stray_key();
    let variables = [("LEASEHOLD_KEY", key.as_str())];
    let line = refused(folder.path(), &["--server", &url], &variables);
    assert!(line.contains("does not accept the key"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporal_and_a_server_that_are_away_are_waited_for_and_a_signal_ends_it_well() {
    let folder = temp_dir();
    let key = stray_key();
    let arguments = [
        "worker",
        "--temporal-address",
        "127.0.0.1:1",
        "--server",
        "http://127.0.0.1:1",
    ];
    let mut process = spawn(folder.path(), &arguments, &[("LEASEHOLD_KEY", &key)]);
    says(&process, "the server does not answer");
    says(&process, "Temporal cannot be reached; trying again");
    process.terminate();
    let status = tokio::task::block_in_place(|| process.wait(PATIENCE));
    assert!(status.success(), "{}", process.log());
    assert!(process.log().contains("stopped"), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_nothing_to_do_stops_at_once() {
    let folder = temp_dir();
    let key = stray_key();
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
    let mut process = spawn(folder.path(), &arguments, &[("LEASEHOLD_KEY", &key)]);
    says(&process, "working on graphs");
    process.terminate();
    let status = tokio::task::block_in_place(|| process.wait(PATIENCE));
    assert!(status.success(), "{}", process.log());
}
