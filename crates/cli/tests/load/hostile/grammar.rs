//! The grammar of hostile calls: schemas, templates and graphs. `bodies` has params and broken JSON. Sends nothing.

use super::bodies;
use crate::server_process::LoadTarget;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// The most times that a template repeats a reference to the params.
const TEMPLATE_MAX_REPEATS: usize = 900;
/// The most parts of an array inside a template.
const NESTED_MAX_REPEATS: usize = 3;
/// The most nodes of a graph: one more than a graph may have.
const GRAPH_MAX_NODES: usize = 1_001;
/// The most bytes of one body.
pub(super) const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// A call to send.
pub(super) struct HostileCall {
    /// The production of the grammar.
    pub(super) what: &'static str,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Returns a call. Nothing but the random numbers determines it.
pub(super) fn call(rng: &mut Rng, target: &LoadTarget) -> HostileCall {
    let workspace = format!("/v1/workspaces/{}", target.workspace);
    let versions = format!("{workspace}/definitions/{}/versions", target.definition);
    let requests = target.requests();
    let (what, path, body) = match rng.u8(0..8) {
        0 | 1 => {
            let version =
                json!({"body": {"graph": small_graph(rng)}, "params_schema": schema(rng, 0)});
            ("schema", versions, version.to_string().into_bytes())
        }
        2 => {
            let version = json!({"body": {"graph": graph(rng)}});
            ("graph", versions, version.to_string().into_bytes())
        }
        3 => {
            let version = json!({"body": {"graph": template_graph(rng)}});
            ("template", versions, version.to_string().into_bytes())
        }
        4 | 5 => {
            let params = bodies::params(rng);
            let body = format!(
                "{{\"definition\":\"{}\",\"params\":{params}}}",
                target.definition
            );
            ("params", requests, body.into_bytes())
        }
        6 => {
            let batch = bodies::batch(rng, &target.definition);
            ("batch", format!("{requests}/batch"), batch.into_bytes())
        }
        _ => {
            let path = [requests, versions, format!("{workspace}/definitions")];
            let path = path[rng.usize(0..3)].clone();
            ("noise", path, bodies::broken(rng, &target.definition))
        }
    };
    HostileCall { what, path, body }
}

/// A schema: one of the shapes that cost most, or a random one.
fn schema(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(0..10) {
        0 => doubling(rng),
        1 => chain(rng),
        2 => json!({"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}),
        3 => patterns(rng),
        4 => nested(rng, "properties"),
        5 => nested(rng, "items"),
        6 => json!({"enum": (0..rng.usize(1..5_000)).collect::<Vec<_>>()}),
        7 => json!({"const": bodies::deep(rng, 70), "multipleOf": 1e-300, "maxLength": 1e300}),
        8 => json!({"type": "object", "minProperties": -1, "required": "a", "pattern": 7}),
        _ => combination(rng, depth),
    }
}

/// Each level refers twice to the next.
fn doubling(rng: &mut Rng) -> Value {
    let (levels, word) = (rng.usize(2..80), applicator(rng));
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({word: [next, next]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "null"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

/// A chain of references that each collect what was evaluated.
fn chain(rng: &mut Rng) -> Value {
    let links = rng.usize(2..2_000);
    let mut defs = Map::new();
    for link in 0..links {
        let next = format!("#/$defs/l{}", (link + 1) % (links + rng.usize(0..2)));
        defs.insert(
            format!("l{link}"),
            json!({"$ref": next, "unevaluatedProperties": rng.bool()}),
        );
    }
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

fn patterns(rng: &mut Rng) -> Value {
    let shapes = [
        "^\\p{L}{60}$",
        "(a+)+$",
        "^(a|aa)*b",
        "(?=x)y",
        "(.)\\1",
        "(((((x{9}){9}){9}){9}){9})",
        "[\\u{0}-\\u{10ffff}]{500}",
        "^[^x]{1,1000}$",
        "(",
    ];
    let pattern = |rng: &mut Rng| {
        let shape = shapes[rng.usize(0..shapes.len())];
        shape.repeat(rng.usize(1..8))
    };
    let each = (0..rng.usize(1..80)).map(|at| (pattern(rng) + &at.to_string(), json!({})));
    let each: Map<String, Value> = each.collect();
    json!({"patternProperties": each, "pattern": pattern(rng)})
}

fn nested(rng: &mut Rng, word: &str) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 0..rng.usize(1..100) {
        let inner = match word {
            "properties" => json!({"a": schema}),
            _ => schema,
        };
        schema = json!({word: inner});
    }
    schema
}

fn applicator(rng: &mut Rng) -> &'static str {
    ["allOf", "anyOf", "oneOf", "prefixItems"][rng.usize(0..4)]
}

fn combination(rng: &mut Rng, depth: usize) -> Value {
    if depth > 4 {
        return json!(rng.bool());
    }
    let word = applicator(rng);
    let parts: Vec<Value> = (0..rng.usize(1..6))
        .map(|_| schema(rng, depth + 1))
        .collect();
    json!({word: parts, "not": schema(rng, depth + 1), "if": schema(rng, depth + 1), "then": schema(rng, depth + 1)})
}

fn small_graph(rng: &mut Rng) -> Value {
    let milliseconds = rng.u64(0..50);
    json!({"nodes": [{"id": "a", "type": "delay", "milliseconds": milliseconds}], "edges": []})
}

/// A graph of many nodes with edges of a hostile shape; some are invalid.
fn graph(rng: &mut Rng) -> Value {
    let count = rng.usize(1..=GRAPH_MAX_NODES);
    let id = |at: usize| format!("n{at}");
    let mut nodes: Vec<Value> = (0..count).map(|at| node(rng, &id(at))).collect();
    if rng.u8(0..8) == 0 {
        nodes.push(json!({"id": "n0", "type": "delay", "milliseconds": -1}));
    }
    let edge = |from: usize, to: usize| json!({"from": id(from), "to": id(to)});
    let edges: Vec<Value> = match rng.u8(0..5) {
        0 => (1..count).map(|at| edge(at - 1, at)).collect(),
        1 => (1..count).map(|at| edge(0, at)).collect(),
        2 => (0..count).map(|at| edge(at, (at + 1) % count)).collect(),
        3 => (0..5_001)
            .map(|_| edge(rng.usize(0..count + 1), rng.usize(0..count)))
            .collect(),
        _ => Vec::new(),
    };
    json!({"nodes": nodes, "edges": edges})
}

fn node(rng: &mut Rng, id: &str) -> Value {
    match rng.u8(0..6) {
        0 => json!({"id": id, "type": "delay", "milliseconds": rng.u64(0..100)}),
        1 => json!({"id": id, "type": "delay", "milliseconds": u64::MAX}),
        2 => json!({"id": id, "type": "task", "queue": "hostile", "input": input(rng, 0)}),
        3 => json!({"id": id, "type": "task", "queue": "leasehold:http", "input": "\u{0}"}),
        4 => json!({"id": "é\u{202e}".repeat(rng.usize(1..100)), "type": "task", "queue": ""}),
        _ => json!({"id": id, "type": "http", "url": url(rng), "retry": {"max_attempts": 1}}),
    }
}

/// A graph whose node multiplies what it refers to.
fn template_graph(rng: &mut Rng) -> Value {
    let node = match rng.bool() {
        true => json!({"id": "a", "type": "http", "url": url(rng), "retry": {"max_attempts": 1}}),
        false => json!({"id": "a", "type": "task", "queue": "hostile", "input": input(rng, 0)}),
    };
    json!({"nodes": [node], "edges": []})
}

fn url(rng: &mut Rng) -> String {
    let pointer = [
        "{/params}",
        "{/params/a}",
        "{/params/0/0/0}",
        "{/nodes/a}",
        "{",
        "{/params~2}",
    ];
    let pointer = pointer[rng.usize(0..pointer.len())];
    let host = [
        "https://example.invalid/",
        "http://127.0.0.1:1/",
        "https://{/params}/",
        "file:///",
    ];
    let repeats = rng.usize(0..=TEMPLATE_MAX_REPEATS);
    host[rng.usize(0..host.len())].to_owned() + &pointer.repeat(repeats)
}

/// A template of an input with references to everything.
fn input(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(0..5) {
        0 if depth < 6 => {
            let most = if depth == 0 {
                TEMPLATE_MAX_REPEATS
            } else {
                NESTED_MAX_REPEATS
            };
            Value::Array(
                (0..rng.usize(0..=most))
                    .map(|_| input(rng, depth + 1))
                    .collect(),
            )
        }
        1 if depth < 6 => json!({"a": input(rng, depth + 1), "b": {"$from": "/params"}}),
        2 => json!({"$from": "/params/".to_owned() + &"0/".repeat(rng.usize(0..200))}),
        3 => json!({"$from": "/nodes/a", "more": 1}),
        _ => json!({"$from": "/params"}),
    }
}
