//! Hostile graphs: valid ones that are large, wide or deep and copy their params, and those with one mutation that makes them invalid. Knows no schema.

use super::bodies;
use fastrand::Rng;
use leasehold_core::limits::{DELAY_MAX_MS, GRAPH_MAX_EDGES, GRAPH_MAX_NODES, NODE_MAX_POINTERS};
use serde_json::{Value, json};

/// Pointers into [`params`].
const POINTERS: [&str; 4] = ["/params", "/params/a", "/params/list/0", "/params/text"];
/// Pointers of a template that are refused, or lead to nothing.
const INVALID_POINTERS: [&str; 6] = [
    "/nodes/none",
    "/workspace",
    "params",
    "",
    "/nodes/a~2",
    "/params\u{0}",
];

/// Params that the pointers of a graph find, as text; some lack one of the values.
pub(super) fn params(rng: &mut Rng) -> String {
    if rng.u8(0..6) == 0 {
        return bodies::valid_params(rng);
    }
    let bytes = [10, 1_000, 30_000, 200_000][rng.usize(0..4)];
    let text = "ä\"".repeat(rng.usize(0..bytes) / 4);
    json!({"a": bodies::deep(rng, 20), "list": [rng.i32(..), "x"], "text": text}).to_string()
}

/// A graph of one short pause.
pub(super) fn small(rng: &mut Rng) -> Value {
    json!({"nodes": [{"id": "a", "type": "delay", "milliseconds": rng.u64(0..50)}]})
}

/// A graph of many nodes. Every other one has a mutation.
pub(super) fn graph(rng: &mut Rng, queue: &str) -> Value {
    let most = [5, 30, GRAPH_MAX_NODES][rng.usize(0..3)];
    let count = rng.usize(1..=most);
    let pairs = pairs(rng, count);
    let mut nodes: Vec<Value> = (0..count).map(|at| node(rng, at, queue)).collect();
    // References to outputs are valid along an edge only.
    for (from, to) in pairs.iter().take(20) {
        if nodes[*to]["type"] == "task" {
            nodes[*to]["input"] = json!([{"$from": format!("/nodes/{}", id(*from))}]);
        }
    }
    let edges: Vec<Value> = pairs.into_iter().map(|(from, to)| edge(from, to)).collect();
    let mut graph = json!({"nodes": nodes, "edges": edges});
    if rng.bool() {
        mutate(rng, &mut graph, count);
    }
    graph
}

fn id(at: usize) -> String {
    format!("n{at}")
}

fn edge(from: usize, to: usize) -> Value {
    json!({"from": id(from), "to": id(to)})
}

/// The edges of a graph without a cycle: a chain, out of one node, into one node, at random, or none.
fn pairs(rng: &mut Rng, count: usize) -> Vec<(usize, usize)> {
    match rng.u8(0..5) {
        0 => (1..count).map(|at| (at - 1, at)).collect(),
        1 => (1..count).map(|at| (0, at)).collect(),
        2 => (1..count).map(|at| (at - 1, count - 1)).collect(),
        3 if count > 1 => {
            let mut pairs = Vec::new();
            for _ in 0..rng.usize(1..GRAPH_MAX_EDGES) {
                let to = rng.usize(1..count);
                pairs.push((rng.usize(0..to), to));
            }
            pairs.sort_unstable();
            pairs.dedup();
            pairs
        }
        _ => Vec::new(),
    }
}

fn node(rng: &mut Rng, at: usize, queue: &str) -> Value {
    let id = id(at);
    match rng.u8(0..20) {
        0 => call(&id, &url(rng, 3)),
        1..=8 => json!({"id": id, "type": "task", "queue": queue, "input": input(rng, 5)}),
        9 => {
            json!({"id": id, "type": "task", "queue": queue, "retry": {"max_attempts": 2, "jitter": 1}})
        }
        _ => json!({"id": id, "type": "delay", "milliseconds": rng.u64(0..20)}),
    }
}

fn call(id: &str, url: &str) -> Value {
    json!({"id": id, "type": "http", "url": url, "retry": {"max_attempts": 1}})
}

/// A URL with up to so many placeholders. No call leaves the machine: the addresses are blocked or do not exist.
fn url(rng: &mut Rng, placeholders: usize) -> String {
    let hosts = [
        "https://example.invalid/",
        "http://127.0.0.1:1/",
        "http://[::ffff:10.0.0.1]/",
    ];
    let pointer = POINTERS[rng.usize(0..POINTERS.len())];
    let placeholders = format!("{{{pointer}}}").repeat(rng.usize(0..=placeholders));
    hosts[rng.usize(0..hosts.len())].to_owned() + &placeholders
}

