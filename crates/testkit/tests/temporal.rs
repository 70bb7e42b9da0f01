//! Temporal servers: shared and private, restarted, behind the proxy, with a Python worker.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use leasehold_testkit::{
    DevServerOptions, FaultProxy, Process, TEMPORAL_CLI_VARIABLE, TEMPORAL_VARIABLE, TestTemporal,
    python_worker, temporal_cli, wait_until,
};

const TIMEOUT: Duration = Duration::from_secs(180);
const ECHO: [&str; 6] = [
    "--type",
    "Echo",
    "--task-queue",
    "echo",
    "--input",
    "\"hello\"",
];

fn start_workflow(server: &TestTemporal, namespace: &str, id: &str) -> std::io::Result<String> {
    let mut arguments = vec!["workflow", "start", "--workflow-id", id];
    arguments.extend(["--namespace", namespace]);
    arguments.extend(ECHO);
    server.cli(&arguments)
}

fn describe(server: &TestTemporal, namespace: &str, id: &str) -> std::io::Result<String> {
    let describe = ["workflow", "describe", "--workflow-id", id];
    let mut arguments = describe.to_vec();
    arguments.extend(["--namespace", namespace, "--output", "json"]);
    server.cli(&arguments)
}

fn is_alive(pid: u32) -> bool {
    let script = format!("kill -0 {pid} 2>/dev/null");
    let status = Command::new("sh").args(["-c", &script]).status();
    status.unwrap().success()
}

#[test]
fn namespaces_on_the_shared_server_are_isolated() {
    let server = TestTemporal::shared();
    let (one, other) = (server.fresh_namespace(), server.fresh_namespace());
    start_workflow(server, &one, "w").unwrap();
    assert!(describe(server, &one, "w").unwrap().contains("RUNNING"));
    let error = describe(server, &other, "w").unwrap_err();
    assert!(error.to_string().contains("not found"), "{error}");
}

#[test]
fn server_on_a_file_survives_a_kill_and_a_stop() {
    let options = DevServerOptions::default()
        .on_file()
        .namespace("tenants")
        .search_attribute("Tenant", "Keyword");
    let mut server = TestTemporal::start(options).unwrap();
    let address = server.address().to_owned();
    start_workflow(&server, "tenants", "survivor").unwrap();

    for kill in [true, false] {
        if kill {
            server.kill().unwrap();
        } else {
            server.stop().unwrap();
        }
        assert!(describe(&server, "tenants", "survivor").is_err());
        server.start_again().unwrap();
        assert_eq!(server.address(), address);
        assert!(describe(&server, "tenants", "survivor").is_ok());
    }
}

#[test]
fn concurrent_servers_do_not_collide_and_leave_nothing() {
    let start = || TestTemporal::start(DevServerOptions::default()).unwrap();
    let servers = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3).map(|_| scope.spawn(start)).collect();
        let started = starting.into_iter().map(|server| server.join().unwrap());
        started.collect::<Vec<_>>()
    });
    for server in servers {
        start_workflow(&server, "default", "w").unwrap();
        let directory = server.directory().unwrap().to_owned();
        let pid = server.server_pid().unwrap();
        assert!(directory.exists() && is_alive(pid));
        drop(server);
        assert!(!directory.exists() && !is_alive(pid));
    }
}

#[test]
fn failed_start_reports_the_reason() {
    let options = DevServerOptions::default().search_attribute("Tenant", "NoSuchType");
    let error = TestTemporal::start(options).err().unwrap();
    assert!(error.to_string().contains("NoSuchType"), "{error}");
}

#[test]
fn server_ends_when_its_owner_is_killed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testkit-hold-server"));
    command.arg("temporal").env_remove(TEMPORAL_VARIABLE);
    let mut holder = Process::spawn(command);
    let line = holder.wait_for_line(TIMEOUT, |_| true);
    let (pid, directory) = line.split_once(' ').unwrap();
    let (pid, directory) = (pid.parse().unwrap(), Path::new(directory));
    assert!(is_alive(pid) && directory.exists());
    holder.kill();
    assert!(wait_until(TIMEOUT, || !is_alive(pid)));
    assert!(wait_until(TIMEOUT, || !directory.exists()));
}

#[tokio::test]
async fn temporal_client_continues_after_held_responses_arrive() {
    const ATTEMPTS: u32 = 5;
    let server = TestTemporal::shared();
    let namespace = server.fresh_namespace();
    for attempt in 1..=ATTEMPTS {
        let proxy = FaultProxy::to(server.address()).await;
        proxy.hold_responses();
        let id = format!("held-{attempt}");
        let mut command = Command::new(temporal_cli().unwrap());
        command
            .args(["workflow", "start", "--workflow-id", &id])
            .args(["--namespace", &namespace, "--address", &proxy.address()])
            .args(ECHO);
        let mut client = Process::spawn(command);
        // The HTTP/2 settings are held already, so the client has not sent its start.
        proxy.wait_for_held_responses(1).await;
        assert!(describe(server, &namespace, &id).is_err());
        proxy.pass();
        if client.wait(TIMEOUT).success() {
            assert!(describe(server, &namespace, &id).is_ok());
            return;
        }
        // The machine was too slow: the client waits only some seconds for a connection.
        let log = client.log();
        assert!(log.contains("failed reaching server"), "{log}");
    }
    panic!("the client gave up {ATTEMPTS} times");
}

#[test]
fn python_worker_runs_a_workflow() {
    let server = TestTemporal::shared();
    let namespace = server.fresh_namespace();
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo_worker.py"));
    let worker = python_worker(script, &[server.address(), &namespace]);
    worker.wait_for_line(TIMEOUT, |line| line == "ready");
    start_workflow(server, &namespace, "echo").unwrap();
    let arguments = ["workflow", "result", "--workflow-id", "echo"];
    let result = server
        .cli(&[&arguments[..], &["--namespace", &namespace]].concat())
        .unwrap();
    assert!(result.contains("hello"), "{result}\n{}", worker.log());
}

#[test]
fn missing_cli_is_reported() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testkit-hold-server"));
    command
        .arg("temporal")
        .env_remove(TEMPORAL_VARIABLE)
        .env(TEMPORAL_CLI_VARIABLE, "/no/such/program");
    let mut holder = Process::spawn(command);
    assert!(!holder.wait(TIMEOUT).success());
    assert!(
        holder.log().contains("/no/such/program"),
        "{}",
        holder.log()
    );
}
