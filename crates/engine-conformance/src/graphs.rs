//! Helpers to build graphs: nodes by kind, edges by node ids. Knows no engine.

use leasehold_core::graph::{Edge, Graph, Node};
use serde_json::{Value, json};

/// A node from its JSON.
pub(crate) fn node(document: Value) -> Node {
    let text = document.to_string();
    serde_json::from_value(document).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A task of this kind with short backoffs.
pub(crate) fn task(queue: &str, id: &str, kind: &str) -> Node {
    node(
        json!({"id": id, "type": "task", "queue": queue, "kind": kind,
        "retry": {"max_attempts": 5, "base_ms": 10, "jitter": 0.0}}),
    )
}

/// A task with an input.
pub(crate) fn task_of(queue: &str, id: &str, kind: &str, input: Value) -> Node {
    Node {
        input: Some(input),
        ..task(queue, id, kind)
    }
}

/// A delay node.
pub(crate) fn delay(id: &str, milliseconds: u64) -> Node {
    node(json!({"id": id, "type": "delay", "milliseconds": milliseconds}))
}

/// Parses edges written as `from>to`.
pub(crate) fn edges(pairs: &[&str]) -> Vec<Edge> {
    let edge = |pair: &&str| {
        let (from, to) = pair.split_once('>').expect("an edge has the form from>to");
        Edge {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    };
    pairs.iter().map(edge).collect()
}

/// A graph of these nodes and edges.
pub(crate) fn graph(nodes: Vec<Node>, pairs: &[&str]) -> Graph {
    Graph {
        nodes,
        edges: edges(pairs),
    }
}

/// A graph of nodes in a chain.
pub(crate) fn chain(nodes: Vec<Node>) -> Graph {
    let edge = |pair: &[Node]| Edge {
        from: pair[0].id.clone(),
        to: pair[1].id.clone(),
    };
    let edges = nodes.windows(2).map(edge).collect();
    Graph { nodes, edges }
}
