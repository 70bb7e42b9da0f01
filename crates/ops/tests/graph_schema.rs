//! Tests that the JSON Schema for editors and the core accept the same graphs, as far as a schema can express the rules.

#![allow(clippy::unwrap_used)]

use leasehold_core::graph::Graph;
use leasehold_core::limits::VALIDATION_MAX_STEPS;
use leasehold_schema::{Schema, ValidationLimits};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../docs/graph.schema.json");
const EXAMPLES: [&str; 3] = [
    include_str!("../../../examples/order/graph.json"),
    include_str!("../../../examples/hello/hello.json"),
    include_str!("../../../examples/hello/greet.json"),
];

const LIMITS: ValidationLimits = ValidationLimits {
    steps: VALIDATION_MAX_STEPS,
    deadline: None,
};

fn schema() -> Schema {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    Schema::compile(&schema).unwrap()
}

fn core_accepts(graph: &Value) -> bool {
    let read = serde_json::from_value::<Graph>(graph.clone());
    read.is_ok_and(|graph| graph.validate().is_ok())
}

fn one(node: Value) -> Value {
    json!({ "nodes": [node] })
}

#[test]
fn valid_graphs_pass_schema_and_core() {
    let examples = EXAMPLES.map(|text| serde_json::from_str(text).unwrap());
    let right = [
        json!({ "$schema": "graph.schema.json", "nodes": [{ "id": "a", "type": "delay", "milliseconds": 0 }], "edges": [] }),
        one(
            json!({ "id": "ä b", "type": "task", "queue": "q", "kind": "k", "input": null, "timeout_ms": 1 }),
        ),
        one(
            json!({ "id": "a", "type": "task", "queue": "q", "retry": { "max_attempts": 1, "base_ms": 0, "factor": 1, "max_ms": 5, "jitter": 1 } }),
        ),
        one(
            json!({ "id": "a", "type": "http", "url": "HTTPS://example.com:8080?x={/params/a}", "method": "PATCH", "headers": { "X-A": "b c" }, "input": [1] }),
        ),
        one(json!({ "id": "a", "type": "http", "url": "http://[::1]/x" })),
    ];
    let schema = schema();
    for graph in right.into_iter().chain(examples) {
        assert_eq!(schema.validate(&graph, LIMITS), Ok(()), "{graph}");
        assert!(core_accepts(&graph), "{graph}");
    }
}

#[test]
fn invalid_graphs_fail_schema_and_core() {
    let wrong = [
        json!({ "nodes": [] }),
        json!({ "edges": [] }),
        json!([]),
        one(json!({ "id": "a", "type": "jump" })),
        one(json!({ "id": "", "type": "delay", "milliseconds": 1 })),
        one(json!({ "id": "x".repeat(129), "type": "delay", "milliseconds": 1 })),
        one(json!({ "id": "a", "type": "delay", "milliseconds": -1 })),
        one(json!({ "id": "a", "type": "delay", "milliseconds": 31_622_400_001u64 })),
        one(json!({ "id": "a", "type": "delay", "milliseconds": 1, "retry": {} })),
        one(json!({ "id": "a", "type": "task" })),
        one(json!({ "id": "a", "type": "task", "queue": "leasehold:http" })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "url": "https://example.com" })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "timeout_ms": 0 })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "retry": { "factor": 0.5 } })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "retry": { "jitter": 1.5 } })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "retry": { "max_attempts": 0 } })),
        one(json!({ "id": "a", "type": "task", "queue": "q", "retry": { "tries": 1 } })),
        one(json!({ "id": "a", "type": "http" })),
        one(json!({ "id": "a", "type": "http", "url": "ftp://example.com" })),
        one(json!({ "id": "a", "type": "http", "url": "https://" })),
        one(json!({ "id": "a", "type": "http", "url": "https://a@example.com" })),
        one(json!({ "id": "a", "type": "http", "url": "https://{/params/x}/" })),
        one(json!({ "id": "a", "type": "http", "url": "https://example.com/a b" })),
        one(json!({ "id": "a", "type": "http", "url": "https://example.com", "method": "get" })),
        one(
            json!({ "id": "a", "type": "http", "url": "https://example.com", "headers": { "a b": "c" } }),
        ),
        one(
            json!({ "id": "a", "type": "http", "url": "https://example.com", "headers": { "a": "c\n" } }),
        ),
        json!({ "nodes": [{ "id": "a", "type": "delay", "milliseconds": 1 }], "edges": [{ "from": "a" }] }),
        json!({ "nodes": [{ "id": "a", "type": "delay", "milliseconds": 1 }], "colour": 1 }),
    ];
    let schema = schema();
    for graph in wrong {
        let validated = schema.validate(&graph, LIMITS);
        assert!(validated.is_err(), "the schema accepts {graph}");
        assert!(!core_accepts(&graph), "the core accepts {graph}");
    }
}
