//! Attacks that make the server compute: schemas, templates, graphs and bodies.

use super::{Attacker, Record};
use crate::tenant::{Tenant, document, text};
use leasehold_core::limits::NODE_MAX_POINTERS;
use leasehold_testkit::sized;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::interval;

/// Items of the params that are compared with each branch of a schema: a tenth of the steps that a validation may take.
const COMPARED: usize = 2_000;
/// Bytes of the params of a graph that are copied.
const COPIED_BYTES: usize = 255 * 1024;

pub(super) fn binding() -> Value {
    json!({ "binding": { "workflow_type": "Order", "task_queue": "orders" } })
}

pub(super) async fn publish_schema(
    call: &'static str,
    attacker: &Attacker,
    schema: Value,
    record: &mut Record,
) {
    let version = json!({ "body": binding(), "params_schema": schema });
    let published = attacker.tenant.publish(&attacker.definition, &version);
    record.add(call, &published.await);
}

pub(super) fn doubling(levels: usize) -> Value {
    let mut schemas = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        schemas.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
    }
    schemas.insert(format!("l{levels}"), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/l0", "$defs": schemas })
}

pub(super) fn chained(links: usize) -> Value {
    let mut schemas = serde_json::Map::new();
    for link in 0..links {
        let next = format!("#/$defs/l{}", link + 1);
        let schema = json!({ "$ref": next, "unevaluatedProperties": false });
        schemas.insert(format!("l{link}"), schema);
    }
    schemas.insert(format!("l{links}"), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/l0", "$defs": schemas })
}

pub(super) fn large_patterns() -> Value {
    let pattern = |number: usize| json!({ "pattern": format!("^\\p{{L}}{{{}}}$", 60 + number) });
    let all: Vec<Value> = (0..60).map(pattern).collect();
    json!({ "allOf": all })
}

pub(super) fn back_reference() -> Value {
    json!({ "pattern": "^(a+)+\\1$" })
}

/// A schema that compares each item of the params hundreds of times.
pub(super) fn costly_schema() -> Value {
    let branch = |number: usize| json!({ "items": { "enum": [[number]] } });
    let branches: Vec<Value> = (0..600).map(branch).collect();
    json!({ "anyOf": branches })
}

pub(super) async fn enqueue_costly_params(attacker: &Attacker, record: &mut Record) {
    let items: Vec<usize> = (0..COMPARED).collect();
    let params = json!([items, items]).to_string();
    let enqueued = attacker.tenant.enqueue(&attacker.definition, &params);
    record.add("enqueue", &enqueued.await);
}

/// Nodes of a graph that copy the params as often as they may: into their URLs, or into their inputs.
pub(super) fn copying_nodes(tenant: &Tenant, into_urls: bool) -> Vec<Value> {
    let queue = tenant.queue();
    let node = |number: usize| {
        let id = format!("n{number}");
        match into_urls {
            true => copying_call(&id, NODE_MAX_POINTERS),
            false => {
                let input = vec![json!({ "$from": "/params" }); NODE_MAX_POINTERS];
                json!({ "id": id, "type": "task", "queue": queue, "input": input })
            }
        }
    };
    (0..6).map(node).collect()
}

fn copying_call(id: &str, pointers: usize) -> Value {
    let url = format!("https://example.com/?x={}", "{/params}".repeat(pointers));
    json!({ "id": id, "type": "http", "url": url })
}

/// Publishes what is refused, and runs what is accepted until it has failed.
pub(super) async fn run_templates(attacker: &Attacker, record: &mut Record) {
    let (tenant, refused) = (&attacker.tenant, vec![copying_call("n", 900)]);
    let refused = json!({ "body": { "graph": { "nodes": refused } } });
    let published = tenant.publish(&attacker.definition, &refused).await;
    record.add("publish too many pointers", &published);
    let params = format!("\"{}\"", "y".repeat(COPIED_BYTES));
    for definition in [&attacker.definition, &attacker.other] {
        run_until_failed(tenant, definition, &params, 1, record).await;
    }
}

/// Enqueues requests, and waits until the first of them has failed.
async fn run_until_failed(
    tenant: &Tenant,
    definition: &str,
    params: &str,
    count: usize,
    record: &mut Record,
) {
    let mut first = None;
    for _ in 0..count {
        let enqueued = tenant.enqueue(definition, params).await;
        record.add("enqueue", &enqueued);
        if let Some(answer) = enqueued.ok().filter(|answer| answer.status == 201) {
            first.get_or_insert(text(&document(&answer)["id"]));
        }
    }
    let mut pace = interval(Duration::from_millis(50));
    while let Some(id) = &first {
        pace.tick().await;
        let request = tenant.request(id).await;
        if request["status"] == "FAILED" {
            record.count("failed request", 200);
            return;
        }
        assert_ne!(request["status"], "COMPLETED", "{request}");
    }
}

/// A document of 240 KiB that consists of tiny objects.
pub(super) fn tiny_objects() -> String {
    format!("[{}]", vec!["{}"; 80 * 1024].join(","))
}

/// Publishes what is parsed completely, because a graph may have whitespace, and then refused.
pub(super) async fn publish_large(attacker: &Attacker, record: &mut Record) {
    // In the usual size the bodies of all attackers fit into the share of one workspace.
    let large = vec!["x".repeat(200_000); sized(15, 70)];
    let node =
        json!({ "id": "n", "type": "task", "queue": attacker.tenant.queue(), "input": large });
    let graph = json!({ "body": { "graph": { "nodes": [node] } } });
    let published = attacker.tenant.publish(&attacker.definition, &graph).await;
    record.add("publish graph", &published);
    publish_schema("publish schema", attacker, json!({ "enum": large }), record).await;
}

pub(super) async fn enqueue_tiny_objects(attacker: &Attacker, record: &mut Record) {
    let params = tiny_objects();
    let definition = &attacker.definition;
    let request = format!(r#"{{"definition": "{definition}", "params": {params}}}"#);
    let requests = vec![request; sized(16, 66)].join(",");
    let body = format!(r#"{{"requests": [{requests}]}}"#);
    let tenant = &attacker.tenant;
    let batch = tenant.call("POST", "/requests/batch", Some(body.as_bytes()));
    record.add("batch", &batch.await);
}

/// 998 tasks that get all params, and a call that is refused.
pub(super) fn wide_graph(tenant: &Tenant) -> Value {
    let queue = tenant.queue();
    let task =
        |number: usize| json!({ "id": format!("t{number}"), "type": "task", "queue": queue });
    let mut nodes: Vec<Value> = (0..998).map(task).collect();
    nodes.push(json!({ "id": "call", "type": "http", "url": "http://127.0.0.1/" }));
    json!({ "body": { "graph": { "nodes": nodes } } })
}

pub(super) async fn run_wide_graph(attacker: &Attacker, record: &mut Record) {
    let params = format!(r#"{{"x": "{}"}}"#, "y".repeat(31 * 1024));
    run_until_failed(&attacker.tenant, &attacker.definition, &params, 5, record).await;
}
