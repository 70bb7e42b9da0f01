//! Secrets and payloads never appear in the log, at any level.

use crate::database;
use crate::first_start::{address, key};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use leasehold_testkit::{HttpConnection, Process};
use serde_json::{Value, json};

const PASSWORD: &str = "hush-hush-password";
const API_KEY: &str = "hush-hush-api-key";
const PAYLOAD: &str = "hush-hush-payload";
/// Part of every secret in these tests.
const MARK: &str = "hush";

const CONSTRAINT_ADD: &str = include_str!("sql/constraint_add.sql");

/// Calls the API as the administrator.
struct Caller {
    connection: HttpConnection,
    key: String,
}

impl Caller {
    async fn new(serve: &Process, program: &Program) -> Self {
        Self {
            connection: HttpConnection::open(address(serve)).await.unwrap(),
            key: key(program),
        }
    }

    async fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let call = self
            .connection
            .call("POST", path, &self.key, Some(body.as_bytes()));
        let answer = call.await.unwrap();
        let body = serde_json::from_str(&answer.text()).unwrap_or_default();
        (answer.status, body)
    }

    /// Sends invalid bodies, invalid keys and unexpected headers.
    async fn send_invalid_calls(&mut self, path: &str) {
        for body in [
            &b"{\"params\": {\"card\": \"hush-hush"[..],
            b"\"hush-hush\"",
            b"{\"hush-hush\": 1}",
            b"{\"definition\": \"hush-hush\", \"params\": \"hush-hush\"}",
            b"\xffhush-hush\x00",
        ] {
            let call = self.connection.call("POST", path, &self.key, Some(body));
            let status = call.await.unwrap().status;
            assert!((400..500).contains(&status), "{status}");
        }
        for wrong in [
            "lh_admin_hushhushhushhushhushhushhushhushhushhushhus",
            "hush hush",
        ] {
            let call = self.connection.call("GET", "/v1/me", wrong, None);
            assert_eq!(call.await.unwrap().status, 401);
        }
        let strange = "GET /v1/me?hush=hush HTTP/1.1\r\nhost: hush\r\ncookie: hush\r\n\r\n";
        self.connection.send(strange.as_bytes()).await.unwrap();
        self.connection.read_response().await.unwrap();
    }
}

