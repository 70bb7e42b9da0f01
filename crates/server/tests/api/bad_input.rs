//! Bad input of every kind against every route that takes a body: a problem that names what is wrong, nothing changed, nothing told to the log.

use crate::everyone::{Everyone, Who, problem};
use leasehold_api::{Code, Problem};
use leasehold_server::routes_with_body;
use leasehold_store::Page;
use leasehold_store::execution::ExecutionFilter;
use leasehold_store::job::JobFilter;
use leasehold_store::request::RequestFilter;
use leasehold_testkit::logs;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What must never be in a log.
const MARK: &str = "hush-7f3a";

type Good = (&'static str, &'static str, Value);

/// Every route that takes a body, with a good one.
fn good_bodies(everyone: &Everyone) -> Vec<Good> {
    let mut all = of_workspaces(everyone);
    all.extend(of_jobs());
    all
}

fn of_workspaces(everyone: &Everyone) -> Vec<Good> {
    let request = json!({ "definition": everyone.id("definition"), "params": { "a": MARK }, "priority": 1,
        "run_at": "2030-01-01T00:00:00Z", "idempotency_key": MARK, "dedupe_window_ms": 1000 });
    let retry =
        json!({ "max_attempts": 2, "base_ms": 5, "factor": 1.5, "max_ms": 9, "jitter": 0.5 });
    let graph = json!({ "nodes": [
        { "type": "task", "id": "a", "queue": "q", "kind": "k", "input": { "to": MARK }, "timeout_ms": 5, "retry": retry },
        { "type": "http", "id": "b", "method": "POST", "url": "https://example.com/x", "headers": { "x-a": "b" } },
        { "type": "delay", "id": "c", "milliseconds": 5 },
    ], "edges": [{ "from": "a", "to": "b" }] });
    let version = json!({ "body": { "graph": graph }, "params_schema": { "type": "object" }, "execution_timeout_ms": 5 });
    let key = json!({ "name": "n", "scope": { "kind": "worker", "queues": ["a"] } });
    let workspace = json!({ "name": "n", "plan": "FREE", "max_concurrent_executions": 3 });
    let change = json!({ "plan": "PRO", "max_concurrent_executions": 3, "paused": true });
    let redrive = json!({ "reason": "cancelled", "limit": 5 });
    let definitions = "/v1/workspaces/{workspace}/definitions";
    let versions = "/v1/workspaces/{workspace}/definitions/{definition}/versions";
    let requests = "/v1/workspaces/{workspace}/requests";
    let batch = "/v1/workspaces/{workspace}/requests/batch";
    let cancel = "/v1/workspaces/{workspace}/requests/{request}/cancel";
    let dead = "/v1/workspaces/{workspace}/dead-letters/redrive";
    vec![
        ("POST", "/v1/keys", key),
        ("POST", "/v1/workspaces", workspace),
        ("PATCH", "/v1/workspaces/{workspace}", change),
        ("POST", definitions, json!({ "name": "n" })),
        ("POST", versions, version),
        ("POST", requests, request.clone()),
        ("POST", batch, json!({ "requests": [request] })),
        ("POST", cancel, json!({ "force": true })),
        ("POST", dead, redrive),
    ]
}

