//! `leasehold job work`: programs that succeed, fail, hang or do not exist.

use crate::TIMEOUT;
use crate::cli_env::{CliEnv, program, run};
use leasehold_testkit::Process;
use serde_json::Value;

fn job(env: &CliEnv, id: &str) -> Value {
    serde_json::from_str(&env.ok(&format!("job get {id} -o json"))).unwrap()
}

#[test]
fn program_reads_the_payload_and_prints_the_result() {
    let env = CliEnv::new();
    let enqueue = [
        "job",
        "enqueue",
        "letters",
        "welcome",
        "--payload",
        r#"{"to": "ada"}"#,
    ];
    let id = env.run_args(&enqueue).out;
    let id = id.trim();
    let script = r#"read payload; echo "{\"got\": $payload, \"kind\": \"$LEASEHOLD_JOB_KIND\", \"try\": $LEASEHOLD_JOB_ATTEMPT}""#;
    let output = env.run_args(&["job", "work", "letters", "--once", "--", "sh", "-c", script]);
    assert_eq!(output.code, 0, "{output:?}");
    let done = job(&env, id);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["got"]["to"], "ada");
    assert_eq!(done["result"]["kind"], "welcome");
    assert_eq!(done["result"]["try"], 1);
}

#[test]
fn text_result_and_failure_message() {
    let env = CliEnv::new();
    let text = env.ok("job enqueue letters a");
    env.run_args(&[
        "job", "work", "letters", "--once", "--", "echo", "two", "words",
    ]);
    assert_eq!(job(&env, &text)["result"], "two words");
    let failing = env.ok("job enqueue letters b --max-attempts 1");
    env.run_args(&[
        "job",
        "work",
        "letters",
        "--once",
        "--",
        "sh",
        "-c",
        "echo the ink is dry >&2; exit 9",
    ]);
    let failed = job(&env, &failing);
    assert_eq!(failed["status"], "failed");
    let error = failed["last_error"].as_str().unwrap();
    assert!(
        error.contains("9") && error.contains("the ink is dry"),
        "{error}"
    );
    // A missing program uses no attempts.
    let waiting = env.ok("job enqueue letters c --max-attempts 1");
    for missing in ["no-such-program", "./nowhere", "/etc/passwd"] {
        let output = env.run_args(&["job", "work", "letters", "--once", "--", missing]);
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.err.contains(missing), "{output:?}");
    }
    assert_eq!(job(&env, &waiting)["status"], "queued");
}

#[test]
fn stopped_worker_finishes_running_jobs() {
    let env = CliEnv::new();
    let id = env.ok("job enqueue letters slow");
    let started = env.dir().join("started");
    let script = format!("touch '{}'; sleep 1; echo 1", started.display());
    let work = program(
        env.dir(),
        &["job", "work", "letters", "--", "sh", "-c", &script],
    );
    let mut work = Process::spawn(work);
    assert!(leasehold_testkit::wait_until(TIMEOUT, || started.exists()));
    work.terminate();
    assert!(work.wait(TIMEOUT).success(), "{}", work.log());
    assert_eq!(job(&env, &id)["status"], "completed");
    assert!(
        work.log().contains("1 completed, 0 failed, 0 retried"),
        "{}",
        work.log()
    );
}

#[test]
fn lost_lease_kills_the_whole_process_group() {
    let mut env = CliEnv::new();
    env.ok("job enqueue letters slow");
    let started = env.dir().join("started");
    // The inner shell would survive if only the outer one were killed.
    let script = format!(
        "sh -c 'echo $$ > {}; sleep 600; true'; true",
        started.display()
    );
    let lease = [
        "job", "work", "letters", "--lease", "10s", "--", "sh", "-c", &script,
    ];
    let _work = Process::spawn(program(env.dir(), &lease));
    let inner = || std::fs::read_to_string(&started).unwrap_or_default();
    assert!(leasehold_testkit::wait_until(TIMEOUT, || inner().ends_with('\n')));
    let inner = inner();
    assert!(is_alive(inner.trim()));
    // Without a server the lease expires.
    env.stop();
    assert!(leasehold_testkit::wait_until(TIMEOUT, || !is_alive(
        inner.trim()
    )));
}

/// Whether the process exists and is no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

#[test]
fn leftover_child_processes_do_not_block_the_job() {
    let env = CliEnv::new();
    let id = env.ok("job enqueue letters a");
    let script = "sleep 600 & echo done";
    let output = env.run_args(&["job", "work", "letters", "--once", "--", "sh", "-c", script]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(job(&env, &id)["result"], "done");
}

#[test]
fn key_without_access_to_the_queue_is_rejected() {
    let env = CliEnv::new();
    let key = env.ok("key create other --for-queue parcels");
    let output = env.run_with_key("job work letters -- cat", &key);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.err.contains("--for-queue letters"), "{output:?}");
}

#[test]
fn program_gets_no_key_and_no_setting() {
    let env = CliEnv::new();
    let id = env.ok("job enqueue letters a");
    let (address, key) = (env.address(), env.key());
    let secrets = [
        ("LEASEHOLD_KEY", key.as_str()),
        ("LEASEHOLD_KEY_FILE", "hush-file"),
        ("LEASEHOLD__STORE__URL", "postgres://me:hush-store@db/x"),
        ("LEASEHOLD__TEMPORAL__API_KEY", "hush-temporal"),
        ("leasehold__worker__key", "hush-worker"),
    ];
    let others = [("LEASEHOLD_SERVER", address.as_str()), ("MAIL_HOST", "mx1")];
    let mut work = program(
        env.dir(),
        &["job", "work", "letters", "--once", "--", "env"],
    );
    work.envs(secrets.iter().chain(&others).copied());
    let output = run(work, "");
    assert_eq!(output.code, 0, "{output:?}");
    let done = job(&env, &id);
    let seen = done["result"].as_str().unwrap();
    for (name, value) in secrets {
        assert!(!seen.contains(name) && !seen.contains(value), "{seen}");
    }
    for line in [
        format!("LEASEHOLD_JOB_ID={id}"),
        format!("LEASEHOLD_SERVER={address}"),
        "MAIL_HOST=mx1".to_owned(),
    ] {
        assert!(seen.lines().any(|one| one == line), "{line}: {seen}");
    }
}
