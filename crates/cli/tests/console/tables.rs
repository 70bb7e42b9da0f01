//! Compares command output with `seen/`. `LEASEHOLD_BLESS=1` rewrites the files.

use crate::TIMEOUT;
use crate::cli_env::{CliEnv, normalize};
use leasehold_testkit::{assert_snapshot_file, wait_until};
use std::path::Path;

fn assert_snapshot(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/console/seen")
        .join(name);
    assert_snapshot_file(&file, actual);
}

/// Commands and their output.
struct Transcript {
    env: CliEnv,
    text: String,
}

impl Transcript {
    fn run(&mut self, words: &str) -> String {
        let output = self.env.run(words);
        self.text.push_str(&format!("$ leasehold {words}\n"));
        self.text.push_str(&output.out);
        self.text.push_str(&output.err);
        if output.code != 0 {
            self.text.push_str(&format!("[exit {}]\n", output.code));
        }
        self.text.push('\n');
        output.out.trim().to_owned()
    }
}

#[test]
fn request_commands() {
    let mut transcript = Transcript {
        env: CliEnv::new(),
        text: String::new(),
    };
    transcript.run("workspace list");
    transcript.run("definition list");
    transcript.run("request list");
    transcript.env.file(
        "order.json",
        r#"{"nodes": [{"id": "pause", "type": "delay", "milliseconds": 1},
            {"id": "charge", "type": "task", "queue": "payments", "retry": {"max_attempts": 1}}],
            "edges": [{"from": "pause", "to": "charge"}]}"#,
    );
    transcript.run("definition check order.json");
    transcript.run("definition publish order order.json");
    transcript.run("definition list");
    transcript.run("definition versions order");
    transcript.run("workspace create acme --plan pro");
    transcript.run("workspace set acme --limit 8");
    transcript.run("workspace pause acme");
    transcript.run("workspace get acme");
    let request = transcript.run("request enqueue order --key first --priority 5");
    let failed = [
        "job",
        "work",
        "payments",
        "--once",
        "--",
        "sh",
        "-c",
        "echo card refused >&2; exit 1",
    ];
    transcript.env.run_args(&failed);
    transcript.run(&format!("request watch {request}"));
    transcript.run(&format!("request get {request}"));
    transcript.run(&format!("request why {request}"));
    transcript.run("dead-letter list");
    let redriven = transcript.run(&format!("request redrive {request}"));
    transcript
        .env
        .run_args(&["job", "work", "payments", "--once", "--", "echo", "paid"]);
    transcript.run(&format!("request watch {redriven}"));
    transcript.run("request list --status completed");
    transcript.run("execution list");
    let about = transcript
        .env
        .ok(&format!("request get {redriven} -o json"));
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    let execution = about["execution"].as_str().unwrap();
    transcript.run(&format!("execution graph {execution}"));
    transcript.run(&format!("execution node {execution} charge"));
    transcript.run("request enqueue order --in 1h");
    transcript.run("request list --status pending");
    assert_snapshot("requests.txt", &normalize(&transcript.text));
}

#[test]
fn job_commands() {
    let mut transcript = Transcript {
        env: CliEnv::new(),
        text: String::new(),
    };
    transcript.run("queue list");
    transcript.run("job list");
    transcript.run("queue set letters --limit 3 --lease 10s --max-attempts 2 --timeout 1m");
    let job = transcript.run("job enqueue letters welcome --priority 3 --key once");
    transcript.run("job enqueue letters welcome --key once");
    transcript.run(&format!("job get {job}"));
    transcript.run("job list letters");
    transcript.run("queue get letters");
    transcript.run("queue list");
    transcript.run("queue pause letters");
    transcript.run("queue total-limit");
    transcript.run("queue total-limit 50");
    transcript.run(&format!("job cancel {job}"));
    // The server records the use of a key a second later.
    let recorded = || transcript.env.ok("key me -o json").contains("last_used_at");
    assert!(wait_until(TIMEOUT, recorded));
    transcript.run("key list");
    transcript.run("key me");
    assert_snapshot("jobs.txt", &normalize(&transcript.text));
}
