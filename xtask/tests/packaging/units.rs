//! The units for systemd, judged by systemd itself, and the user that they run as.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::settings::seconds;
use crate::{Outcome, run, text, with};

const PROGRAM: &str = "/usr/local/bin/leasehold";
const UNITS: [&str; 2] = ["leasehold.service", "leasehold-worker.service"];
/// Of systemd's hundred points of exposure. Network and its own files are what is left.
const EXPOSURE: &str = "--threshold=20";

fn unit(name: &str) -> String {
    text(&format!("packaging/systemd/{name}"))
}

/// What `systemd-analyze` says to a unit whose program is one that is here.
fn analyze(name: &str, unit: &str, arguments: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, with(unit, PROGRAM, "/bin/true")).unwrap();
    let mut command = Command::new("systemd-analyze");
    run(command.args(arguments).arg(&file))
}

fn verify(name: &str, unit: &str) -> Outcome {
    // Without the second it says what is wrong and is content all the same.
    analyze(name, unit, &["verify", "--recursive-errors=no", "--man=no"])
}

fn security(name: &str, unit: &str) -> Outcome {
    analyze(name, unit, &["security", "--offline=true", EXPOSURE])
}

/// The value of a line such as `Type=notify`.
fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let mut lines = unit.lines();
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("there is no {key}"))
}

#[test]
fn systemd_accepts_each_unit() {
    for name in UNITS {
        let said = verify(name, &unit(name)).must_be_well();
        assert!(said.is_empty(), "{name}: {said}");
    }
}

#[test]
fn systemd_refuses_a_unit_with_a_misspelt_key() {
    for name in UNITS {
        let broken = with(&unit(name), "RestartSec=", "RestartSecs=");
        verify(name, &broken).must_be_refused("Unknown key 'RestartSecs'");
    }
}

#[test]
fn each_unit_is_locked_up() {
    for name in UNITS {
        security(name, &unit(name)).must_be_well();
    }
}

#[test]
fn a_unit_that_may_do_anything_is_found_out() {
    for name in UNITS {
        let open = with(&unit(name), "SystemCallFilter=", "#");
        let open = with(&open, "CapabilityBoundingSet=", "#");
        let open = with(&open, "ProtectSystem=strict", "ProtectSystem=no");
        security(name, &open).must_be_refused("Overall exposure level");
    }
}

#[test]
fn systemd_waits_longer_than_the_program_drains() {
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
fn what_another_start_cannot_mend_is_not_started_again() {
    assert_eq!(
        value(&unit(UNITS[0]), "RestartPreventExitStatus"),
        "2 9",
        "a wrong setting, and a schema that is too new"
    );
    assert_eq!(value(&unit(UNITS[1]), "RestartPreventExitStatus"), "2 4");
}

#[test]
fn the_user_of_the_units_is_made() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("etc")).unwrap();
    let file = root.path().join("leasehold.conf");
    fs::write(&file, text("packaging/systemd/leasehold.sysusers")).unwrap();
    let mut command = Command::new("systemd-sysusers");
    let said = run(command.arg("--root").arg(root.path()).arg(&file)).must_be_well();
    let users = fs::read_to_string(root.path().join("etc/passwd")).unwrap();
    for name in UNITS {
        let user = format!("{}:", value(&unit(name), "User"));
        assert!(
            users.lines().any(|line| line.starts_with(&user)),
            "{said}{users}"
        );
    }
}
