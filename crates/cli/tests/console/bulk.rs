//! Bulk commands: files of JSON lines, and redriving all dead letters.

use crate::cli_env::{CliEnv, program, run};

#[test]
fn file_of_lines_is_enqueued_completely() {
    let env = CliEnv::new();
    env.ok("workspace pause default");
    env.publish_pause("pause", 1);
    let lines: String = (0..2_500)
        .map(|number| {
            format!("{{\"params\": {{\"n\": {number}}}, \"idempotency_key\": \"k{number}\"}}\n")
        })
        .collect();
    env.file("many.ndjson", &lines);
    let output = env.run("request enqueue pause --from many.ndjson");
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{output:?}");
    assert_eq!(output.err.trim(), "2500 enqueued");
    let state: serde_json::Value =
        serde_json::from_str(&env.ok("workspace get default -o json")).unwrap();
    assert_eq!(state["requests"]["pending"], 2_500);
    // A repetition with the same idempotency keys creates nothing.
    let repeated = program(
        env.dir(),
        &["request", "enqueue", "pause", "--from", "-", "-o", "json"],
    );
    let repeated = run(repeated, &lines);
    let answers: Vec<serde_json::Value> = repeated
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2_500);
    assert!(answers.iter().all(|answer| answer["inserted"] == false));
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&env.ok("request list --all -o json")).unwrap();
    assert_eq!(listed.len(), 2_500);
    let few = env.run("request list");
    assert_eq!(few.out.lines().count(), 51, "{}", few.out);
    assert!(few.err.contains("more rows exist"), "{few:?}");
}

#[test]
fn invalid_line_is_named_with_the_progress_so_far() {
    let env = CliEnv::new();
    let mut lines: String = "{\"kind\": \"a\"}\n".repeat(1_000);
    lines.push_str("\n{\"kind\": 7}\n");
    env.file("jobs.ndjson", &lines);
    let output = env.run("job enqueue letters --from jobs.ndjson");
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.err.contains("jobs.ndjson:1002")
            && output.err.contains("1000 enqueued before the failure"),
        "{output:?}"
    );
}

#[test]
fn all_dead_letters_are_redriven_once() {
    let env = CliEnv::new();
    env.publish_task("task", "letters");
    let mut failed = String::new();
    for _ in 0..3 {
        let request = env.ok("request enqueue task");
        env.run_args(&["job", "work", "letters", "--once", "--", "false"]);
        assert_eq!(env.run(&format!("request watch {request}")).code, 7);
        failed = request;
    }
    assert_eq!(env.ok("dead-letter list").lines().count(), 4);
    assert!(
        env.run("dead-letter list --reason timed_out")
            .err
            .contains("no dead letters")
    );
    env.publish_pause("pause", 1);
    let output = env.run("dead-letter redrive --definition pause");
    assert_eq!(output.err.trim(), "0 redriven", "{output:?}");
    assert_eq!(env.run("dead-letter redrive --definition none").code, 3);
    assert!(
        env.run("dead-letter list --definition pause")
            .err
            .contains("no dead letters")
    );
    let output = env.run("dead-letter redrive --definition task --limit 1");
    assert_eq!(output.err.trim(), "1 redriven", "{output:?}");
    let output = env.run("dead-letter redrive --all");
    assert_eq!(output.err.trim(), "2 redriven", "{output:?}");
    assert_eq!(
        env.run("dead-letter redrive --all").err.trim(),
        "0 redriven"
    );
    let again = env.run(&format!("request redrive {failed}"));
    assert!(
        again.err.contains("an earlier redrive, request "),
        "{again:?}"
    );
    assert!(
        !again.err.contains("held by"),
        "the id is named once: {again:?}"
    );
}

/// The server may redrive fewer requests than a call asks for. The command used to end then, as if no more were left.
#[test]
fn redrive_goes_on_until_nothing_is_left() {
    let env = CliEnv::new();
    env.ok("workspace pause default");
    env.publish_pause("pause", 1);
    for _ in 0..3 {
        let request = env.ok("request enqueue pause");
        env.ok(&format!("request cancel {request}"));
    }
    env.ok("workspace set default --max-pending 2");
    let output = env.run("dead-letter redrive --all");
    assert_ne!(output.code, 0, "{output:?}");
    assert!(
        output.err.contains("backlog full") && output.err.contains("2 redriven before the failure"),
        "{output:?}"
    );
    env.ok("workspace set default --max-pending 9");
    let output = env.run("dead-letter redrive --all");
    assert_eq!(output.err.trim(), "1 redriven", "{output:?}");
}

#[test]
fn empty_lines_are_skipped() {
    let env = CliEnv::new();
    let mut lines = "{\"kind\": \"a\"}\n".repeat(1_000);
    lines.push_str("\n\n");
    env.file("jobs.ndjson", &lines);
    let output = env.run("job enqueue letters --from jobs.ndjson");
    assert_eq!(
        (output.code, output.err.trim()),
        (0, "1000 enqueued"),
        "{output:?}"
    );
    env.file("none.ndjson", "\n\n");
    let output = env.run("job enqueue letters --from none.ndjson");
    assert_eq!(
        (output.code, output.err.trim()),
        (0, "0 enqueued"),
        "{output:?}"
    );
}
