//! The systemd units, checked by systemd-analyze, and their user.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::settings::seconds;
use crate::{Outcome, run, text, with};

const PROGRAM: &str = "/usr/local/bin/leasehold";
const UNITS: [&str; 2] = ["leasehold.service", "leasehold-worker.service"];
/// Maximum exposure level of `systemd-analyze security`, in tenths. The rest is network and its own files.
const EXPOSURE: &str = "--threshold=20";

fn unit(name: &str) -> String {
    text(&format!("packaging/systemd/{name}"))
}

/// Verifies a unit with an existing program.
fn analyze(name: &str, unit: &str, arguments: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, with(unit, PROGRAM, "/bin/true")).unwrap();
    let mut command = Command::new("systemd-analyze");
    run(command.args(arguments).arg(&file))
}

fn verify(name: &str, unit: &str) -> Outcome {
    // Without the second flag it only warns.
    analyze(name, unit, &["verify", "--recursive-errors=no", "--man=no"])
}

fn security(name: &str, unit: &str) -> Outcome {
    analyze(name, unit, &["security", "--offline=true", EXPOSURE])
}

/// The value of a line such as `Type=notify`.
fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let mut lines = unit.lines();
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("missing {key}"))
}

#[test]
fn systemd_accepts_each_unit() {
    for name in UNITS {
        let said = verify(name, &unit(name)).must_succeed();
        assert!(said.is_empty(), "{name}: {said}");
    }
}

#[test]
fn systemd_rejects_a_misspelt_key() {
    for name in UNITS {
        let broken = with(&unit(name), "RestartSec=", "RestartSecs=");
        verify(name, &broken).must_fail_with("Unknown key 'RestartSecs'");
    }
}

#[test]
fn units_are_sandboxed() {
    for name in UNITS {
        security(name, &unit(name)).must_succeed();
    }
}

#[test]
fn unit_without_sandbox_is_found() {
    for name in UNITS {
        let open = with(&unit(name), "SystemCallFilter=", "#");
        let open = with(&open, "CapabilityBoundingSet=", "#");
        let open = with(&open, "ProtectSystem=strict", "ProtectSystem=no");
        security(name, &open).must_fail_with("Overall exposure level");
    }
}

#[test]
fn stop_timeout_exceeds_the_drain_timeout() {
    let drains = [
        ("leasehold.service", "server.drain_timeout", 5),
        ("leasehold.service", "dispatch.drain_timeout", 5),
        ("leasehold.service", "embedded.drain_timeout", 10),
        ("leasehold-worker.service", "worker.drain_timeout", 10),
    ];
    for (name, setting, last_words) in drains {
        let unit = unit(name);
        let waits = value(&unit, "TimeoutStopSec").strip_suffix('s').unwrap();
        let waits = Duration::from_secs(waits.parse().unwrap());
        let needs = seconds(setting) + Duration::from_secs(last_words);
        assert!(
            waits > needs,
            "{name} waits {waits:?}, {setting} needs {needs:?}"
        );
    }
}

#[test]
fn permanent_errors_do_not_restart() {
    assert_eq!(
        value(&unit(UNITS[0]), "RestartPreventExitStatus"),
        "2 9",
        "invalid settings and a newer schema"
    );
    assert_eq!(value(&unit(UNITS[1]), "RestartPreventExitStatus"), "2 4");
}

#[test]
fn sysusers_creates_the_user() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("etc")).unwrap();
    let file = root.path().join("leasehold.conf");
    fs::write(&file, text("packaging/systemd/leasehold.sysusers")).unwrap();
    let mut command = Command::new("systemd-sysusers");
    let said = run(command.arg("--root").arg(root.path()).arg(&file)).must_succeed();
    let users = fs::read_to_string(root.path().join("etc/passwd")).unwrap();
    for name in UNITS {
        let user = format!("{}:", value(&unit(name), "User"));
        assert!(
            users.lines().any(|line| line.starts_with(&user)),
            "{said}{users}"
        );
    }
}