/// Asserts that no line contains the mark or the administrator key.
fn assert_no_leak(serve: &Process, key: &str) {
    let leaks: Vec<String> = serve
        .lines()
        .into_iter()
        .filter(|line| line.contains(MARK) || line.contains(key))
        .map(|line| line.chars().take(300).collect())
        .collect();
    let few = &leaks[..leaks.len().min(5)];
    assert!(leaks.is_empty(), "{} lines: {few:#?}", leaks.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_api_key_or_payload_is_logged_even_at_trace() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    // The test servers accept any password and any API key.
    let url = database
        .url()
        .replace("postgres@", &format!("postgres:{PASSWORD}@"));
    assert!(url.contains(PASSWORD));
    let temporal = format!("http://{}", namespace.address());
    // Both formats share a directory, so the key is created once.
    let program = Program::new(&url, &temporal, &namespace.name)
        .set("temporal.api_key", API_KEY)
        .set("log.level", "trace");
    for format in ["text", "json"] {
        let program = program.clone().set("log.format", format);
        let mut serve = program.start();
        let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
        let mut caller = Caller::new(&serve, &program).await;
        let requests = format!("/v1/workspaces/{}/requests", workspace.workspace);
        let new = json!({"definition": workspace.order.definition, "idempotency_key": "hush-hush-key",
            "params": {"do": "wait", "card": PAYLOAD}});
        assert_eq!(caller.post(&requests, &new).await.0, 201);
        let mut other = new.clone();
        other["params"] = json!({"card": "hush-hush-other"});
        assert_eq!(caller.post(&requests, &other).await.0, 409);
        caller.send_invalid_calls(&requests).await;
        let id = workspace.all().await[0].id;
        let request = workspace.dispatched(id).await;
        namespace.terminate(request.execution.unwrap(), "enough");
        workspace.until("ended", |counts| counts.failed == 1).await;
        program::stop(&mut serve);
        assert_no_leak(&serve, &caller.key);
        assert!(program::lines(&serve, "Dispatched execution") > 0);
    }
}

/// PostgreSQL puts the whole row, including params, into the details of an error.
#[tokio::test(flavor = "multi_thread")]
async fn rejected_row_is_not_logged() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("log.level", "trace");
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let (sql, connection) =
        tokio_postgres::connect(&database.url_in("leasehold"), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    sql.batch_execute(CONSTRAINT_ADD).await.unwrap();
    let mut caller = Caller::new(&serve, &program).await;
    let requests = format!("/v1/workspaces/{}/requests", workspace.workspace);
    let new = json!({"definition": workspace.order.definition, "priority": 13, "params": {"card": PAYLOAD}});
    assert_eq!(caller.post(&requests, &new).await.0, 500);
    program::stop(&mut serve);
    assert_no_leak(&serve, &caller.key);
    assert_eq!(program::lines(&serve, "call failed"), 1, "{}", serve.log());
    assert!(
        program::lines(&serve, "by_hand") > 0,
        "the constraint is named"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_payload_or_result_of_a_job_or_a_node_is_logged_even_at_trace() {
    for format in ["text", "json"] {
        let program = Program::bare()
            .set("log.level", "trace")
            .set("log.format", format);
        let mut serve = program.start();
        let mut caller = Caller::new(&serve, &program).await;
        let (_, workspace) = caller
            .post("/v1/workspaces", &json!({"name": "acme", "plan": "PRO"}))
            .await;
        let workspace = format!("/v1/workspaces/{}", workspace["id"].as_str().unwrap());
        let definitions = format!("{workspace}/definitions");
        let (_, created) = caller.post(&definitions, &json!({"name": "order"})).await;
        let definition = created["id"].as_str().unwrap();
        let graph = json!({"nodes": [{"id": "a", "type": "task", "queue": "letters", "input": {"note": PAYLOAD, "all": {"$from": "/params/card"}}}], "edges": []});
        let versions = format!("{definitions}/{definition}/versions");
        let (status, response) = caller
            .post(&versions, &json!({"body": {"graph": graph}}))
            .await;
        assert_eq!(status, 201, "{response}");
        let new = json!({"definition": definition, "params": {"card": PAYLOAD}});
        let requests = format!("{workspace}/requests");
        let (status, request) = caller.post(&requests, &new).await;
        assert_eq!(status, 201, "{request}");
        let plain =
            json!({"kind": "letter", "payload": {"card": PAYLOAD}, "dedup_key": "hush-hush-key"});
        let jobs = "/v1/queues/letters/jobs";
        assert_eq!(caller.post(jobs, &plain).await.0, 201);
        caller.send_invalid_calls(jobs).await;
        let mut done = 0;
        while done < 2 {
            let claim = json!({"worker": "w", "max": 10, "wait_ms": 5_000});
            let (status, claimed) = caller.post("/v1/queues/letters/claim", &claim).await;
            assert_eq!(status, 200, "{claimed}");
            for job in claimed["jobs"].as_array().unwrap() {
                let (id, token) = (&job["id"], &job["token"]);
                let seen =
                    json!({"worker": "w", "id": id, "token": token, "progress": {"at": PAYLOAD}});
                caller.post("/v1/jobs/progress", &seen).await;
                let finish = json!({"worker": "w", "finishes": [{"id": id, "token": token, "outcome": "completed", "result": {"sum": PAYLOAD}}]});
                let (status, response) = caller.post("/v1/jobs/finish", &finish).await;
                assert_eq!(status, 200, "{response}");
                done += 1;
            }
        }
        program::wait_for_lines(&serve, "execution ended", 1).await;
        program::stop(&mut serve);
        assert_no_leak(&serve, &caller.key);
    }
}
