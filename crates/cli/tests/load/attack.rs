//! Attacks of a tenant with an ordinary workspace key, or of a worker with an ordinary worker key. Each repeats until a deadline and returns the statuses it got.

use crate::tenant::{Tenant, document, text};
use leasehold_core::RequestId;
use leasehold_testkit::HttpResponse;
use serde_json::{Value, json};
use std::time::Instant;

/// The queue of the worker key.
pub(crate) const WORKER_QUEUE: &str = "attacked";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attack {
    /// Forty levels of `allOf` with two references to the next level: 2^40 comparisons.
    DoublingSchema,
    /// A chain of 1,131 references with `unevaluatedProperties`, which overflowed the stack.
    ChainedSchema,
    /// Sixty patterns of sixty letter classes each, and back-references.
    Patterns,
    /// URLs with 900 copies of 256 KiB of params.
    Templates,
    /// Batches of 16 MiB that consist of tiny objects.
    TinyObjects,
    /// Lists of forty versions of 0.8 MB each.
    VersionLists,
    /// Five requests of 31 KiB for a graph of 999 tasks, and one call that is rejected.
    WideGraph,
    /// Sixty lists at once.
    ManyLists,
    /// Reads of the oldest changes of an empty workspace.
    OldestChanges,
    /// A worker key that stores jobs of 250 KiB, and claims a thousand of them.
    LargeJobs,
}

pub(crate) const ALL: [Attack; 10] = [
    Attack::DoublingSchema,
    Attack::ChainedSchema,
    Attack::Patterns,
    Attack::Templates,
    Attack::TinyObjects,
    Attack::VersionLists,
    Attack::WideGraph,
    Attack::ManyLists,
    Attack::OldestChanges,
    Attack::LargeJobs,
];

/// Repeats an attack until the deadline. Returns the statuses of its calls; a closed connection counts as 0.
pub(crate) async fn run(
    attack: Attack,
    tenant: &Tenant,
    worker: &Tenant,
    deadline: Instant,
) -> Vec<u16> {
    let mut statuses = Vec::new();
    let definition = tenant.define(&format!("{attack:?}-{}", unique())).await;
    while Instant::now() < deadline {
        let answers = match attack {
            Attack::DoublingSchema => publish_schema(tenant, &definition, doubling(40)).await,
            Attack::ChainedSchema => publish_schema(tenant, &definition, chained(1_131)).await,
            Attack::Patterns => publish_schema(tenant, &definition, patterns()).await,
            Attack::Templates => run_templates(tenant, &definition).await,
            Attack::TinyObjects => vec![enqueue_tiny_objects(tenant, &definition).await],
            Attack::VersionLists => list_versions(tenant, &definition).await,
            Attack::WideGraph => run_wide_graph(tenant, &definition).await,
            Attack::ManyLists => at_once(60, tenant, "/requests?limit=1000").await,
            Attack::OldestChanges => at_once(4, tenant, "/changes?from=oldest&limit=1000").await,
            Attack::LargeJobs => store_and_claim_jobs(worker).await,
        };
        statuses.extend(answers.iter().map(status));
    }
    statuses
}

type Answer = std::io::Result<HttpResponse>;

fn status(answer: &Answer) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}

fn unique() -> String {
    leasehold_store::fresh_id::<RequestId>().to_string()
}

fn binding() -> Value {
    json!({ "binding": { "workflow_type": "Order", "task_queue": "orders" } })
}

