//! Bulk work: files of JSON lines, and redriving all dead letters.

use crate::cli_env::{CliEnv, program, run};

#[test]
fn a_file_of_lines_is_enqueued_whole_and_in_order() {
    let ground = CliEnv::new();
    ground.ok("workspace pause default");
    ground.publish_pause("pause", 1);
    let lines: String = (0..2_500)
        .map(|number| {
            format!("{{\"params\": {{\"n\": {number}}}, \"idempotency_key\": \"k{number}\"}}\n")
        })
        .collect();
    ground.file("many.ndjson", &lines);
    let said = ground.says("request enqueue pause --from many.ndjson");
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.err.trim(), "2500 enqueued");
    let state: serde_json::Value =
        serde_json::from_str(&ground.ok("workspace get default -o json")).unwrap();
    assert_eq!(state["requests"]["pending"], 2_500);
    // Again, as JSON and from standard input: the keys make it the same.
    let again = program(
        ground.folder(),
        &["request", "enqueue", "pause", "--from", "-", "-o", "json"],
    );
    let again = run(again, &lines);
    let answers: Vec<serde_json::Value> = again
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2_500);
    assert!(answers.iter().all(|answer| answer["inserted"] == false));
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&ground.ok("request list --all -o json")).unwrap();
    assert_eq!(listed.len(), 2_500);
    let few = ground.says("request list");
    assert_eq!(few.out.lines().count(), 51, "{}", few.out);
    assert!(few.err.contains("there are more"), "{few:?}");
}

#[test]
fn a_wrong_line_is_named_and_what_was_done_before_it_is_told() {
    let ground = CliEnv::new();
    let mut lines: String = "{\"kind\": \"a\"}\n".repeat(1_000);
    lines.push_str("\n{\"kind\": 7}\n");
    ground.file("jobs.ndjson", &lines);
    let said = ground.says("job enqueue letters --from jobs.ndjson");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("jobs.ndjson:1002") && said.err.contains("1000 were enqueued before"),
        "{said:?}"
    );
}

#[test]
fn all_dead_letters_are_redriven_once() {
    let ground = CliEnv::new();
    ground.publish_task("task", "letters");
    for _ in 0..3 {
        let request = ground.ok("request enqueue task");
        ground.says_all(&["job", "work", "letters", "--once", "--", "false"]);
        assert_eq!(ground.says(&format!("request watch {request}")).code, 7);
    }
    assert_eq!(ground.ok("dead-letter list").lines().count(), 4);
    assert!(
        ground
            .says("dead-letter list --reason timed_out")
            .err
            .contains("there are no dead letters")
    );
    let said = ground.says("dead-letter redrive --limit 1");
    assert_eq!(said.err.trim(), "1 enqueued anew", "{said:?}");
    let said = ground.says("dead-letter redrive --all");
    assert_eq!(said.err.trim(), "2 enqueued anew", "{said:?}");
    assert_eq!(
        ground.says("dead-letter redrive --all").err.trim(),
        "0 enqueued anew"
    );
}

#[test]
fn empty_lines_are_nothing_wherever_they_are() {
    let ground = CliEnv::new();
    let mut lines = "{\"kind\": \"a\"}\n".repeat(1_000);
    lines.push_str("\n\n");
    ground.file("jobs.ndjson", &lines);
    let said = ground.says("job enqueue letters --from jobs.ndjson");
    assert_eq!(
        (said.code, said.err.trim()),
        (0, "1000 enqueued"),
        "{said:?}"
    );
    ground.file("none.ndjson", "\n\n");
    let said = ground.says("job enqueue letters --from none.ndjson");
    assert_eq!((said.code, said.err.trim()), (0, "0 enqueued"), "{said:?}");
}
