//! The scripts of the packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use leasehold_testkit::SHELLCHECK;

use crate::{Outcome, path, run, text, with};

const SECRETS: &str = "packaging/compose/make-secrets.sh";

fn lint(script: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.sh");
    fs::write(&file, script).unwrap();
    run(SHELLCHECK.command().unwrap().arg(&file))
}

#[test]
fn shellcheck_accepts_each_script() {
    lint(&text(SECRETS)).must_succeed();
}

#[test]
fn shellcheck_refuses_a_broken_one() {
    let broken = with(&text(SECRETS), "\"$(dirname \"$0\")\"", "$(dirname $0)");
    lint(&broken).must_fail_with("SC2046");
}

/// Runs a copy of the script in its own directory.
fn make(folder: &Path) -> Outcome {
    let copy = folder.join("make-secrets.sh");
    fs::copy(path(SECRETS), &copy).unwrap();
    run(Command::new("sh").arg(&copy))
}

#[test]
fn secrets_are_created_once_and_match() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("secrets");
    make(folder.path()).must_succeed();
    let password = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    assert!(
        password.len() == 48 && password.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{password:?}"
    );
    let settings = fs::read_to_string(secrets.join("store.toml")).unwrap();
    assert!(settings.contains(&format!("postgres://leasehold:{password}@postgres/")));
    let mode = fs::metadata(&secrets).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the directory is private");

    let said = make(folder.path()).must_succeed();
    assert!(said.contains("there already"), "{said}");
    let again = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    assert_eq!(again, password);
}

#[test]
fn two_machines_have_different_secrets() {
    let passwords = [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path()).must_succeed();
        fs::read_to_string(folder.path().join("secrets/postgres_password")).unwrap()
    });
    assert_ne!(passwords[0], passwords[1]);
}
