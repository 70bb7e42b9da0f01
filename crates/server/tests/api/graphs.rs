//! Executions of graphs: what is shown of their nodes, and their jobs in the hands of workers.

use crate::claims::{PATIENCE, ask_and_go_away, nothing_is_leased};
use crate::everyone::one_task;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::key::KeyScope;
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_engine::Error;
use leasehold_store::graph::GraphStarted;
use leasehold_store::request::ClaimedRequest;
use leasehold_store::wake::Wake;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

const CLAIM: &str = "/v1/queues/mine/claim";

/// An execution of a graph, as the dispatcher leaves it.
async fn execution(ground: &TestServer, graph: Value) -> (KeyedWorkspace, ExecutionId) {
    let (site, claimed) = claimed(ground, graph).await;
    (site, claimed.execution)
}

/// The same, with the claim of its request.
async fn claimed(ground: &TestServer, graph: Value) -> (KeyedWorkspace, ClaimedRequest) {
    let site = ground.workspace(5).await;
    ground.publish_graph(&site, graph).await;
    let claimed = ground.running(&site).await;
    (site, claimed)
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
async fn a_graph_that_no_engine_knows_has_not_begun() {
    let ground = TestServer::new().await;
    let (site, execution) = execution(&ground, two()).await;
    let path = site.path(&format!("/executions/{execution}/graph"));
    let shown = ground.get(&path, &site.key).await.expect(200);
    let waiting =
        |id: &str, kind: &str| json!({ "id": id, "type": kind, "state": "waiting", "attempts": 0 });
    let mut task = waiting("c", "task");
    task["queue"] = json!("mail");
    assert_eq!(shown["nodes"], json!([waiting("a/b", "http"), task]));
    assert_eq!(shown["edges"], json!([{ "from": "a/b", "to": "c" }]));
}

#[tokio::test]
async fn a_graph_is_shown_as_the_engine_knows_it_and_a_node_with_its_whole_output() {
    let ground = TestServer::new().await;
    let (site, execution) = execution(&ground, two()).await;
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
    ground.engine.set_nodes(Ok(Some(vec![done, failed])));
    let path = site.path(&format!("/executions/{execution}/graph"));
    let answer = ground.get(&path, &site.key).await;
    assert!(answer.text.contains("[1.50]"), "{}", answer.text);
    let shown = answer.expect(200);
    assert_eq!(shown["nodes"][0]["output_omitted"], true);
    assert_eq!(shown["nodes"][0]["attempts"], 2);
    assert_eq!(shown["nodes"][1]["state"], "failed");
    assert_eq!(shown["nodes"][1]["job"], 7);
    assert_eq!(shown["nodes"][1]["error"], "no stamp");
    let node = |id: &str| site.path(&format!("/executions/{execution}/nodes/{id}"));
    let whole = ground.get(&node("a%2Fb"), &site.key).await.expect(200);
    assert_eq!(
        (&whole["output"], &whole["output_omitted"]),
        (&json!({ "of": 0 }), &Value::Null)
    );
    ground
        .get(&node("d"), &site.key)
        .await
        .refused("not_found", "");
    ground
        .engine
        .set_nodes(Err(Error::Unavailable("away".to_owned())));
    ground
        .get(&path, &site.key)
        .await
        .refused("engine_unavailable", "");
}

#[tokio::test]
async fn a_binding_has_no_nodes() {
    let ground = TestServer::new().await;
    let site = ground.workspace(5).await;
    let execution = ground.running(&site).await.execution;
    let path = site.path(&format!("/executions/{execution}/graph"));
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!((&shown["nodes"], &shown["edges"]), (&json!([]), &json!([])));
    let node = site.path(&format!("/executions/{execution}/nodes/a"));
    ground.get(&node, &site.key).await.refused("not_found", "");
}

#[tokio::test]
async fn a_worker_over_http_ends_a_node_and_the_execution_with_it() {
    let ground = TestServer::new().await;
    let (site, claimed) = claimed(&ground, one_task()).await;
    let execution = claimed.execution;
    let started = ground.store.graph_start(&(&claimed).into()).await.unwrap();
    assert_eq!(started, GraphStarted::Started);
    let queues = vec!["mine".to_owned()];
    let key = ground.key(KeyScope::Worker { queues }).await;
    let claim = json!({ "worker": "w", "max": 2 });
    let claimed = ground
        .post("/v1/queues/mine/claim", &key, claim)
        .await
        .expect(200);
    let job = &claimed["jobs"][0];
    assert_eq!(job["payload"]["node_id"], "a");
    assert_eq!(job["payload"]["execution_id"], execution.to_string());
    let path = format!("/v1/jobs/{}", job["id"]);
    let shown = ground.get(&path, &key).await.expect(200);
    assert_eq!(shown["execution"], execution.to_string());
    let cancel = ground
        .post(&format!("{path}/cancel"), &key, Value::Null)
        .await;
    cancel.refused("job_of_graph", "");
    let finish = json!({ "id": job["id"], "token": job["token"], "outcome": "completed", "result": { "sum": 3 } });
    let finish = json!({ "worker": "w", "finishes": [finish] });
    let finished = ground
        .post("/v1/jobs/finish", &key, finish)
        .await
        .expect(200);
    assert_eq!(finished["finished"][0]["state"], "completed", "{finished}");
    let path = site.path(&format!("/executions/{execution}"));
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!(shown["status"], "COMPLETED");
}

/// Callers hang up at every point of a claim that waits for a node which may be tried once. Nobody has worked on it, so it is there for the next who
/// asks, and the execution completes.
async fn who_hangs_up_while_it_waits_for_a_node_costs_no_attempt(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let task =
        json!({ "id": "a", "type": "task", "queue": "mine", "retry": { "max_attempts": 1 } });
    for polls in 0.. {
        let (site, claimed) = claimed(&ground, json!({ "nodes": [task] })).await;
        let hung_up = AtomicBool::new(false);
        let asking = async {
            let answered = ask_and_go_away(&ground, CLAIM, polls).await;
            hung_up.store(true, Ordering::SeqCst);
            answered
        };
        let (answered, ()) = tokio::join!(asking, async {
            let waits =
                async || ground.state.waiting_claims() > 0 || hung_up.load(Ordering::SeqCst);
            assert!(eventually(PATIENCE, waits).await);
            let started = ground.store.graph_start(&(&claimed).into()).await.unwrap();
            assert_eq!(started, GraphStarted::Started);
        });
        if answered {
            assert!(polls >= 3, "it did not wait: {polls}");
            break;
        }
        nothing_is_leased(&ground, polls).await;
        complete(&ground, &site, claimed.execution).await;
    }
}

/// A worker comes, finds the node as nobody had touched it, and completes it, and with it the execution.
async fn complete(ground: &TestServer, site: &KeyedWorkspace, execution: ExecutionId) {
    let claim = json!({ "worker": "w", "max": 2 });
    let claimed = ground.post(CLAIM, &ground.admin, claim).await.expect(200);
    let job = &claimed["jobs"][0];
    assert_eq!(job["attempt"], 1, "{claimed}");
    let finish = json!({ "id": job["id"], "token": job["token"], "outcome": "completed" });
    let finish = json!({ "worker": "w", "finishes": [finish] });
    let finished = ground
        .post("/v1/jobs/finish", &ground.admin, finish)
        .await
        .expect(200);
    assert_eq!(finished["finished"][0]["state"], "completed", "{finished}");
    let path = site.path(&format!("/executions/{execution}"));
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!(shown["status"], "COMPLETED");
}

#[tokio::test]
async fn who_hangs_up_while_it_waits_for_a_node_costs_no_attempt_on_postgres() {
    who_hangs_up_while_it_waits_for_a_node_costs_no_attempt(BackendKind::Postgres).await;
}

#[tokio::test]
async fn who_hangs_up_while_it_waits_for_a_node_costs_no_attempt_on_sqlite() {
    who_hangs_up_while_it_waits_for_a_node_costs_no_attempt(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn a_word_that_an_execution_has_ended_wakes_whoever_follows() {
    let ground = TestServer::new().await;
    let queues = vec!["mine".to_owned()];
    let key = ground.key(KeyScope::Worker { queues }).await;
    let path = format!("/v1/executions/{}/ended", uuid::Uuid::nil());
    let (woken, answer) = tokio::join!(
        ground.store.wake_wait(Wake::Ended),
        ground.post(&path, &key, Value::Null),
    );
    let () = woken;
    assert_eq!(answer.status, 204, "{}", answer.text);
}

#[tokio::test]
async fn queues_of_leasehold_itself_are_open_to_nobody() {
    let ground = TestServer::new().await;
    let admin = &ground.admin;
    let job = json!({ "kind": "http", "payload": {} });
    let jobs = "/v1/queues/leasehold:http/jobs";
    ground
        .post(jobs, admin, job)
        .await
        .refused("invalid_parameter", "queue");
    let claim = json!({ "worker": "w", "max": 1 });
    let claims = "/v1/queues/leasehold:http/claim";
    ground
        .post(claims, admin, claim)
        .await
        .refused("invalid_parameter", "queue");
    let key = json!({ "name": "n", "scope": { "kind": "worker", "queues": ["leasehold:delay"] } });
    ground
        .post("/v1/keys", admin, key)
        .await
        .refused("invalid", "/scope/queues/0");
    let site = ground.workspace(1).await;
    let graph = json!({ "nodes": [{ "id": "a", "type": "task", "queue": "leasehold:http" }] });
    let versions = site.path(&format!("/definitions/{}/versions", site.definition));
    let version = json!({ "body": { "graph": graph } });
    ground
        .post(&versions, &site.key, version)
        .await
        .refused("invalid", "/body/graph/nodes/0/queue");
}
