//! `leasehold serve` with defaults: files, greeting, key, and restart.

use crate::program::{self, Program};
use crate::{TIMEOUT, blocking};
use leasehold_testkit::{HttpConnection, HttpResponse, Process};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const KEY_FILE: &str = "leasehold-data/admin.key";

/// The address in the greeting.
pub(crate) fn address(serve: &Process) -> SocketAddr {
    let line = serve.wait_for_line(TIMEOUT, |line| line.trim().starts_with("listens "));
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn key(program: &Program) -> String {
    let text = std::fs::read_to_string(program.file(KEY_FILE)).unwrap();
    text.trim().to_owned()
}

async fn get(serve: &Process, path: &str, key: &str) -> HttpResponse {
    let mut connection = HttpConnection::open(address(serve)).await.unwrap();
    connection.call("GET", path, key, None).await.unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn default_start_creates_a_store_and_a_key() {
    let program = Program::bare();
    let mut serve = program.start();
    // The last line of the greeting, which is read beside the log.
    serve.wait_for_line(TIMEOUT, |line| line.trim().starts_with("command "));
    let output = serve.log();
    for part in [
        "sqlite:leasehold-data/leasehold.db",
        "leasehold-data/admin.key",
        "graphs run in this process",
        "created (administrator)",
        "leasehold workspace list  (in another terminal)",
    ] {
        assert!(output.contains(part), "{part:?} is missing:\n{output}");
    }
    assert!(!output.contains("without TLS"), "{output}");
    let key = key(&program);
    assert_eq!(mode(&program.file("leasehold-data")), 0o700);
    assert_eq!(mode(&program.file(KEY_FILE)), 0o600);
    assert_eq!(get(&serve, "/v1/me", &key).await.status, 200);
    assert_eq!(get(&serve, "/v1/me", "wrong").await.status, 401);
    assert_eq!(get(&serve, "/readyz", "").await.status, 200);
    let instances = get(&serve, "/v1/instances", &key).await.text();
    let listens = format!("\"listens\":\"{}\"", address(&serve));
    assert!(instances.contains(&listens), "{instances}");
    program::stop(&mut serve);

    // The second start reuses the key.
    let mut restarted = program.start();
    assert_eq!(self::key(&program), key);
    assert_eq!(get(&restarted, "/v1/me", &key).await.status, 200);
    program::stop(&mut restarted);
    assert!(
        !restarted.log().contains("created (administrator)"),
        "{}",
        restarted.log()
    );
    for process in [&serve, &restarted] {
        assert!(!process.log().contains(&key), "the key is logged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_command_of_the_greeting_works() {
    let program = Program::bare();
    let mut serve = program.start();
    let line = serve.wait_for_line(TIMEOUT, |line| line.trim().starts_with("try it "));
    let (_, command) = line.split_once("try it").unwrap();
    // A shell function replaces curl and prints its arguments.
    let shown = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("curl() {{ printf '%s\\n' \"$@\"; }}; {}", command.trim()),
        ])
        .current_dir(program.file("."))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let parts: Vec<&str> = shown.lines().collect();
    let expected = format!("Authorization: Bearer {}", key(&program));
    let url = format!("http://{}/v1/me", address(&serve));
    assert_eq!(parts, ["-H", &expected, &url]);
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_key_command_needs_a_stopped_server() {
    let program = Program::bare();
    let mut serve = program.start();
    let first = key(&program);
    let admin_key = program.clone().command("admin-key");
    let mut refused = admin_key.spawn();
    assert_eq!(blocking(|| refused.wait(TIMEOUT)).code(), Some(8));
    assert!(
        refused.log().contains("is in use by process"),
        "{}",
        refused.log()
    );
    assert_eq!(key(&program), first);
    program::stop(&mut serve);

    let mut created = admin_key.spawn();
    assert!(
        blocking(|| created.wait(TIMEOUT)).success(),
        "{}",
        created.log()
    );
    let second = key(&program);
    assert_ne!(second, first);
    assert_eq!(mode(&program.file(KEY_FILE)), 0o600);
    assert!(!created.log().contains(&second));
    let mut serve = program.start();
    for key in [&first, &second] {
        assert_eq!(get(&serve, "/v1/me", key).await.status, 200);
    }
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_gracefully_with_open_connections() {
    let program = Program::bare().set("server.drain_timeout", "500ms");
    let mut serve = program.start();
    let (address, key) = (address(&serve), key(&program));
    let mut idle = HttpConnection::open(address).await.unwrap();
    assert_eq!(
        idle.call("GET", "/v1/me", &key, None).await.unwrap().status,
        200
    );
    let silent = HttpConnection::open(address).await.unwrap();
    // This body never arrives.
    let mut stuck = HttpConnection::open(address).await.unwrap();
    let head = format!(
        "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    stuck.send(head.as_bytes()).await.unwrap();
    program::stop(&mut serve);
    idle.wait_closed().await;
    stuck.wait_closed().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn warns_about_a_non_loopback_address_without_tls() {
    let mut serve = Program::bare().set("server.listen", "0.0.0.0:0").start();
    let output = serve.log();
    assert!(output.contains("without TLS"), "{output}");
    program::stop(&mut serve);
}
