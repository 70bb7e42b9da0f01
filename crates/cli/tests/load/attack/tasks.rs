//! Attacks with large results: of jobs, and of tasks whose outputs a later node reads.

use super::compute::tiny_objects;
use super::{Attacker, Record};
use crate::tenant::{Tenant, document};
use leasehold_testkit::sized;
use serde_json::{Value, json};

/// Results of one call, of 240 KiB each. One owner may send 16 MiB at once.
fn results() -> usize {
    sized(16, 60)
}

/// A graph with many tasks, and a node that reads the outputs of all of them.
pub(super) fn fan_in(tenant: &Tenant) -> Value {
    let queue = tenant.queue();
    let task =
        |number: usize| json!({ "id": format!("t{number}"), "type": "task", "queue": queue });
    let mut nodes: Vec<Value> = (0..results()).map(task).collect();
    let last = |number: usize| json!({ "$from": format!("/nodes/t{number}/0") });
    let input: Vec<Value> = (0..results()).map(last).collect();
    nodes.push(json!({ "id": "all", "type": "task", "queue": queue, "input": input }));
    let edge = |number: usize| json!({ "from": format!("t{number}"), "to": "all" });
    let edges: Vec<Value> = (0..results()).map(edge).collect();
    json!({ "body": { "graph": { "nodes": nodes, "edges": edges } } })
}

/// Stores small jobs, claims them, and finishes all in one call.
pub(super) async fn finish_large_jobs(attacker: &Attacker, record: &mut Record) {
    let queue = attacker.tenant.queue();
    let jobs = vec![json!({ "kind": "k", "payload": 1 }); results()];
    let body = json!({ "jobs": jobs }).to_string();
    let path = format!("/v1/queues/{queue}/jobs/batch");
    let stored = attacker
        .worker
        .call_path("POST", &path, Some(body.as_bytes()));
    record.add("enqueue", &stored.await);
    claim_and_finish(attacker, record).await;
}

/// Enqueues a request, and finishes the tasks that are ready: those of the graph with outputs that its last node reads.
pub(super) async fn run_fan_in(attacker: &Attacker, record: &mut Record) {
    let enqueued = attacker.tenant.enqueue(&attacker.definition, "1").await;
    record.add("enqueue", &enqueued);
    claim_and_finish(attacker, record).await;
}

/// Claims the jobs of the attacker's queue, and finishes them with large results.
async fn claim_and_finish(attacker: &Attacker, record: &mut Record) {
    let (worker, queue) = (&attacker.worker, attacker.tenant.queue());
    let claim = json!({ "worker": "w", "max": results(), "lease_ms": 60_000, "wait_ms": 5_000 });
    let path = format!("/v1/queues/{queue}/claim");
    let claim = claim.to_string();
    let claimed = worker
        .call_path("POST", &path, Some(claim.as_bytes()))
        .await;
    record.add("claim", &claimed);
    let Some(claimed) = claimed.ok().filter(|answer| answer.status == 200) else {
        return;
    };
    let result = tiny_objects();
    let finish = |job: &Value| {
        let (id, token) = (&job["id"], &job["token"]);
        format!(r#"{{"id": {id}, "token": {token}, "outcome": "completed", "result": {result}}}"#)
    };
    let finishes: Vec<String> = document(&claimed)["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(finish)
        .collect();
    if finishes.is_empty() {
        return;
    }
    let body = format!(r#"{{"worker": "w", "finishes": [{}]}}"#, finishes.join(","));
    let finished = worker.call_path("POST", "/v1/jobs/finish", Some(body.as_bytes()));
    record.add("finish", &finished.await);
}
