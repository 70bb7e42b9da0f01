//! `leasehold serve` with nothing said: what it makes, what it says, who gets in, and that it keeps it.

use crate::program::{self, Program};
use crate::{PATIENCE, blocking};
use leasehold_testkit::{HttpAnswer, HttpConnection, Process};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const KEY_FILE: &str = "leasehold-data/admin.key";

/// Where it says that it listens.
pub(crate) fn address(serve: &Process) -> SocketAddr {
    let line = serve.wait_for_line(PATIENCE, |line| line.trim().starts_with("listens "));
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn key(program: &Program) -> String {
    let text = std::fs::read_to_string(program.file(KEY_FILE)).unwrap();
    text.trim().to_owned()
}

async fn get(serve: &Process, path: &str, key: &str) -> HttpAnswer {
    let mut connection = HttpConnection::open(address(serve)).await.unwrap();
    connection.call("GET", path, key, None).await.unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nothing_said_it_serves_from_a_file_and_says_how_to_get_in() {
    let program = Program::bare();
    let mut serve = program.start();
    // The greeting's last line; it is read beside the log.
    serve.wait_for_line(PATIENCE, |line| line.trim().starts_with("try "));
    let said = serve.log();
    for part in [
        "sqlite:leasehold-data/leasehold.db",
        "leasehold-data/admin.key",
        "graphs run in this process",
        "made now",
        "leasehold workspace list  (in another terminal)",
    ] {
        assert!(said.contains(part), "{part:?} is not said:\n{said}");
    }
    assert!(!said.contains("others can reach"), "{said}");
    let key = key(&program);
    assert_eq!(mode(&program.file("leasehold-data")), 0o700);
    assert_eq!(mode(&program.file(KEY_FILE)), 0o600);
    assert_eq!(get(&serve, "/v1/me", &key).await.status, 200);
    assert_eq!(get(&serve, "/v1/me", "wrong").await.status, 401);
    assert_eq!(get(&serve, "/readyz", "").await.status, 200);
    let instances = get(&serve, "/v1/instances", &key).await.text();
    let place = format!("\"listens\":\"{}\"", address(&serve));
    assert!(instances.contains(&place), "{instances}");
    program::stop(&mut serve);

    // Another start keeps the key and makes none.
    let mut again = program.start();
    assert_eq!(self::key(&program), key);
    assert!(!again.log().contains("made now"), "{}", again.log());
    assert_eq!(get(&again, "/v1/me", &key).await.status, 200);
    program::stop(&mut again);
    for process in [&serve, &again] {
        assert!(!process.log().contains(&key), "the key is logged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_to_get_in_that_it_names_works() {
    let program = Program::bare();
    let mut serve = program.start();
    let line = serve.wait_for_line(PATIENCE, |line| line.trim().starts_with("get in "));
    let (_, command) = line.split_once("get in").unwrap();
    // The shell fills in the key; a stand-in for curl shows what it would have sent.
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
async fn whoever_lost_the_key_makes_another_while_the_server_is_stopped() {
    let program = Program::bare();
    let mut serve = program.start();
    let first = key(&program);
    let make = program.clone().command("admin-key");
    let mut refused = make.spawn();
    assert_eq!(blocking(|| refused.wait(PATIENCE)).code(), Some(8));
    assert!(
        refused.log().contains("is in use by process"),
        "{}",
        refused.log()
    );
    assert_eq!(key(&program), first);
    program::stop(&mut serve);

    let mut made = make.spawn();
    assert!(blocking(|| made.wait(PATIENCE)).success(), "{}", made.log());
    let second = key(&program);
    assert_ne!(second, first);
    assert_eq!(mode(&program.file(KEY_FILE)), 0o600);
    assert!(!made.log().contains(&second));
    let mut serve = program.start();
    for key in [&first, &second] {
        assert_eq!(get(&serve, "/v1/me", key).await.status, 200);
    }
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_well_while_callers_are_connected() {
    let program = Program::bare().set("server.drain_timeout", "500ms");
    let mut serve = program.start();
    let (address, key) = (address(&serve), key(&program));
    let mut idle = HttpConnection::open(address).await.unwrap();
    assert_eq!(
        idle.call("GET", "/v1/me", &key, None).await.unwrap().status,
        200
    );
    let silent = HttpConnection::open(address).await.unwrap();
    // The body of this one never comes.
    let mut stuck = HttpConnection::open(address).await.unwrap();
    let head = format!(
        "POST /v1/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    stuck.send(head.as_bytes()).await.unwrap();
    program::stop(&mut serve);
    idle.closed().await;
    stuck.closed().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_can_reach_without_tls_is_warned_of() {
    let mut serve = Program::bare().set("server.listen", "0.0.0.0:0").start();
    let said = serve.log();
    assert!(said.contains("others can reach"), "{said}");
    program::stop(&mut serve);
}
