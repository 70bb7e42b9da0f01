//! `leasehold request watch`: to the end of the request, and through a restart of the server.

use crate::TIMEOUT;
use crate::cli_env::{CliEnv, program};
use leasehold_testkit::Process;

#[test]
fn exits_with_0_on_completion_and_7_on_failure() {
    let env = CliEnv::new();
    env.publish_pause("pause", 300);
    let output = env.run("request enqueue pause --watch");
    assert_eq!(output.code, 0, "{output:?}");
    for word in [
        "PENDING",
        "DISPATCHED",
        "pause  completed",
        "COMPLETED  after",
    ] {
        assert!(output.out.contains(word), "{word}: {output:?}");
    }
    env.publish_task("task", "letters");
    let request = env.ok("request enqueue task");
    let work = env.run_args(&[
        "job",
        "work",
        "letters",
        "--once",
        "--",
        "sh",
        "-c",
        "echo no paper >&2; exit 3",
    ]);
    assert_eq!(work.code, 0, "{work:?}");
    let output = env.run(&format!("request watch {request}"));
    assert_eq!(output.code, 7, "{output:?}");
    assert!(output.out.contains("FAILED"), "{output:?}");
    let line = output.err.lines().last().unwrap();
    for word in [
        "error: ",
        "execution_failed",
        "no paper",
        &format!("leasehold request redrive {request}"),
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn continues_after_a_server_restart() {
    let mut env = CliEnv::new();
    env.publish_task("task", "letters");
    let request = env.ok("request enqueue task");
    let watch = program(env.dir(), &["request", "watch", &request]);
    let mut watch = Process::spawn(watch);
    watch.wait_for_line(TIMEOUT, |line| line.contains("work  running"));
    env.restart(|| {
        watch.wait_for_line(TIMEOUT, |line| line.contains("server unreachable"));
    });
    watch.wait_for_line(TIMEOUT, |line| line.contains("server is reachable again"));
    let work = env.run_args(&["job", "work", "letters", "--once", "--", "true"]);
    assert_eq!(work.code, 0, "{work:?}");
    assert!(watch.wait(TIMEOUT).success(), "{}", watch.log());
    let log = watch.log();
    assert_eq!(log.matches("DISPATCHED").count(), 1, "{log}");
    assert!(log.contains("COMPLETED  after"), "{log}");
}

#[test]
fn json_output_is_one_line_per_transition() {
    let env = CliEnv::new();
    env.publish_pause("pause", 1);
    let output = env.run("request enqueue pause --watch -o json");
    assert_eq!(output.code, 0, "{output:?}");
    let steps: Vec<serde_json::Value> = output
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(steps[0]["to"], "PENDING");
    assert!(
        steps
            .iter()
            .any(|step| step["node"]["state"] == "completed"),
        "{steps:?}"
    );
    assert_eq!(steps.last().unwrap()["request"]["status"], "COMPLETED");
}
