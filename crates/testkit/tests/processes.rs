//! Child processes: output, signals, and that none outlives its test.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use leasehold_testkit::{Process, wait_until};

const TIMEOUT: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(50);
const KILL: i32 = 9;

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Process::spawn(command)
}

/// The state letter of a process in Linux; none once it is gone.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn panic_message(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn lines_of_both_outputs_are_collected() {
    let mut process = shell("echo one; echo two >&2; exit 3");
    assert_eq!(
        process.wait_for_line(TIMEOUT, |line| line.starts_with('t')),
        "two"
    );
    assert_eq!(
        process.wait_for_line(TIMEOUT, |line| line.starts_with('o')),
        "one"
    );
    assert_eq!(process.wait(TIMEOUT).code(), Some(3));
    let mut lines = process.lines();
    lines.sort();
    assert_eq!(lines, ["one", "two"]);
}

#[test]
fn failed_wait_reports_the_output() {
    let ended = shell("echo only this");
    let message = panic_message(|| drop(ended.wait_for_line(TIMEOUT, |line| line == "ready")));
    assert!(message.contains("only this"), "{message}");

    let mut busy = shell("echo still here; exec cat /dev/zero >/dev/null");
    busy.wait_for_line(TIMEOUT, |line| line == "still here");
    let message = panic_message(|| drop(busy.wait_for_line(SHORT, |line| line == "ready")));
    assert!(message.contains("still here"), "{message}");
    let message = panic_message(|| _ = busy.wait(SHORT));
    assert!(message.contains("did not exit"), "{message}");
    assert!(busy.is_running());
}

#[test]
fn process_is_stopped_continued_and_terminated() {
    let mut process = shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done");
    process.wait_for_line(TIMEOUT, |line| line == "ready");
    process.stop();
    assert!(wait_until(TIMEOUT, || state(process.pid()) == Some('T')));
    process.terminate();
    assert!(process.is_running());
    process.cont();
    assert_eq!(process.wait(TIMEOUT).code(), Some(7));
    assert!(process.lines().contains(&"bye".to_owned()));
    // Signals to an exited process do nothing.
    process.stop();
    process.kill();
}

#[test]
fn process_is_killed_explicitly_and_with_its_handle() {
    let mut process = shell("exec cat /dev/zero >/dev/null");
    process.stop();
    process.kill();
    assert_eq!(process.wait(TIMEOUT).signal(), Some(KILL));

    let process = shell("exec cat /dev/zero >/dev/null");
    let pid = process.pid();
    assert!(state(pid).is_some());
    drop(process);
    assert_eq!(state(pid), None);
}

/// Runs this test again in a separate process, whose child must not outlive it.
#[test]
fn process_ends_when_its_owner_is_killed() {
    const INNER: &str = "LEASEHOLD_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        let child = shell("echo started; exec cat /dev/zero >/dev/null");
        child.wait_for_line(TIMEOUT, |line| line == "started");
        let line = format!("\nchild {}\n", child.pid());
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
        let _ = wait_until(TIMEOUT, || false);
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["process_ends_when_its_owner_is_killed", "--nocapture"])
        .env(INNER, "1");
    let mut owner = Process::spawn(command);
    let line = owner.wait_for_line(TIMEOUT, |line| line.starts_with("child "));
    let pid = line["child ".len()..].parse().unwrap();
    assert!(state(pid).is_some());
    owner.kill();
    assert!(wait_until(TIMEOUT, || matches!(
        state(pid),
        None | Some('Z')
    )));
}
