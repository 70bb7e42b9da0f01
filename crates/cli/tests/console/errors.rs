//! User errors: one line with cause and advice, and the documented exit code.

use crate::cli_env::{CliEnv, CommandOutput, program, run};
use leasehold_console::Exit;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::temp_dir;
use std::net::TcpListener;

/// Asserts one error line, empty standard output, the exit code, and words in the line.
fn assert_error(what: &str, output: &CommandOutput, code: impl Into<i32>, words: &[&str]) {
    assert_eq!(output.code, code.into(), "{what}: {output:?}");
    assert_eq!(output.out, "", "{what}");
    let lines: Vec<&str> = output.err.lines().collect();
    let errors = lines.iter().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{what}: {output:?}");
    let line = lines.last().unwrap();
    assert!(line.starts_with("error: "), "{what}: {output:?}");
    for word in words {
        assert!(
            line.contains(word),
            "{what}: {line:?} does not say {word:?}"
        );
    }
}

/// A well-formed key that no server knows.
fn unknown_key() -> String {
    Secret::new(&KeyScope::Admin, &[7; 32]).reveal().to_owned()
}

/// A table of cases: exit code, command, and words of the error line.
fn cases(table: &str) -> impl Iterator<Item = (i32, &str, Vec<&str>)> {
    table.lines().map(|line| {
        let mut cells = line.split(" | ");
        let code = cells.next().unwrap().parse().unwrap();
        (code, cells.next().unwrap(), cells.collect())
    })
}

#[test]
fn command_line_errors_need_no_server() {
    let dir = temp_dir();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("bad.json", r#"{"nodes": [,]}"#);
    write("odd.json", r#"{"nodes": [{"id": "a", "type": "dance"}]}"#);
    write(
        "loop.json",
        r#"{"nodes": [{"id": "a", "type": "delay", "milliseconds": 1}], "edges": [{"from": "a", "to": "a"}]}"#,
    );
    // A key, so that its absence is not the error.
    let key = unknown_key();
    for (code, words, expected) in cases(include_str!("errors_offline.txt")) {
        let arguments: Vec<&str> = words.split(' ').collect();
        let mut command = program(dir.path(), &arguments);
        command.env("LEASEHOLD_KEY", &key);
        assert_error(words, &run(command, ""), code, &expected);
    }
}

#[test]
fn server_problems_are_reported_with_their_code() {
    let env = CliEnv::new();
    env.publish_pause("pause", 1);
    let done = env.ok("request enqueue pause");
    env.ok(&format!("request watch {done}"));
    env.file("text.json", "\"a");
    env.file("lines.ndjson", "{\"params\": {}}\n{\"parms\": {}}\n");
    for (code, words, expected) in cases(include_str!("errors_server.txt")) {
        let words = words.replace("NONE", "01900000-0000-7000-8000-000000000000");
        let words = words.replace("DONE", &done);
        assert_error(&words, &env.run(&words), code, &expected);
    }
}

#[test]
fn key_without_access_is_explained() {
    let env = CliEnv::new();
    let worker = env.ok("key create workers --for-queue emails");
    let workspace_key = env.ok("key create one --for-workspace default");
    let revoked = env.ok("key create gone --admin");
    let keys = env.ok("key list -o json");
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    let id = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["name"] == "gone")
        .unwrap();
    env.ok(&format!("key revoke {}", id["id"].as_str().unwrap()));
    let unknown = unknown_key();
    let keys = [
        ("INVALID", "nonsense"),
        ("UNKNOWN", &unknown),
        ("REVOKED", &revoked),
        ("WORKER", &worker),
        ("WORKSPACE", &workspace_key),
    ];
    for (code, words, mut expected) in cases(include_str!("errors_keys.txt")) {
        let name = expected.remove(0);
        let (_, key) = keys.iter().find(|(known, _)| *known == name).unwrap();
        let output = env.run_with_key(words, key);
        assert_error(words, &output, code, &expected);
        assert!(!output.err.contains(key), "the key is shown");
    }
}

#[test]
fn missing_key_names_the_ways_to_set_one() {
    let env = CliEnv::new();
    // Outside of any data directory there is no key.
    let elsewhere = temp_dir();
    let output = run(
        program(
            elsewhere.path(),
            &["workspace", "list", "--server", &env.address()],
        ),
        "",
    );
    assert_error(
        "no key",
        &output,
        Exit::Denied.code(),
        &[
            "no API key for",
            "LEASEHOLD_KEY",
            "--key-file",
            "--data-dir",
        ],
    );
}

#[test]
fn failed_start_is_explained() {
    let mut env = CliEnv::new();
    let in_use = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = in_use.local_addr().unwrap().to_string();
    let elsewhere = temp_dir();
    let port = run(
        program(elsewhere.path(), &["serve", "--listen", &in_use]),
        "",
    );
    let line = port.err.lines().last().unwrap();
    assert_eq!(port.code, i32::from(Exit::InUse.code()), "{port:?}");
    assert!(
        line.contains(&in_use) && line.contains("--listen"),
        "{line}"
    );

    let dir = env.run("serve --listen 127.0.0.1:0");
    assert_error(
        "data directory",
        &dir,
        Exit::InUse.code(),
        &["is in use by process", "leasehold-data"],
    );

    env.stop();
    let database = env.dir().join("leasehold-data/leasehold.db");
    let connection = rusqlite::Connection::open(database).unwrap();
    let newer = include_str!("../config/sql/newer_sqlite.sql").replace("{needs}", "999");
    connection.execute_batch(&newer).unwrap();
    drop(connection);
    for words in ["serve --listen 127.0.0.1:0", "migrate up", "admin-key"] {
        let output = env.run(words);
        assert_error(
            words,
            &output,
            Exit::Schema.code(),
            &["too new for this program", "or newer"],
        );
    }
}

#[test]
fn other_http_server_is_recognized() {
    let dir = temp_dir();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let page = "<html>It works!</html>";
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        );
    });
    let mut command = program(dir.path(), &["workspace", "list", "--server", &address]);
    command.env("LEASEHOLD_KEY", unknown_key());
    let output = run(command, "");
    answering.join().unwrap();
    assert_error(
        "another server",
        &output,
        Exit::Failed.code(),
        &["not a Leasehold server", "--server"],
    );
}

#[test]
fn exit_codes_are_documented() {
    let page = include_str!("../../../../docs/reference/exit-codes.md");
    for exit in Exit::ALL {
        let code = format!("| {} |", exit.code());
        let line = page.lines().find(|line| line.starts_with(&code));
        let line = line.unwrap_or_else(|| panic!("{code} is not on the page"));
        assert!(
            line.contains(exit.meaning()),
            "{line} does not say: {}",
            exit.meaning()
        );
    }
}
