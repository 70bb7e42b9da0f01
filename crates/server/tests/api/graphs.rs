//! Executions of graphs: their nodes, and their jobs claimed by workers.

use crate::claims::{TIMEOUT, assert_nothing_leased, claim_and_disconnect};
use crate::fixtures::one_task;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::key::KeyScope;
use leasehold_core::limits::{END_REPORT_INTERVAL_MS, END_REPORTS_BURST};
use leasehold_core::{ExecutionEnd, ExecutionId, JobId, JsonText};
use leasehold_engine::Error;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::fresh_id;
use leasehold_store::graph::GraphStarted;
use leasehold_store::notification::Notification;
use leasehold_store::request::ClaimedRequest;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const CLAIM: &str = "/v1/queues/mine/claim";

/// Starts an execution of a graph, as the dispatcher does.
async fn execution(server: &TestServer, graph: Value) -> (KeyedWorkspace, ExecutionId) {
    let (workspace, claimed) = claimed(server, graph).await;
    (workspace, claimed.execution)
}

/// Starts an execution of a graph; returns the claim of its request.
async fn claimed(server: &TestServer, graph: Value) -> (KeyedWorkspace, ClaimedRequest) {
    let workspace = server.workspace(5).await;
    server.publish_graph(&workspace, graph).await;
    let claimed = server.enqueue_running(&workspace).await;
    (workspace, claimed)
}

fn two() -> Value {
    json!({
        "nodes": [
            { "id": "a/b", "type": "http", "url": "https://example.com" },
            { "id": "c", "type": "task", "queue": "mail" },
        ],
        "edges": [{ "from": "a/b", "to": "c" }],
    })
}

#[tokio::test]
async fn graph_unknown_to_the_engine_has_waiting_nodes() {
    let server = TestServer::new().await;
    let (workspace, execution) = execution(&server, two()).await;
    let path = workspace.path(&format!("/executions/{execution}/graph"));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    let waiting =
        |id: &str, kind: &str| json!({ "id": id, "type": kind, "state": "waiting", "attempts": 0 });
    let mut task = waiting("c", "task");
    task["queue"] = json!("mail");
    assert_eq!(shown["nodes"], json!([waiting("a/b", "http"), task]));
    assert_eq!(shown["edges"], json!([{ "from": "a/b", "to": "c" }]));
}

#[tokio::test]
async fn graph_has_the_engines_state_and_a_node_its_complete_output() {
    let server = TestServer::new().await;
    let (workspace, execution) = execution(&server, two()).await;
    let done = NodeRun {
        state: NodeState::Completed,
        attempts: 2,
        output_omitted: true,
        ..NodeRun::waiting("a/b")
    };
    let failed = NodeRun {
        state: NodeState::Failed,
        job: Some(JobId(7)),
        output: Some(JsonText::trusted("[1.50]".to_owned())),
        error: Some("no stamp".to_owned()),
        ..NodeRun::waiting("c")
    };
    server.engine.set_nodes(Ok(Some(vec![done, failed])));
    let path = workspace.path(&format!("/executions/{execution}/graph"));
    let answer = server.get(&path, &workspace.key).await;
    assert!(answer.text.contains("[1.50]"), "{}", answer.text);
    let shown = answer.expect(200);
    assert_eq!(shown["nodes"][0]["output_omitted"], true);
    assert_eq!(shown["nodes"][0]["attempts"], 2);
    assert_eq!(shown["nodes"][1]["state"], "failed");
    assert_eq!(shown["nodes"][1]["job"], 7);
    assert_eq!(shown["nodes"][1]["error"], "no stamp");
    let node = |id: &str| workspace.path(&format!("/executions/{execution}/nodes/{id}"));
    let whole = server.get(&node("a%2Fb"), &workspace.key).await.expect(200);
    assert_eq!(
        (&whole["output"], &whole["output_omitted"]),
        (&json!({ "of": 0 }), &Value::Null)
    );
    server
        .get(&node("d"), &workspace.key)
        .await
        .expect_problem("not_found", "");
    server
        .engine
        .set_nodes(Err(Error::Unavailable("away".to_owned())));
    server
        .get(&path, &workspace.key)
        .await
        .expect_problem("engine_unavailable", "");
}

