//! The image: its Dockerfile, build context and health check.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use leasehold_testkit::HADOLINT;

use crate::{Outcome, path, run, text, with};

const DOCKERFILE: &str = "packaging/docker/Dockerfile";

fn lint(dockerfile: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Dockerfile");
    std::fs::write(&file, dockerfile).unwrap();
    run(HADOLINT.command().unwrap().arg("--no-color").arg(&file))
}

#[test]
fn hadolint_accepts_the_dockerfile() {
    lint(&text(DOCKERFILE)).must_succeed();
}

#[test]
fn hadolint_rejects_an_invalid_file() {
    let good = text(DOCKERFILE);
    let unknown = with(&good, "STOPSIGNAL", "STOPSIGN");
    lint(&unknown).must_fail_with("unexpected 'S'");
    let unpinned = with(&good, "debian:bookworm-slim", "debian");
    lint(&unpinned).must_fail_with("DL3006");
}

#[test]
fn image_uses_the_rust_version_of_the_workspace() {
    let manifest = text("Cargo.toml");
    let mut lines = manifest.lines();
    let wanted = lines.find_map(|line| line.strip_prefix("rust-version = \""));
    let wanted = wanted.unwrap().trim_end_matches('"');
    let from = format!("FROM rust:{wanted}-bookworm AS build");
    assert!(text(DOCKERFILE).contains(&from), "missing: {from}");
}

#[test]
fn image_has_both_programs_in_one_directory() {
    let dockerfile = text(DOCKERFILE);
    let built = "cargo build --profile dist --locked -p leasehold -p leasehold-temporal-worker";
    assert!(dockerfile.contains(built), "missing: {built}");
    let copied = "COPY --from=build /out/ /usr/local/bin/";
    assert!(dockerfile.contains(copied), "missing: {copied}");
}

#[test]
fn build_context_contains_all_sources() {
    let ignored = text(".dockerignore");
    let ignored: Vec<_> = ignored
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    let mut git = Command::new("git");
    let files = run(git.arg("-C").arg(path("")).args(["ls-files", "--cached"])).must_succeed();
    assert!(files.lines().count() > 100, "these are not all: {files}");
    for file in files.lines() {
        let kept_out = ignored.iter().any(|pattern| matches(pattern, file));
        assert!(!kept_out, ".dockerignore excludes {file}");
    }
    assert!(matches("**/*.db", "some/store.db") && matches("**/target", "target/debug/leasehold"));
    assert!(!matches("**/target", "crates/targets/x.rs") && matches(".git", ".git/config"));
}

/// Matches the patterns of our .dockerignore: a path from the root, or `**/` and a name with at most one star.
fn matches(pattern: &str, file: &str) -> bool {
    let Some(name) = pattern.strip_prefix("**/") else {
        return file == pattern || file.starts_with(&format!("{pattern}/"));
    };
    file.split('/').any(|part| match name.split_once('*') {
        Some((begins, rest)) => {
            let ends = rest.trim_end_matches('*');
            part.starts_with(begins)
                && (rest.ends_with('*') && part.contains(ends) || part.ends_with(ends))
        }
        None => part == name,
    })
}

/// The result of the health check against a server with this answer.
fn health(answer: &'static str) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && peer.read(&mut byte).unwrap() > 0 {
            head.push(byte[0]);
        }
        peer.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(head).unwrap()
    });
    let outcome = check(port);
    let asked = server.join().unwrap();
    assert!(asked.starts_with("GET /readyz HTTP/1.1\r\n"), "{asked}");
    outcome
}

/// Runs the Dockerfile's health check on another port.
fn check(port: u16) -> Outcome {
    let dockerfile = text(DOCKERFILE);
    let mut lines = dockerfile.lines();
    let command = lines.find_map(|line| line.trim().strip_prefix("CMD [\"bash\""));
    let command = format!("[\"bash\"{}", command.unwrap());
    let words: Vec<String> = serde_json::from_str(&command).unwrap();
    let script = with(&words[2], "/7777", &format!("/{port}"));
    run(Command::new(&words[0]).args([&words[1], &script]))
}

#[test]
fn health_check_detects_an_unready_server() {
    health("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").must_succeed();
    assert!(!health("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").success);
    // tcpmux: a port that no program gets by asking for a free one, and that no server uses.
    check(1).must_fail_with("Connection refused");
}