fn of_jobs() -> Vec<Good> {
    let backoff = json!({ "base_ms": 1, "factor": 2.0, "max_ms": 5, "jitter": 0.1 });
    let job = json!({ "kind": "k", "payload": { "a": MARK }, "priority": 1, "run_in_ms": 5, "max_attempts": 2, "timeout_ms": 10,
        "backoff": backoff, "dedup_key": MARK, "dedup_window_ms": 7 });
    let queue = json!({ "limit": 5, "paused": true, "keep_completed": true, "lease_ms": 1000, "max_attempts": 5, "timeout_ms": 6,
        "backoff": backoff });
    let claim = json!({ "worker": "w", "max": 1, "lease_ms": 1000, "wait_ms": 1 });
    let renew = json!({ "worker": "w", "claims": [{ "id": 1, "token": 1 }], "lease_ms": 1000 });
    let finish = json!({ "id": 1, "token": 1, "outcome": "failed", "error": MARK, "retry": true, "after_ms": 3 });
    let finishes = json!({ "worker": "w", "finishes": [finish] });
    let progress = json!({ "worker": "w", "id": 1, "token": 1, "progress": { "a": MARK } });
    vec![
        ("PATCH", "/v1/queues/{queue}", queue),
        ("POST", "/v1/queues/{queue}/jobs", job.clone()),
        (
            "POST",
            "/v1/queues/{queue}/jobs/batch",
            json!({ "jobs": [job] }),
        ),
        ("POST", "/v1/queues/{queue}/claim", claim),
        ("POST", "/v1/jobs/renew", renew),
        ("POST", "/v1/jobs/finish", finishes),
        ("POST", "/v1/jobs/progress", progress),
        ("PUT", "/v1/job-limit", json!({ "limit": 5 })),
    ]
}

/// Fields that take any JSON, and so are bad only inside.
const ANY_JSON: [&str; 5] = ["params", "payload", "progress", "params_schema", "input"];
/// What no field but those of any JSON takes.
fn wrong_values() -> Vec<String> {
    let texts = [
        r#"{"strange": 1}"#,
        r#"[["x"]]"#,
        "-1.5",
        "1e400",
        "123456789012345678901234567890",
        r#""a\u0000b""#,
    ];
    let mut wrong: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    wrong.push(nested(100));
    wrong
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Everything there is, as far as it can be listed.
async fn everything(everyone: &Everyone) -> String {
    let store = &everyone.ground.store;
    let workspace = everyone.id("workspace").parse().unwrap();
    let definition = everyone.id("definition").parse().unwrap();
    let executions = ExecutionFilter {
        workspace,
        status: None,
        definition: None,
    };
    let (requests, jobs) = (RequestFilter::default(), JobFilter::default());
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        store.workspace_list(Page::first(100)).await.unwrap(),
        store
            .definition_list(workspace, Page::first(100))
            .await
            .unwrap(),
        store
            .version_list(workspace, definition, Page::first(100))
            .await
            .unwrap(),
        store
            .request_list(&requests, Page::first(100))
            .await
            .unwrap(),
        store
            .execution_list(&executions, Page::first(100))
            .await
            .unwrap(),
        store.key_list(None, Page::first(100)).await.unwrap(),
        store.queue_list(&Page::first(100)).await.unwrap(),
        store.job_list(&jobs, Page::first(100)).await.unwrap(),
        store.job_limit().await.unwrap(),
    )
}

struct Trial<'a> {
    everyone: &'a Everyone,
    before: String,
    route: (&'static str, &'static str),
}

impl Trial<'_> {
    /// Sends it and asserts that it was refused and changed nothing.
    async fn refused(&self, body: impl Into<Vec<u8>>) -> Problem {
        let (method, path) = self.route;
        let body = body.into();
        let shown: String = String::from_utf8_lossy(&body).chars().take(200).collect();
        let answer = self
            .everyone
            .send(method, path, Who::Admin, "application/json", body)
            .await;
        assert!(
            (400..500).contains(&answer.status),
            "{method} {path} {shown}: {}",
            answer.status
        );
        assert_eq!(
            everything(self.everyone).await,
            self.before,
            "{method} {path} {shown}"
        );
        problem(&answer)
    }

    /// Asserts that the problem names this field.
    fn names(&self, problem: &Problem, field: &str, body: &str) {
        let path = problem.path.clone().unwrap_or_default();
        let body: String = body.chars().take(200).collect();
        assert!(
            path.contains(field) || problem.detail.contains(field),
            "{:?} {field}: {problem:?} for {body}",
            self.route
        );
    }
}

