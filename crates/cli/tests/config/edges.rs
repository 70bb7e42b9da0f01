//! `leasehold serve`: resources in use, the address file, and systemd notifications.

use crate::program::{CommandEnv, TIMEOUT};
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::{HttpConnection, Process};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

const RUNNING: &str = "leasehold is running";

fn serve(env: &CommandEnv) -> Process {
    let serve = env.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for_line(TIMEOUT, |line| line.contains(RUNNING));
    serve
}

fn end(mut serve: Process) {
    serve.terminate();
    let status = serve.wait(TIMEOUT);
    assert!(status.success(), "{}", serve.log());
}

/// The next systemd notification.
fn next_notification(socket: &UnixDatagram) -> String {
    let mut received = [0; 256];
    let length = socket.recv(&mut received).unwrap();
    String::from_utf8(received[..length].to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_the_address_file_and_notifies_systemd() {
    let env = CommandEnv::new();
    let path = env.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let env = env.variable("NOTIFY_SOCKET", path.to_str().unwrap());
    let serve = serve(&env);
    assert_eq!(next_notification(&socket), "READY=1\n");
    // The notification came after the address file was written.
    let address = env.path("leasehold-data/address");
    let url = std::fs::read_to_string(&address).unwrap();
    let address_part = url.strip_prefix("http://").unwrap().trim_end();
    let key = std::fs::read_to_string(env.path("leasehold-data/admin.key")).unwrap();
    let mut connection = HttpConnection::open(address_part.parse().unwrap())
        .await
        .unwrap();
    let answer = connection.call("GET", "/v1/workspaces", key.trim(), None);
    let answer = answer.await.unwrap().text();
    let list: serde_json::Value = serde_json::from_str(&answer).unwrap();
    // The first start creates a workspace.
    assert_eq!(list["items"][0]["name"], "default", "{list}");
    assert_eq!(list["items"][0]["plan"], "PRO", "{list}");
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    tokio::task::block_in_place(|| end(serve));
    assert_eq!(next_notification(&socket), "STOPPING=1\n");
    assert!(!address.exists());
    assert!(!env.path("leasehold-data/leasehold.sock").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn port_in_use_is_reported_with_advice() {
    let in_use = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = in_use.local_addr().unwrap().to_string();
    let env = CommandEnv::new();
    let output = env.run(&["serve", "--listen", &address]);
    assert_eq!(output.code, 8, "{output:?}");
    assert_eq!(
        output.error(),
        format!(
            "cannot listen on {address}: in use by another process; stop it, or choose another with --listen"
        )
    );
    let output = env.run(&["serve", "--listen", "192.0.2.1:1"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.error().starts_with("cannot listen on 192.0.2.1:1: "),
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn data_directory_in_use_names_its_process() {
    let env = CommandEnv::new();
    let serve = serve(&env);
    let owner = format!("is in use by process {}", serve.pid());
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["admin-key"],
        &["migrate", "status"],
    ] {
        let output = env.run(arguments);
        assert_eq!(output.code, 8, "{output:?}");
        assert!(output.error().contains(&owner), "{output:?}");
        let names_the_way = output.error().contains("leasehold key create NAME --admin");
        assert_eq!(names_the_way, arguments == ["admin-key"], "{output:?}");
    }
    tokio::task::block_in_place(|| end(serve));
}

#[tokio::test(flavor = "multi_thread")]
async fn key_file_of_another_store_is_not_overwritten() {
    let env = CommandEnv::new();
    tokio::task::block_in_place(|| end(serve(&env)));
    let file = env.path("leasehold-data/admin.key");
    let key = std::fs::read_to_string(&file).unwrap();
    let other = ["--store", "sqlite:other.db"];
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["admin-key"]] {
        let output = env.run(&[command, &other].concat());
        assert_eq!(output.code, 2, "{output:?}");
        for named in [
            "refusing to overwrite leasehold-data/admin.key",
            "--data-dir",
        ] {
            assert!(output.error().contains(named), "{output:?}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    }
    std::fs::rename(&file, env.path("moved")).unwrap();
    let created = env.run(&[&["admin-key"][..], &other].concat());
    assert_eq!(created.code, 0, "{created:?}");
}

#[test]
fn unreachable_store_exits_with_6() {
    let env = CommandEnv::new().variable("LEASEHOLD__STORE__PATIENCE", "0s");
    let store = "postgres://me:hush@127.0.0.1:1/x";
    for arguments in [
        &["serve", "--store", store][..],
        &["migrate", "up", "--store", store],
        &["migrate", "status", "--store", store],
    ] {
        let output = env.run(arguments);
        assert_eq!(output.code, 6, "{output:?}");
        let line = output.error();
        assert!(
            line.starts_with("cannot reach the store postgres://me:***@127.0.0.1:1/x: "),
            "{line}"
        );
        assert!(line.ends_with("; start it, or check --store"), "{line}");
        assert!(!output.stderr.contains("hush"), "{output:?}");
    }
}

#[test]
fn unusable_directory_or_file_is_a_usage_error() {
    let env = CommandEnv::new();
    env.write("text", "no database");
    for (flag, value, part) in [
        (
            "--data-dir",
            "/proc/nowhere",
            "cannot create the directory /proc/nowhere",
        ),
        ("--data-dir", "text", "text"),
        ("--store", "sqlite:.", "cannot open the SQLite file"),
    ] {
        let output = env.run(&["serve", flag, value]);
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.error().contains(part), "{output:?}");
    }
}

#[test]
fn worker_without_a_valid_key_is_denied() {
    let output = CommandEnv::new().run(&["worker"]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.error().starts_with("no API key: "), "{output:?}");
    let env = CommandEnv::new().variable("LEASEHOLD_KEY", "hush");
    let output = env.run(&["worker"]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.error().contains("invalid API key"), "{output:?}");
    let output = CommandEnv::new().run(&["worker", "--key-file", "nowhere"]);
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn worker_key_needs_a_server_address() {
    let key = Secret::new(&KeyScope::Admin, &[7; 32]);
    let env = CommandEnv::new().variable("LEASEHOLD_KEY", key.reveal());
    let output = env.run(&["worker"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.error().starts_with("no server address: "),
        "{output:?}"
    );
    assert!(
        output.error().contains("--server or worker.server"),
        "{output:?}"
    );
}

/// A settings file may come with a cloned repository. Its address gets the key beside it, never the one in the environment.
#[test]
fn key_of_the_environment_does_not_go_to_an_address_in_a_settings_file() {
    let key = Secret::new(&KeyScope::Admin, &[7; 32]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connected = || listener.accept().is_ok();
    let env = CommandEnv::new().variable("LEASEHOLD_KEY", key.reveal());
    env.write("planted.toml", format!("[worker]\nserver = \"{url}\"\n"));
    let output = env.run(&["worker", "--config", "planted.toml"]);
    assert_eq!(output.code, 2, "{output:?}");
    let error = output.error();
    assert!(error.contains("planted.toml:2"), "{output:?}");
    assert!(error.contains("--server"), "{output:?}");
    assert!(!error.contains(key.reveal()), "{output:?}");
    assert!(!connected());
    // The key beside the address goes there, whatever the environment has.
    env.write("worker.key", "hush");
    let paired = format!("[worker]\nserver = \"{url}\"\nkey_file = \"worker.key\"\n");
    env.write("paired.toml", paired);
    let output = env.run(&["worker", "--config", "paired.toml"]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.error().contains("invalid API key"), "{output:?}");
    assert!(!connected());
}

#[test]
fn worker_uses_the_server_and_the_key_of_the_environment() {
    let key = Secret::new(&KeyScope::Admin, &[7; 32]);
    let env = CommandEnv::new()
        .variable("LEASEHOLD_KEY", key.reveal())
        .variable("LEASEHOLD_SERVER", "no address");
    let output = env.run(&["worker"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.error().contains("no address"), "{output:?}");
}