async fn publish_schema(tenant: &Tenant, definition: &str, schema: Value) -> Vec<Answer> {
    let version = json!({ "body": binding(), "params_schema": schema });
    let published = tenant.publish(definition, &version).await;
    let mut answers = vec![published];
    if status(&answers[0]) == 201 {
        answers.push(tenant.enqueue(definition, r#"{"a": "x"}"#).await);
        answers.push(tenant.enqueue(definition, "1").await);
    }
    answers
}

fn doubling(levels: usize) -> Value {
    let mut schemas = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        schemas.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
    }
    schemas.insert(format!("l{levels}"), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/l0", "$defs": schemas })
}

fn chained(links: usize) -> Value {
    let mut schemas = serde_json::Map::new();
    for link in 0..links {
        let next = format!("#/$defs/l{}", link + 1);
        let schema = json!({ "$ref": next, "unevaluatedProperties": false });
        schemas.insert(format!("l{link}"), schema);
    }
    schemas.insert(format!("l{links}"), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/l0", "$defs": schemas })
}

fn patterns() -> Value {
    let classes =
        (0..60).map(|number| json!({ "pattern": format!("^\\p{{L}}{{{}}}$", 60 + number) }));
    let back_reference = json!({ "pattern": "^(a+)+\\1$" });
    let all: Vec<Value> = classes.chain([back_reference]).collect();
    json!({ "allOf": all })
}

async fn run_templates(tenant: &Tenant, definition: &str) -> Vec<Answer> {
    let url = format!("https://example.com/?x={}", "{/params}".repeat(900));
    let call = |number: usize| json!({ "id": format!("n{number}"), "type": "http", "url": url });
    let nodes: Vec<Value> = (0..6).map(call).collect();
    let graph = json!({ "body": { "graph": { "nodes": nodes, "edges": [] } } });
    let published = tenant.publish(definition, &graph).await;
    let params = format!(r#"{{"x": "{}"}}"#, "y".repeat(255 * 1024));
    vec![published, tenant.enqueue(definition, &params).await]
}

async fn enqueue_tiny_objects(tenant: &Tenant, definition: &str) -> Answer {
    let _ = tenant
        .publish(definition, &json!({ "body": binding() }))
        .await;
    let params = format!("[{}]", vec!["{}"; 80 * 1024].join(","));
    let request = format!(r#"{{"definition": "{definition}", "params": {params}}}"#);
    let body = format!(r#"{{"requests": [{}]}}"#, vec![request; 66].join(","));
    tenant
        .call("POST", "/requests/batch", Some(body.as_bytes()))
        .await
}

async fn list_versions(tenant: &Tenant, definition: &str) -> Vec<Answer> {
    let tail = format!("/definitions/{definition}/versions?limit=1000");
    let first = tenant.call("GET", &tail, None).await;
    let held = first.as_ref().ok().filter(|answer| answer.status == 200);
    let held = held.map_or(0, |answer| {
        document(answer)["items"].as_array().unwrap().len()
    });
    if held == 0 {
        let queue = own_queue(tenant);
        let node = |number: usize| {
            let input = json!({ "value": vec![0; 400] });
            json!({ "id": format!("n{number}"), "type": "task", "queue": queue, "input": input })
        };
        let nodes: Vec<Value> = (0..900).map(node).collect();
        let version = json!({ "body": { "graph": { "nodes": nodes, "edges": [] } } });
        let mut answers = Vec::new();
        for _ in 0..40 {
            answers.push(tenant.publish(definition, &version).await);
        }
        return answers;
    }
    let (second, third) = tokio::join!(
        tenant.call("GET", &tail, None),
        tenant.call("GET", &tail, None)
    );
    vec![first, second, third]
}

/// Returns the name of a queue that no other workspace owns.
fn own_queue(tenant: &Tenant) -> String {
    format!("q-{}", tenant.workspace)
}

async fn run_wide_graph(tenant: &Tenant, definition: &str) -> Vec<Answer> {
    let queue = own_queue(tenant);
    let task =
        |number: usize| json!({ "id": format!("t{number}"), "type": "task", "queue": queue });
    let mut nodes: Vec<Value> = (0..998).map(task).collect();
    nodes.push(json!({ "id": "call", "type": "http", "url": "http://127.0.0.1/" }));
    let graph = json!({ "body": { "graph": { "nodes": nodes, "edges": [] } } });
    let mut answers = vec![tenant.publish(definition, &graph).await];
    let params = format!(r#"{{"x": "{}"}}"#, "y".repeat(31 * 1024));
    for _ in 0..5 {
        answers.push(tenant.enqueue(definition, &params).await);
    }
    answers
}

async fn at_once(count: usize, tenant: &Tenant, tail: &str) -> Vec<Answer> {
    let calls = (0..count).map(|_| tenant.call("GET", tail, None));
    futures::future::join_all(calls).await
}

async fn store_and_claim_jobs(worker: &Tenant) -> Vec<Answer> {
    let payload = "z".repeat(250 * 1024);
    let jobs = vec![json!({ "kind": "k", "payload": payload }); 60];
    let body = json!({ "jobs": jobs }).to_string();
    let path = format!("/v1/queues/{WORKER_QUEUE}/jobs/batch");
    let stored = worker.call_path("POST", &path, Some(body.as_bytes())).await;
    let claim = json!({ "worker": "w", "max": 1_000, "lease_ms": 1_000 }).to_string();
    let path = format!("/v1/queues/{WORKER_QUEUE}/claim");
    let claimed = worker
        .call_path("POST", &path, Some(claim.as_bytes()))
        .await;
    vec![stored, claimed]
}

/// Creates a worker key for [`WORKER_QUEUE`] from the response of the keys route.
pub(crate) fn worker_of(tenant: &Tenant, created: &Value) -> Tenant {
    Tenant {
        key: text(&created["secret"]),
        ..tenant.clone()
    }
}
