//! Every slip a user can make: one line that says what is wrong and what to do, and its documented exit code.

use crate::cli_env::{CliEnv, Said, program, run};
use leasehold_console::Exit;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::temp_dir;
use std::net::TcpListener;

/// One line on standard error, nothing on standard output, this code, and these words.
fn assert_refused(what: &str, said: &Said, code: impl Into<i32>, words: &[&str]) {
    assert_eq!(said.code, code.into(), "{what}: {said:?}");
    assert_eq!(said.out, "", "{what}");
    let lines: Vec<&str> = said.err.lines().collect();
    let errors = lines.iter().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{what}: {said:?}");
    let line = lines.last().unwrap();
    assert!(line.starts_with("error: "), "{what}: {said:?}");
    for word in words {
        assert!(
            line.contains(word),
            "{what}: {line:?} does not say {word:?}"
        );
    }
}

/// A key as they are made, which no server knows.
fn stranger() -> String {
    Secret::new(&KeyScope::Admin, &[7; 32]).reveal().to_owned()
}

/// A table of slips: an exit code, a command, and what its one line must say.
fn slips(table: &str) -> impl Iterator<Item = (i32, &str, Vec<&str>)> {
    table.lines().map(|line| {
        let mut cells = line.split(" | ");
        let code = cells.next().unwrap().parse().unwrap();
        (code, cells.next().unwrap(), cells.collect())
    })
}

#[test]
fn slips_of_the_command_line_are_told_without_a_server() {
    let folder = temp_dir();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bad.json", r#"{"nodes": [,]}"#);
    write("odd.json", r#"{"nodes": [{"id": "a", "type": "dance"}]}"#);
    write(
        "loop.json",
        r#"{"nodes": [{"id": "a", "type": "delay", "milliseconds": 1}], "edges": [{"from": "a", "to": "a"}]}"#,
    );
    // There is a key, or that would be what is missing.
    let key = stranger();
    for (code, words, expected) in slips(include_str!("slips_alone.txt")) {
        let arguments: Vec<&str> = words.split(' ').collect();
        let mut command = program(folder.path(), &arguments);
        command.env("LEASEHOLD_KEY", &key);
        assert_refused(words, &run(command, ""), code, &expected);
    }
}

#[test]
fn what_the_server_refuses_is_told_with_its_code() {
    let ground = CliEnv::new();
    ground.publish_pause("pause", 1);
    let done = ground.ok("request enqueue pause");
    ground.ok(&format!("request watch {done}"));
    ground.file("text.json", "\"a");
    ground.file("lines.ndjson", "{\"params\": {}}\n{\"parms\": {}}\n");
    for (code, words, expected) in slips(include_str!("slips_served.txt")) {
        let words = words.replace("NONE", "01900000-0000-7000-8000-000000000000");
        let words = words.replace("DONE", &done);
        assert_refused(&words, &ground.says(&words), code, &expected);
    }
}

#[test]
fn a_key_that_does_not_open_it_is_told_as_what_it_is() {
    let ground = CliEnv::new();
    let worker = ground.ok("key create workers --for-queue emails");
    let of_one = ground.ok("key create one --for-workspace default");
    let revoked = ground.ok("key create gone --admin");
    let keys = ground.ok("key list -o json");
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    let id = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["name"] == "gone")
        .unwrap();
    ground.ok(&format!("key revoke {}", id["id"].as_str().unwrap()));
    let never = stranger();
    let keys = [
        ("NONSENSE", "nonsense"),
        ("STRANGER", &never),
        ("REVOKED", &revoked),
        ("WORKER", &worker),
        ("OF_ONE", &of_one),
    ];
    for (code, words, mut expected) in slips(include_str!("slips_of_keys.txt")) {
        let name = expected.remove(0);
        let (_, key) = keys.iter().find(|(known, _)| *known == name).unwrap();
        let said = ground.says_with(words, &[("LEASEHOLD_KEY", key)]);
        assert_refused(words, &said, code, &expected);
        assert!(!said.err.contains(key), "the key is shown");
    }
}

#[test]
fn where_no_key_is_found_the_ways_to_one_are_named() {
    let ground = CliEnv::new();
    // Far from any data folder there is a server, and no key for it.
    let elsewhere = temp_dir();
    let said = run(
        program(
            elsewhere.path(),
            &["workspace", "list", "--server", &ground.address()],
        ),
        "",
    );
    assert_refused(
        "no key",
        &said,
        Exit::Denied.code(),
        &["there is no key for", "LEASEHOLD_KEY", "--data-dir"],
    );
}

#[test]
fn a_server_that_cannot_start_says_what_is_in_its_way() {
    let mut ground = CliEnv::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let elsewhere = temp_dir();
    let port = run(
        program(elsewhere.path(), &["serve", "--listen", &taken]),
        "",
    );
    let line = port.err.lines().last().unwrap();
    assert_eq!(port.code, i32::from(Exit::InUse.code()), "{port:?}");
    assert!(line.contains(&taken) && line.contains("--listen"), "{line}");

    let folder = ground.says("serve --listen 127.0.0.1:0");
    assert_refused(
        "data folder",
        &folder,
        Exit::InUse.code(),
        &["is in use by process", "leasehold-data"],
    );

    ground.stop();
    let database = ground.folder().join("leasehold-data/leasehold.db");
    let later = rusqlite::Connection::open(database).unwrap();
    later
        .execute_batch(include_str!("../config/sql/newer_sqlite.sql"))
        .unwrap();
    drop(later);
    for words in ["serve --listen 127.0.0.1:0", "migrate up", "admin-key"] {
        let said = ground.says(words);
        assert_refused(words, &said, Exit::Schema.code(), &["newer", "leasehold"]);
    }
}

#[test]
fn something_that_is_no_leasehold_is_told_as_such() {
    let folder = temp_dir();
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
    let mut command = program(folder.path(), &["workspace", "list", "--server", &address]);
    command.env("LEASEHOLD_KEY", stranger());
    let said = run(command, "");
    answering.join().unwrap();
    assert_refused(
        "another server",
        &said,
        Exit::Failed.code(),
        &["is no Leasehold", "--server"],
    );
}

#[test]
fn every_exit_code_is_explained_where_the_help_says() {
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