/// A template of an input with up to so many references to the params.
fn input(rng: &mut Rng, pointers: usize) -> Value {
    let references = (0..rng.usize(0..=pointers)).map(|_| reference(rng));
    let references: Vec<Value> = references.collect();
    match rng.u8(0..3) {
        0 => json!(references),
        1 => json!({"a": {"b": references}, "c": bodies::deep(rng, 30)}),
        _ => references.first().cloned().unwrap_or_default(),
    }
}

fn reference(rng: &mut Rng) -> Value {
    json!({"$from": POINTERS[rng.usize(0..POINTERS.len())]})
}

/// A graph whose few nodes multiply what they refer to. Every fourth one is refused.
pub(super) fn template(rng: &mut Rng, queue: &str) -> Value {
    let pointers = match rng.u8(0..4) {
        0 => NODE_MAX_POINTERS * 4,
        _ => NODE_MAX_POINTERS,
    };
    let node = |at: usize| match rng.u8(0..3) {
        0 => call(&id(at), &url(rng, pointers)),
        _ => json!({"id": id(at), "type": "task", "queue": queue, "input": input(rng, pointers)}),
    };
    let mut nodes: Vec<Value> = (0..6).map(node).collect();
    if pointers > NODE_MAX_POINTERS {
        nodes[0] = call(
            "n0",
            &format!("http://127.0.0.1:1/{}", "{/params}".repeat(pointers)),
        );
    }
    json!({"nodes": nodes})
}

/// Makes the graph invalid, or nearly so, at one place.
fn mutate(rng: &mut Rng, graph: &mut Value, count: usize) {
    let at = rng.usize(0..count);
    let pointer = INVALID_POINTERS[rng.usize(0..INVALID_POINTERS.len())];
    let node = |more: Value| {
        let mut node = json!({"id": id(at), "type": "task", "queue": "q"});
        let more = more.as_object().cloned().unwrap_or_default();
        node.as_object_mut()
            .into_iter()
            .for_each(|node| node.extend(more.clone()));
        node
    };
    let replacement = match rng.u8(0..16) {
        0 => json!({"id": id(at), "type": "delay", "milliseconds": u64::MAX}),
        1 => json!({"id": id(at), "type": "delay", "milliseconds": DELAY_MAX_MS + 1}),
        2 => json!({"id": id(at), "type": "delay", "milliseconds": -1}),
        3 => node(json!({"queue": "leasehold:http"})),
        4 => node(json!({"queue": ""})),
        5 => node(json!({"input": "\u{0}"})),
        6 => node(json!({"input": {"$from": pointer}})),
        7 => node(
            json!({"input": {"$from": "/params/".to_owned() + &"0/".repeat(rng.usize(60..700))}}),
        ),
        8 => node(json!({"id": "é\u{202e}".repeat(rng.usize(60..100))})),
        9 => node(json!({"retry": {"max_attempts": 0, "factor": 1e308}})),
        10 => node(json!({"more": 1})),
        11 => call(&id(at), "https://{/params}/"),
        12 => call(&id(at), "file:///etc/passwd"),
        13 => node(json!({"input": "x".repeat(rng.usize(250_000..1_100_000))})),
        _ => return mutate_shape(rng, graph, count),
    };
    graph["nodes"][at] = replacement;
}

/// Changes the number of nodes or edges, or closes a cycle.
fn mutate_shape(rng: &mut Rng, graph: &mut Value, count: usize) {
    let mut push = |list: &str, items: Vec<Value>| {
        graph[list]
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.extend(items.clone()));
    };
    match rng.u8(0..5) {
        0 => push(
            "nodes",
            vec![json!({"id": "n0", "type": "delay", "milliseconds": 1})],
        ),
        1 => {
            let more = (count..=GRAPH_MAX_NODES)
                .map(|at| json!({"id": id(at), "type": "delay", "milliseconds": 1}));
            push("nodes", more.collect());
        }
        2 => push("edges", vec![edge(0, 0); GRAPH_MAX_EDGES + 1]),
        3 => push("edges", vec![edge(count - 1, 0), edge(0, count - 1)]),
        _ => push("edges", vec![edge(0, count)]),
    }
}
