//! Invalid input against every route with a body: the problem names the invalid value, nothing is changed, no value is logged.

use crate::fixtures::{AccessFixture, CallerKind, problem};
use leasehold_api::{Code, Problem};
use leasehold_server::routes_with_body;
use leasehold_store::Page;
use leasehold_store::audit::AuditFilter;
use leasehold_store::execution::ExecutionFilter;
use leasehold_store::job::JobFilter;
use leasehold_store::request::RequestFilter;
use leasehold_testkit::logs;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Text that must never be logged.
const MARK: &str = "hush-7f3a";

type ValidBody = (&'static str, &'static str, Value);

/// Returns every route with a body, with a valid body.
pub(crate) fn valid_bodies(fixture: &AccessFixture) -> Vec<ValidBody> {
    let mut all = workspace_bodies(fixture);
    all.extend(job_bodies());
    all
}

fn workspace_bodies(fixture: &AccessFixture) -> Vec<ValidBody> {
    let request = json!({ "definition": fixture.id("definition"), "params": { "a": MARK }, "priority": 1,
        "run_at": "2030-01-01T00:00:00Z", "idempotency_key": MARK, "dedupe_window_ms": 1000 });
    let retry =
        json!({ "max_attempts": 2, "base_ms": 5, "factor": 1.5, "max_ms": 9, "jitter": 0.5 });
    let graph = json!({ "nodes": [
        { "type": "task", "id": "a", "queue": "q", "kind": "k", "input": { "to": MARK }, "timeout_ms": 5, "retry": retry },
        { "type": "http", "id": "b", "method": "POST", "url": "https://example.com/x", "headers": { "x-a": "b" } },
        { "type": "delay", "id": "c", "milliseconds": 5 },
    ], "edges": [{ "from": "a", "to": "b" }] });
    let version = json!({ "body": { "graph": graph }, "params_schema": { "type": "object" }, "execution_timeout_ms": 5 });
    let key = json!({ "name": "n", "scope": { "kind": "worker", "queues": ["a"] }, "access": "read", "payloads": "hidden",
        "expires_in_ms": 60_000 });
    let rotation = json!({ "overlap_ms": 5, "expires_in_ms": 60_000 });
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
        ("POST", "/v1/keys/{key}/rotate", rotation),
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

fn job_bodies() -> Vec<ValidBody> {
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
    let sharing = json!({ "shared_with": "all" });
    vec![
        ("PATCH", "/v1/queues/{queue}", queue),
        ("PUT", "/v1/queues/{queue}/sharing", sharing),
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

/// Fields that accept any JSON: only nested values can be invalid.
const ANY_JSON: [&str; 5] = ["params", "payload", "progress", "params_schema", "input"];
/// Values that only a field of any JSON accepts.
fn invalid_values() -> Vec<String> {
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

/// Dumps all objects of the store that can be listed.
async fn dump_store(fixture: &AccessFixture) -> String {
    let store = &fixture.server.store;
    let workspace = fixture.id("workspace").parse().unwrap();
    let definition = fixture.id("definition").parse().unwrap();
    let executions = ExecutionFilter {
        workspace,
        status: None,
        definition: None,
    };
    let (requests, jobs) = (RequestFilter::default(), JobFilter::default());
    let mut keys = store.key_list(None, Page::first(100)).await.unwrap();
    // A rejected call is a use of its key too.
    keys.iter_mut().for_each(|key| key.last_used_at = None);
    let audit = AuditFilter::default();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        store.audit_list(&audit, Page::first(100)).await.unwrap(),
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
        keys,
        store.queue_list(&Page::first(100)).await.unwrap(),
        store.job_list(&jobs, Page::first(100)).await.unwrap(),
        store.job_limit().await.unwrap(),
    )
}

struct RouteTest<'a> {
    fixture: &'a AccessFixture,
    before: String,
    route: (&'static str, &'static str),
}

impl RouteTest<'_> {
    /// Sends the body and asserts that it was rejected and changed nothing.
    async fn assert_rejected(&self, body: impl Into<Vec<u8>>) -> Problem {
        let (method, path) = self.route;
        let body = body.into();
        let shown: String = String::from_utf8_lossy(&body).chars().take(200).collect();
        let answer = self
            .fixture
            .send(method, path, CallerKind::Admin, "application/json", body)
            .await;
        assert!(
            (400..500).contains(&answer.status),
            "{method} {path} {shown}: {}",
            answer.status
        );
        assert_eq!(
            dump_store(self.fixture).await,
            self.before,
            "{method} {path} {shown}"
        );
        problem(&answer)
    }

    /// Asserts that the problem names this field.
    fn assert_names(&self, problem: &Problem, field: &str, body: &str) {
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
fn every_route_with_a_body_is_tested() {
    let (known, there) = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let fixture = AccessFixture::new().await;
        let known: BTreeSet<(String, String)> = valid_bodies(&fixture)
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
async fn valid_bodies_are_accepted() {
    let count = valid_bodies(&AccessFixture::new().await).len();
    for index in 0..count {
        let fixture = AccessFixture::new().await;
        let (method, path, body) = valid_bodies(&fixture).swap_remove(index);
        let json = "application/json";
        let answer = fixture
            .send(method, path, CallerKind::Admin, json, body.to_string())
            .await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn malformed_json_is_rejected_and_changes_nothing() {
    logs::capture();
    let fixture = AccessFixture::new().await;
    let before = dump_store(&fixture).await;
    for (method, path, valid) in valid_bodies(&fixture) {
        let test = RouteTest {
            fixture: &fixture,
            before: before.clone(),
            route: (method, path),
        };
        let valid = valid.to_string();
        let half = valid[..valid.len() / 2].to_owned();
        let twice = format!("{valid}{valid}");
        let deep = nested(100_000);
        let deep_inside = valid.replacen('{', &format!("{{\"x\": {}, ", nested(10_000)), 1);
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
            test.assert_rejected(body).await;
        }
        let mut not_utf8 = valid.clone().into_bytes();
        not_utf8.extend([0xff, 0xfe]);
        test.assert_rejected(not_utf8).await;
        test.assert_rejected(format!("\0{valid}")).await;
        for other in ["[]", "7", "\"text\"", "true"] {
            test.assert_rejected(other).await;
        }
        let plain = fixture.send(method, path, CallerKind::Admin, "text/plain", valid.clone());
        assert_eq!(plain.await.status, 415, "{method} {path}");
        let huge = vec![b' '; 33 * 1024 * 1024];
        let answer = fixture
            .send(method, path, CallerKind::Admin, "application/json", huge)
            .await;
        assert_eq!(problem(&answer).code, Code::BodyTooLarge, "{path}");
        assert_eq!(dump_store(&fixture).await, before, "{method} {path}");
    }
    assert!(!logs::all().contains(MARK), "{}", logs::all());
}

#[tokio::test]
async fn unknown_or_invalid_fields_are_named_and_nothing_changes() {
    logs::capture();
    let fixture = AccessFixture::new().await;
    let before = dump_store(&fixture).await;
    for (method, path, valid) in valid_bodies(&fixture) {
        let test = RouteTest {
            fixture: &fixture,
            before: before.clone(),
            route: (method, path),
        };
        for (pointer, names) in all_pointers(&valid) {
            let object =
                pointer.is_empty() || valid.pointer(&pointer).is_some_and(Value::is_object);
            let free = names.iter().any(|name| ANY_JSON.contains(&name.as_str()));
            if object && !free {
                let mut strange = valid.clone();
                strange.pointer_mut(&pointer).unwrap()["strange_field"] = json!(1);
                let body = strange.to_string();
                let problem = test.assert_rejected(body.as_str()).await;
                test.assert_names(&problem, "strange_field", &body);
            }
            let Some(last) = names.last().filter(|_| !free) else {
                continue;
            };
            for wrong in invalid_values() {
                // An error text is stored without NUL characters instead of being rejected.
                if last == "error" && wrong.contains("u0000") {
                    continue;
                }
                let body = replace_at(&valid, &pointer, &wrong);
                let problem = test.assert_rejected(body.as_str()).await;
                // A node is named by its index until its type is known.
                let node = ["nodes/0", "nodes/1", "nodes/2"];
                let node = node.into_iter().find(|node| pointer.contains(node));
                let name = node.unwrap_or(last);
                if !wrong.starts_with('1') {
                    test.assert_names(&problem, name, &body);
                }
            }
        }
    }
    assert!(!logs::all().contains(MARK), "{}", logs::all());
}

#[tokio::test]
async fn user_json_that_cannot_be_stored_is_rejected() {
    let fixture = AccessFixture::new().await;
    let before = dump_store(&fixture).await;
    for (method, path, valid) in valid_bodies(&fixture) {
        let test = RouteTest {
            fixture: &fixture,
            before: before.clone(),
            route: (method, path),
        };
        for (pointer, names) in all_pointers(&valid) {
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
                let body = replace_at(&valid, &pointer, wrong);
                let problem = test.assert_rejected(body.as_str()).await;
                if !wrong.contains("123456789012345678901234567890") {
                    test.assert_names(&problem, name, &body);
                }
            }
        }
    }
}

#[tokio::test]
async fn invalid_graphs_are_rejected_with_the_path() {
    let fixture = AccessFixture::new().await;
    let test = RouteTest {
        before: dump_store(&fixture).await,
        fixture: &fixture,
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
    for (graph, pointer) in graphs {
        let body = json!({ "body": { "graph": graph } }).to_string();
        let problem = test.assert_rejected(body.as_str()).await;
        test.assert_names(&problem, pointer, &body);
    }
}

/// Returns every JSON pointer of a document with the field names on its path; the whole document first.
fn all_pointers(document: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = vec![(String::new(), Vec::new())];
    let mut next = 0;
    while let Some((pointer, names)) = found.get(next).cloned() {
        next += 1;
        match document.pointer(&pointer) {
            Some(Value::Object(fields)) => {
                for name in fields.keys() {
                    let names = names.iter().cloned().chain([name.clone()]).collect();
                    found.push((format!("{pointer}/{name}"), names));
                }
            }
            Some(Value::Array(items)) if !items.is_empty() => {
                found.push((format!("{pointer}/0"), names));
            }
            _ => {}
        }
    }
    found
}

/// Returns the document's text with the value at a pointer replaced.
fn replace_at(document: &Value, pointer: &str, text: &str) -> String {
    let mut changed = document.clone();
    *changed.pointer_mut(pointer).unwrap() = json!("\u{1}here\u{1}");
    let mark = json!("\u{1}here\u{1}").to_string();
    changed.to_string().replacen(&mark, text, 1)
}
