//! `leasehold job work`: programs that succeed, fail, hang and are not there.

use crate::PATIENCE;
use crate::cli_env::{CliEnv, program};
use leasehold_testkit::Process;
use serde_json::Value;

fn job(ground: &CliEnv, id: &str) -> Value {
    serde_json::from_str(&ground.ok(&format!("job get {id} -o json"))).unwrap()
}

#[test]
fn a_program_gets_the_payload_and_gives_the_result() {
    let ground = CliEnv::new();
    let enqueue = [
        "job",
        "enqueue",
        "letters",
        "welcome",
        "--payload",
        r#"{"to": "ada"}"#,
    ];
    let id = ground.says_all(&enqueue).out;
    let id = id.trim();
    let script = r#"read payload; echo "{\"got\": $payload, \"kind\": \"$LEASEHOLD_JOB_KIND\", \"try\": $LEASEHOLD_JOB_ATTEMPT}""#;
    let said = ground.says_all(&["job", "work", "letters", "--once", "--", "sh", "-c", script]);
    assert_eq!(said.code, 0, "{said:?}");
    let done = job(&ground, id);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["got"]["to"], "ada");
    assert_eq!(done["result"]["kind"], "welcome");
    assert_eq!(done["result"]["try"], 1);
}

#[test]
fn text_is_a_result_too_and_a_failure_is_told_with_what_was_said() {
    let ground = CliEnv::new();
    let text = ground.ok("job enqueue letters a");
    ground.says_all(&[
        "job", "work", "letters", "--once", "--", "echo", "two", "words",
    ]);
    assert_eq!(job(&ground, &text)["result"], "two words");
    let failing = ground.ok("job enqueue letters b --max-attempts 1");
    ground.says_all(&[
        "job",
        "work",
        "letters",
        "--once",
        "--",
        "sh",
        "-c",
        "echo the ink is dry >&2; exit 9",
    ]);
    let failed = job(&ground, &failing);
    assert_eq!(failed["status"], "failed");
    let error = failed["last_error"].as_str().unwrap();
    assert!(
        error.contains("9") && error.contains("the ink is dry"),
        "{error}"
    );
    // A program that is not there uses up nobody's attempts.
    let waiting = ground.ok("job enqueue letters c --max-attempts 1");
    for missing in ["no-such-program", "./nowhere", "/etc/passwd"] {
        let said = ground.says_all(&["job", "work", "letters", "--once", "--", missing]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(missing), "{said:?}");
    }
    assert_eq!(job(&ground, &waiting)["status"], "queued");
}

#[test]
fn told_to_stop_it_finishes_what_it_has() {
    let ground = CliEnv::new();
    let id = ground.ok("job enqueue letters slow");
    let started = ground.folder().join("started");
    let script = format!("touch '{}'; sleep 1; echo 1", started.display());
    let work = program(
        ground.folder(),
        &["job", "work", "letters", "--", "sh", "-c", &script],
    );
    let mut work = Process::spawn(work);
    assert!(leasehold_testkit::wait_until(PATIENCE, || started.exists()));
    work.terminate();
    assert!(work.wait(PATIENCE).success(), "{}", work.log());
    assert_eq!(job(&ground, &id)["status"], "completed");
    assert!(
        work.log()
            .contains("1 completed, 0 failed, 0 to be tried again"),
        "{}",
        work.log()
    );
}

#[test]
fn a_program_whose_lease_is_lost_is_ended_with_all_it_started() {
    let mut ground = CliEnv::new();
    ground.ok("job enqueue letters slow");
    let started = ground.folder().join("started");
    // The inner shell would outlive the outer one, were only that one ended.
    let script = format!(
        "sh -c 'echo $$ > {}; sleep 600; true'; true",
        started.display()
    );
    let lease = [
        "job", "work", "letters", "--lease", "5s", "--", "sh", "-c", &script,
    ];
    let _work = Process::spawn(program(ground.folder(), &lease));
    let inner = || std::fs::read_to_string(&started).unwrap_or_default();
    assert!(leasehold_testkit::wait_until(PATIENCE, || inner().ends_with('\n')));
    let inner = inner();
    assert!(lives(inner.trim()));
    // Nobody renews it while there is no server, so it runs out.
    ground.stop();
    assert!(leasehold_testkit::wait_until(PATIENCE, || !lives(
        inner.trim()
    )));
}

/// Whether there is such a process; one that only waits to be counted is not.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

#[test]
fn what_a_program_leaves_behind_does_not_hold_its_job() {
    let ground = CliEnv::new();
    let id = ground.ok("job enqueue letters a");
    let script = "sleep 600 & echo done";
    let said = ground.says_all(&["job", "work", "letters", "--once", "--", "sh", "-c", script]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(job(&ground, &id)["result"], "done");
}

#[test]
fn a_key_that_does_not_open_the_queue_is_told_at_once() {
    let ground = CliEnv::new();
    let key = ground.ok("key create other --for-queue parcels");
    let said = ground.says_with("job work letters -- cat", &[("LEASEHOLD_KEY", &key)]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("--for-queue letters"), "{said:?}");
}
