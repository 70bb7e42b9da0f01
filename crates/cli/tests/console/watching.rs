//! `leasehold request watch`: to the end, whatever that is, and through a restart.

use crate::PATIENCE;
use crate::cli_env::{CliEnv, program};
use leasehold_testkit::Process;

#[test]
fn it_ends_with_0_when_the_request_completes_and_with_7_when_it_fails() {
    let ground = CliEnv::new();
    ground.publish_pause("pause", 300);
    let said = ground.says("request enqueue pause --watch");
    assert_eq!(said.code, 0, "{said:?}");
    for word in [
        "PENDING",
        "DISPATCHED",
        "pause  completed",
        "COMPLETED  after",
    ] {
        assert!(said.out.contains(word), "{word}: {said:?}");
    }
    ground.publish_task("task", "letters");
    let request = ground.ok("request enqueue task");
    let work = ground.says_all(&[
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
    let said = ground.says(&format!("request watch {request}"));
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.out.contains("FAILED"), "{said:?}");
    let line = said.err.lines().last().unwrap();
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
fn it_goes_on_when_the_server_was_killed_and_came_back() {
    let mut ground = CliEnv::new();
    ground.publish_task("task", "letters");
    let request = ground.ok("request enqueue task");
    let watch = program(ground.folder(), &["request", "watch", &request]);
    let mut watch = Process::spawn(watch);
    watch.wait_for_line(PATIENCE, |line| line.contains("work  running"));
    ground.restart(|| {
        watch.wait_for_line(PATIENCE, |line| line.contains("the server does not answer"));
    });
    watch.wait_for_line(PATIENCE, |line| line.contains("the server answers again"));
    let work = ground.says_all(&["job", "work", "letters", "--once", "--", "true"]);
    assert_eq!(work.code, 0, "{work:?}");
    assert!(watch.wait(PATIENCE).success(), "{}", watch.log());
    let log = watch.log();
    assert_eq!(log.matches("DISPATCHED").count(), 1, "{log}");
    assert!(log.contains("COMPLETED  after"), "{log}");
}

#[test]
fn for_programs_every_step_is_a_line_of_json() {
    let ground = CliEnv::new();
    ground.publish_pause("pause", 1);
    let said = ground.says("request enqueue pause --watch -o json");
    assert_eq!(said.code, 0, "{said:?}");
    let steps: Vec<serde_json::Value> = said
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
