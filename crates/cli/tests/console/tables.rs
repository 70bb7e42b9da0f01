//! What people see, kept as it was seen. `LEASEHOLD_BLESS=1` keeps what is seen now.

use crate::cli_env::{CliEnv, steady};
use leasehold_testkit::assert_kept;
use std::path::Path;

fn kept(name: &str, seen: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/console/seen")
        .join(name);
    assert_kept(&file, seen);
}

/// Commands and what they print, one below the other.
struct Talk {
    ground: CliEnv,
    text: String,
}

impl Talk {
    fn say(&mut self, words: &str) -> String {
        let said = self.ground.says(words);
        self.text.push_str(&format!("$ leasehold {words}\n"));
        self.text.push_str(&said.out);
        self.text.push_str(&said.err);
        if said.code != 0 {
            self.text.push_str(&format!("[exit {}]\n", said.code));
        }
        self.text.push('\n');
        said.out.trim().to_owned()
    }
}

#[test]
fn a_day_with_requests_looks_like_this() {
    let mut talk = Talk {
        ground: CliEnv::new(),
        text: String::new(),
    };
    talk.say("workspace list");
    talk.say("definition list");
    talk.say("request list");
    talk.ground.file(
        "order.json",
        r#"{"nodes": [{"id": "pause", "type": "delay", "milliseconds": 1},
            {"id": "charge", "type": "task", "queue": "payments", "retry": {"max_attempts": 1}}],
            "edges": [{"from": "pause", "to": "charge"}]}"#,
    );
    talk.say("definition check order.json");
    talk.say("definition publish order order.json");
    talk.say("definition list");
    talk.say("definition versions order");
    talk.say("workspace create acme --plan pro");
    talk.say("workspace set acme --limit 8");
    talk.say("workspace pause acme");
    talk.say("workspace get acme");
    let request = talk.say("request enqueue order --key first --priority 5");
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
    talk.ground.says_all(&failed);
    talk.say(&format!("request watch {request}"));
    talk.say(&format!("request get {request}"));
    talk.say(&format!("request why {request}"));
    talk.say("dead-letter list");
    let again = talk.say(&format!("request redrive {request}"));
    talk.ground
        .says_all(&["job", "work", "payments", "--once", "--", "echo", "paid"]);
    talk.say(&format!("request watch {again}"));
    talk.say("request list --status completed");
    talk.say("execution list");
    let about = talk.ground.ok(&format!("request get {again} -o json"));
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    let execution = about["execution"].as_str().unwrap();
    talk.say(&format!("execution graph {execution}"));
    talk.say(&format!("execution node {execution} charge"));
    talk.say("request enqueue order --in 1h");
    talk.say("request list --status pending");
    kept("requests.txt", &steady(&talk.text));
}

#[test]
fn a_day_with_jobs_looks_like_this() {
    let mut talk = Talk {
        ground: CliEnv::new(),
        text: String::new(),
    };
    talk.say("queue list");
    talk.say("job list");
    talk.say("queue set letters --limit 3 --lease 10s --max-attempts 2 --timeout 1m");
    let job = talk.say("job enqueue letters welcome --priority 3 --key once");
    talk.say("job enqueue letters welcome --key once");
    talk.say(&format!("job get {job}"));
    talk.say("job list letters");
    talk.say("queue get letters");
    talk.say("queue list");
    talk.say("queue pause letters");
    talk.say("queue total-limit");
    talk.say("queue total-limit 50");
    talk.say(&format!("job cancel {job}"));
    talk.say("key list");
    talk.say("key me");
    kept("jobs.txt", &steady(&talk.text));
}