#[test]
fn every_route_that_takes_a_body_is_tried() {
    let (known, there) = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let everyone = Everyone::new().await;
        let known: BTreeSet<(String, String)> = good_bodies(&everyone)
            .into_iter()
            .map(|(method, path, _)| (method.to_owned(), path.to_owned()))
            .collect();
        let there: BTreeSet<(String, String)> = routes_with_body()
            .into_iter()
            .map(|(method, path)| (method.to_string(), path))
            .collect();
        (known, there)
    });
    assert_eq!(known, there);
}

#[tokio::test]
async fn good_bodies_are_taken() {
    let count = good_bodies(&Everyone::new().await).len();
    for index in 0..count {
        let everyone = Everyone::new().await;
        let (method, path, body) = good_bodies(&everyone).swap_remove(index);
        let json = "application/json";
        let answer = everyone
            .send(method, path, Who::Admin, json, body.to_string())
            .await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_no_json_is_refused_and_changes_nothing() {
    logs::keep();
    let everyone = Everyone::new().await;
    let before = everything(&everyone).await;
    for (method, path, good) in good_bodies(&everyone) {
        let trial = Trial {
            everyone: &everyone,
            before: before.clone(),
            route: (method, path),
        };
        let good = good.to_string();
        let half = good[..good.len() / 2].to_owned();
        let twice = format!("{good}{good}");
        let deep = nested(100_000);
        let deep_inside = good.replacen('{', &format!("{{\"x\": {}, ", nested(10_000)), 1);
        for body in [
            "{",
            "nul",
            "[1,2",
            "'a'",
            &half,
            &twice,
            &deep,
            &deep_inside,
        ] {
            trial.refused(body).await;
        }
        let mut not_utf8 = good.clone().into_bytes();
        not_utf8.extend([0xff, 0xfe]);
        trial.refused(not_utf8).await;
        trial.refused(format!("\0{good}")).await;
        for other in ["[]", "7", "\"text\"", "true"] {
            trial.refused(other).await;
        }
        let plain = everyone.send(method, path, Who::Admin, "text/plain", good.clone());
        assert_eq!(plain.await.status, 415, "{method} {path}");
        let huge = vec![b' '; 33 * 1024 * 1024];
        let answer = everyone
            .send(method, path, Who::Admin, "application/json", huge)
            .await;
        assert_eq!(problem(&answer).code, Code::BodyTooLarge, "{path}");
        assert_eq!(everything(&everyone).await, before, "{method} {path}");
    }
    assert!(!logs::all().contains(MARK), "{}", logs::all());
}

#[tokio::test]
async fn fields_that_are_unknown_or_wrong_are_named_and_nothing_changes() {
    logs::keep();
    let everyone = Everyone::new().await;
    let before = everything(&everyone).await;
    for (method, path, good) in good_bodies(&everyone) {
        let trial = Trial {
            everyone: &everyone,
            before: before.clone(),
            route: (method, path),
        };
        for (place, names) in places(&good) {
            let object = place.is_empty() || good.pointer(&place).is_some_and(Value::is_object);
            let free = names.iter().any(|name| ANY_JSON.contains(&name.as_str()));
            if object && !free {
                let mut strange = good.clone();
                strange.pointer_mut(&place).unwrap()["strange_field"] = json!(1);
                let body = strange.to_string();
                let problem = trial.refused(body.as_str()).await;
                trial.names(&problem, "strange_field", &body);
            }
            let Some(last) = names.last().filter(|_| !free) else {
                continue;
            };
            for wrong in wrong_values() {
                // What went wrong is kept without such characters: better so than not to know that it did.
                if last == "error" && wrong.contains("u0000") {
                    continue;
                }
                let body = with(&good, &place, &wrong);
                let problem = trial.refused(body.as_str()).await;
                // A node is known by its place until its type is.
                let node = ["nodes/0", "nodes/1", "nodes/2"];
                let node = node.into_iter().find(|node| place.contains(node));
                let name = node.unwrap_or(last);
                if !wrong.starts_with('1') {
                    trial.names(&problem, name, &body);
                }
            }
        }
    }
    assert!(!logs::all().contains(MARK), "{}", logs::all());
}

#[tokio::test]
async fn json_of_the_user_is_refused_where_it_could_not_be_kept() {
    let everyone = Everyone::new().await;
    let before = everything(&everyone).await;
    for (method, path, good) in good_bodies(&everyone) {
        let trial = Trial {
            everyone: &everyone,
            before: before.clone(),
            route: (method, path),
        };
        for (place, names) in places(&good) {
            let Some(name) = names
                .last()
                .filter(|name| ANY_JSON.contains(&name.as_str()))
            else {
                continue;
            };
            let large = format!("\"{}\"", "x".repeat(600 * 1024));
            let bad = [
                r#"{"b": ["a\u0000b"]}"#,
                &nested(100),
                "[123456789012345678901234567890]",
                &large,
            ];
            for wrong in bad {
                let body = with(&good, &place, wrong);
                let problem = trial.refused(body.as_str()).await;
                if !wrong.contains("123456789012345678901234567890") {
                    trial.names(&problem, name, &body);
                }
            }
        }
    }
}

#[tokio::test]
async fn graphs_that_cannot_run_are_refused_with_the_place() {
    let everyone = Everyone::new().await;
    let trial = Trial {
        before: everything(&everyone).await,
        everyone: &everyone,
        route: (
            "POST",
            "/v1/workspaces/{workspace}/definitions/{definition}/versions",
        ),
    };
    let task = |id: &str| json!({ "type": "task", "id": id, "queue": "q" });
    let edge = |from: &str, to: &str| json!({ "from": from, "to": to });
    let (a, b) = (task("a"), task("b"));
    let many: Vec<Value> = (0..1001).map(|n| task(&n.to_string())).collect();
    let graphs = [
        (json!({ "nodes": [] }), "nodes"),
        (json!({ "nodes": [a, a] }), "nodes/1/id"),
        (
            json!({ "nodes": [a], "edges": [edge("a", "c")] }),
            "edges/0/to",
        ),
        (
            json!({ "nodes": [a, b], "edges": [edge("a", "b"), edge("a", "b")] }),
            "edges/1",
        ),
        (
            json!({ "nodes": [a, b], "edges": [edge("a", "b"), edge("b", "a")] }),
            "edges",
        ),
        (json!({ "nodes": [a], "edges": [edge("a", "a")] }), "edges"),
        (json!({ "nodes": many }), "nodes"),
        (
            json!({ "nodes": [{ "type": "delay", "id": "a", "milliseconds": 31_622_400_001u64 }] }),
            "nodes/0/milliseconds",
        ),
        (json!({ "nodes": [{ "type": "task", "id": "a" }] }), "queue"),
        (
            json!({ "nodes": [{ "type": "magic", "id": "a" }] }),
            "magic",
        ),
        (
            json!({ "nodes": [{ "type": "task", "id": "", "queue": "q" }] }),
            "nodes/0/id",
        ),
    ];
    for (graph, place) in graphs {
        let body = json!({ "body": { "graph": graph } }).to_string();
        let problem = trial.refused(body.as_str()).await;
        trial.names(&problem, place, &body);
    }
}

/// Every place of a document as a JSON pointer, with the names on the way; the whole first.
fn places(document: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = vec![(String::new(), Vec::new())];
    let mut next = 0;
    while let Some((place, names)) = found.get(next).cloned() {
        next += 1;
        match document.pointer(&place) {
            Some(Value::Object(fields)) => {
                for name in fields.keys() {
                    let names = names.iter().cloned().chain([name.clone()]).collect();
                    found.push((format!("{place}/{name}"), names));
                }
            }
            Some(Value::Array(items)) if !items.is_empty() => {
                found.push((format!("{place}/0"), names));
            }
            _ => {}
        }
    }
    found
}

/// The document's text with this text at a place.
fn with(document: &Value, place: &str, text: &str) -> String {
    let mut changed = document.clone();
    *changed.pointer_mut(place).unwrap() = json!("\u{1}here\u{1}");
    let mark = json!("\u{1}here\u{1}").to_string();
    changed.to_string().replacen(&mark, text, 1)
}
