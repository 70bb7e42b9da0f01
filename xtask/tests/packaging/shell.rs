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
    lint(&text(SECRETS)).must_be_well();
}

#[test]
fn shellcheck_refuses_a_broken_one() {
    let broken = with(&text(SECRETS), "\"$(dirname \"$0\")\"", "$(dirname $0)");
    lint(&broken).must_be_refused("SC2046");
}

/// Runs a copy of the script in a folder of its own.
fn make(folder: &Path) -> Outcome {
    let copy = folder.join("make-secrets.sh");
    fs::copy(path(SECRETS), &copy).unwrap();
    run(Command::new("sh").arg(&copy))
}

#[test]
fn secrets_are_made_once_and_fit_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("secrets");
    make(folder.path()).must_be_well();
    let password = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    assert!(
        password.len() == 48 && password.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{password:?}"
    );
    let settings = fs::read_to_string(secrets.join("store.toml")).unwrap();
    assert!(settings.contains(&format!("postgres://leasehold:{password}@postgres/")));
    let mode = fs::metadata(&secrets).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the folder is for its owner");

    let said = make(folder.path()).must_be_well();
    assert!(said.contains("there already"), "{said}");
    let again = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    assert_eq!(again, password);
}

#[test]
fn two_machines_have_different_secrets() {
    let passwords = [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path()).must_be_well();
        fs::read_to_string(folder.path().join("secrets/postgres_password")).unwrap()
    });
    assert_ne!(passwords[0], passwords[1]);
}
