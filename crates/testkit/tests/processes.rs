//! Programs under test: their lines, their signals, and that none outlives its test.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use leasehold_testkit::{Process, wait_until};

const LIMIT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);
const KILL: i32 = 9;

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Process::spawn(command)
}

/// The letter that Linux gives a process for what it does, none when it is gone.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn panic_of(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn lines_of_both_outputs_are_collected_and_waited_for() {
    let mut process = shell("echo one; echo two >&2; exit 3");
    assert_eq!(
        process.wait_for_line(LIMIT, |line| line.starts_with('t')),
        "two"
    );
    assert_eq!(
        process.wait_for_line(LIMIT, |line| line.starts_with('o')),
        "one"
    );
    assert_eq!(process.wait(LIMIT).code(), Some(3));
    let mut lines = process.lines();
    lines.sort();
    assert_eq!(lines, ["one", "two"]);
}

#[test]
fn a_wait_in_vain_shows_what_was_printed() {
    let ended = shell("echo only this");
    let said = panic_of(|| drop(ended.wait_for_line(LIMIT, |line| line == "ready")));
    assert!(said.contains("only this"), "{said}");

    let mut busy = shell("echo still here; exec cat /dev/zero >/dev/null");
    busy.wait_for_line(LIMIT, |line| line == "still here");
    let said = panic_of(|| drop(busy.wait_for_line(SHORT, |line| line == "ready")));
    assert!(said.contains("still here"), "{said}");
    let said = panic_of(|| _ = busy.wait(SHORT));
    assert!(said.contains("did not end"), "{said}");
    assert!(busy.is_running());
}

#[test]
fn a_process_is_stopped_continued_and_terminated() {
    let mut process = shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done");
    process.wait_for_line(LIMIT, |line| line == "ready");
    process.stop();
    assert!(wait_until(LIMIT, || state(process.pid()) == Some('T')));
    process.terminate();
    assert!(process.is_running());
    process.cont();
    assert_eq!(process.wait(LIMIT).code(), Some(7));
    assert!(process.lines().contains(&"bye".to_owned()));
    // To one that has ended, nothing happens.
    process.stop();
    process.kill();
}

#[test]
fn a_process_is_killed_by_hand_and_with_its_handle() {
    let mut process = shell("exec cat /dev/zero >/dev/null");
    process.stop();
    process.kill();
    assert_eq!(process.wait(LIMIT).signal(), Some(KILL));

    let process = shell("exec cat /dev/zero >/dev/null");
    let pid = process.pid();
    assert!(state(pid).is_some());
    drop(process);
    assert_eq!(state(pid), None);
}

/// Runs this test again in a program of its own, whose child must not outlive it.
#[test]
fn a_process_ends_when_its_owner_is_killed() {
    const INNER: &str = "LEASEHOLD_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        let child = shell("echo started; exec cat /dev/zero >/dev/null");
        child.wait_for_line(LIMIT, |line| line == "started");
        let said = format!("\nchild {}\n", child.pid());
        std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes()).unwrap();
        let _ = wait_until(LIMIT, || false);
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["a_process_ends_when_its_owner_is_killed", "--nocapture"])
        .env(INNER, "1");
    let mut owner = Process::spawn(command);
    let line = owner.wait_for_line(LIMIT, |line| line.starts_with("child "));
    let pid = line["child ".len()..].parse().unwrap();
    assert!(state(pid).is_some());
    owner.kill();
    assert!(wait_until(LIMIT, || matches!(state(pid), None | Some('Z'))));
}