#[tokio::test]
async fn binding_has_no_nodes() {
    let server = TestServer::new().await;
    let workspace = server.workspace(5).await;
    let execution = server.enqueue_running(&workspace).await.execution;
    let path = workspace.path(&format!("/executions/{execution}/graph"));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!((&shown["nodes"], &shown["edges"]), (&json!([]), &json!([])));
    let node = workspace.path(&format!("/executions/{execution}/nodes/a"));
    server
        .get(&node, &workspace.key)
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn http_worker_completes_a_node_and_its_execution() {
    let server = TestServer::new().await;
    let (workspace, claimed) = claimed(&server, one_task()).await;
    let execution = claimed.execution;
    let started = server.store.graph_start(&(&claimed).into()).await.unwrap();
    assert_eq!(started, GraphStarted::Started);
    let queues = vec!["mine".to_owned()];
    let key = server.key(KeyScope::Worker { queues }).await;
    let claim = json!({ "worker": "w", "max": 2 });
    let claimed = server
        .post("/v1/queues/mine/claim", &key, claim)
        .await
        .expect(200);
    let job = &claimed["jobs"][0];
    assert_eq!(job["payload"]["node_id"], "a");
    assert_eq!(job["payload"]["execution_id"], execution.to_string());
    let path = format!("/v1/jobs/{}", job["id"]);
    let shown = server.get(&path, &key).await.expect(200);
    assert_eq!(shown["execution"], execution.to_string());
    let cancel = server
        .post(&format!("{path}/cancel"), &key, Value::Null)
        .await;
    cancel.expect_problem("job_of_graph", "");
    let finish = json!({ "id": job["id"], "token": job["token"], "outcome": "completed", "result": { "sum": 3 } });
    let finish = json!({ "worker": "w", "finishes": [finish] });
    let finished = server
        .post("/v1/jobs/finish", &key, finish)
        .await
        .expect(200);
    assert_eq!(finished["finished"][0]["state"], "completed", "{finished}");
    let path = workspace.path(&format!("/executions/{execution}"));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(shown["status"], "COMPLETED");
}

/// Callers disconnect at every await point of a claim that waits for a node with one attempt. No worker has run it, so the next claim gets it and the
/// execution completes.
async fn disconnected_claim_of_a_node_costs_no_attempt(on: BackendKind) {
    let server = TestServer::on(on).await;
    let task =
        json!({ "id": "a", "type": "task", "queue": "mine", "retry": { "max_attempts": 1 } });
    for polls in 0.. {
        let (workspace, claimed) = claimed(&server, json!({ "nodes": [task] })).await;
        let hung_up = AtomicBool::new(false);
        let asking = async {
            let answered = claim_and_disconnect(&server, CLAIM, polls).await;
            hung_up.store(true, Ordering::SeqCst);
            answered
        };
        let (answered, ()) = tokio::join!(asking, async {
            let waits =
                async || server.state.waiting_claims() > 0 || hung_up.load(Ordering::SeqCst);
            assert!(eventually(TIMEOUT, waits).await);
            let started = server.store.graph_start(&(&claimed).into()).await.unwrap();
            assert_eq!(started, GraphStarted::Started);
        });
        if answered {
            assert!(polls >= 3, "it did not wait: {polls}");
            break;
        }
        assert_nothing_leased(&server, polls).await;
        complete(&server, &workspace, claimed.execution).await;
    }
}

/// Claims the node, asserts that it has no earlier attempt, and completes it and the execution. The abandoned claim may still be committing, so the node
/// can be leased and returned once more before this claim gets it.
async fn complete(server: &TestServer, workspace: &KeyedWorkspace, execution: ExecutionId) {
    let claim = json!({ "worker": "w", "max": 2 });
    let claimed = Mutex::new(Value::Null);
    let got_job = eventually(TIMEOUT, async || {
        let response = server.post(CLAIM, &server.admin, claim.clone()).await;
        let response = response.expect(200);
        let has_job = response["jobs"][0].is_object();
        *claimed.lock().unwrap() = response;
        has_job
    });
    assert!(got_job.await, "no job to claim");
    let claimed = claimed.into_inner().unwrap();
    let job = &claimed["jobs"][0];
    assert_eq!(job["attempt"], 1, "{claimed}");
    let finish = json!({ "id": job["id"], "token": job["token"], "outcome": "completed" });
    let finish = json!({ "worker": "w", "finishes": [finish] });
    let finished = server
        .post("/v1/jobs/finish", &server.admin, finish)
        .await
        .expect(200);
    assert_eq!(finished["finished"][0]["state"], "completed", "{finished}");
    let path = workspace.path(&format!("/executions/{execution}"));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(shown["status"], "COMPLETED");
}

#[tokio::test]
async fn disconnected_claim_of_a_node_costs_no_attempt_on_postgres() {
    disconnected_claim_of_a_node_costs_no_attempt(BackendKind::Postgres).await;
}

#[tokio::test]
async fn disconnected_claim_of_a_node_costs_no_attempt_on_sqlite() {
    disconnected_claim_of_a_node_costs_no_attempt(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn report_of_an_ended_execution_notifies_the_reconciler() {
    let server = TestServer::new().await;
    let (_, execution) = execution(&server, two()).await;
    let queues = vec!["mail".to_owned()];
    let key = server.key(KeyScope::Worker { queues }).await;
    let path = format!("/v1/executions/{execution}/ended");
    let (woken, answer) = tokio::join!(
        server.store.notification_wait(Notification::Ended),
        server.post(&path, &key, Value::Null),
    );
    let () = woken;
    assert_eq!(answer.status, 204, "{}", answer.text);
}

#[tokio::test]
async fn reports_of_ended_executions_are_limited_by_key_and_coalesced() {
    let server = TestServer::new().await;
    let workspace = server.workspace(5).await;
    let running = server.enqueue_running(&workspace).await.execution;
    let worker = |queue: &str| KeyScope::Worker {
        queues: vec![queue.to_owned()],
    };
    let key = server.key(worker("mine")).await;
    let other = server.key(worker("others")).await;
    let report = async |key: &str, execution: uuid::Uuid| {
        let path = format!("/v1/executions/{execution}/ended");
        server.post(&path, key, Value::Null).await
    };
    let begun = std::time::Instant::now();
    let mut accepted = 0;
    let limited = loop {
        // Many at once: one after the other may be slower than the limit. A known and an unknown execution are answered alike.
        let reports = (0..64).map(|number| match number % 2 {
            0 => report(&key, running.into()),
            _ => report(&key, fresh_id()),
        });
        let answers = futures::future::join_all(reports).await;
        let (ok, mut refused): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.status == 204);
        assert!(ok.iter().all(|answer| answer.text.is_empty()));
        accepted += ok.len();
        if let Some(answer) = refused.pop() {
            break answer;
        }
        assert!(begun.elapsed() < TIMEOUT, "no limit");
    };
    assert!(accepted >= END_REPORTS_BURST as usize, "{accepted}");
    assert_eq!(limited.header("retry-after"), "1");
    limited.expect_problem("rate_limited", "");
    let other = report(&other, fresh_id()).await;
    assert_eq!(other.status, 204, "another key has its own limit");

    let checks = store_calls(&server, "execution_list_running").await;
    let windows = begun.elapsed().as_millis() / u128::from(END_REPORT_INTERVAL_MS);
    assert!(
        checks <= (windows + 2) as f64,
        "{checks} in {windows} windows"
    );
}

/// Returns how often the server made this call to the store.
async fn store_calls(server: &TestServer, call: &str) -> f64 {
    let metrics = server.get("/metrics", &server.admin).await.text;
    let line = format!(r#"leasehold_store_calls_total{{call="{call}",outcome="ok"}} "#);
    let calls = metrics.lines().find_map(|found| found.strip_prefix(&line));
    calls.map_or(0.0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn report_of_unknown_or_foreign_execution_wakes_nothing() {
    let server = TestServer::new().await;
    let (_, running) = execution(&server, two()).await;
    let (_, ended) = execution(&server, two()).await;
    let end = ExecutionFinish {
        execution: ended,
        end: ExecutionEnd::Completed,
        error: None,
    };
    server.store.execution_finish("test", &[end]).await.unwrap();
    let bound = server.workspace(5).await;
    let bound = server.enqueue_running(&bound).await.execution;
    let worker = |queue: &str| KeyScope::Worker {
        queues: vec![queue.to_owned()],
    };
    let own = server.key(worker("mail")).await;
    let foreign = server.key(worker("bills")).await;
    let checked = async |key: &str, execution: ExecutionId| {
        let before = store_calls(&server, "execution_list_running").await;
        let path = format!("/v1/executions/{execution}/ended");
        let answer = server.post(&path, key, Value::Null).await;
        assert_eq!((answer.status, &*answer.text), (204, ""));
        let is_checked = async || store_calls(&server, "execution_list_running").await > before;
        assert!(eventually(TIMEOUT, is_checked).await);
    };
    checked(&own, fresh_id()).await;
    checked(&own, ended).await;
    checked(&own, bound).await;
    checked(&foreign, running).await;
    checked(&server.admin, fresh_id()).await;
    // The first notification is that of the report that counts: a check ends before the next begins.
    assert_eq!(store_calls(&server, "notify").await, 0.0);
    checked(&own, running).await;
    let is_notified = async || store_calls(&server, "notify").await > 0.0;
    assert!(eventually(TIMEOUT, is_notified).await);
    assert_eq!(store_calls(&server, "notify").await, 1.0);
}

#[tokio::test]
async fn internal_queues_are_hidden_from_all_keys() {
    let server = TestServer::new().await;
    let admin = &server.admin;
    let job = json!({ "kind": "http", "payload": {} });
    let jobs = "/v1/queues/leasehold:http/jobs";
    server
        .post(jobs, admin, job)
        .await
        .expect_problem("invalid_parameter", "queue");
    let claim = json!({ "worker": "w", "max": 1 });
    let claims = "/v1/queues/leasehold:http/claim";
    server
        .post(claims, admin, claim)
        .await
        .expect_problem("invalid_parameter", "queue");
    let key = json!({ "name": "n", "scope": { "kind": "worker", "queues": ["leasehold:delay"] } });
    server
        .post("/v1/keys", admin, key)
        .await
        .expect_problem("invalid", "/scope/queues/0");
    let workspace = server.workspace(1).await;
    let graph = json!({ "nodes": [{ "id": "a", "type": "task", "queue": "leasehold:http" }] });
    let versions = workspace.path(&format!("/definitions/{}/versions", workspace.definition));
    let version = json!({ "body": { "graph": graph } });
    server
        .post(&versions, &workspace.key, version)
        .await
        .expect_problem("invalid", "/body/graph/nodes/0/queue");
}
