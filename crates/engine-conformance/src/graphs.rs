//! Graphs in few words: nodes by what they do, edges by the ids of nodes. Knows no engine.

use leasehold_core::graph::{Edge, Graph, Node};
use serde_json::{Value, json};

/// A node from its JSON.
pub(crate) fn node(document: Value) -> Node {
    let said = document.to_string();
    serde_json::from_value(document).unwrap_or_else(|error| panic!("{said}: {error}"))
}

/// A task of this kind that is not tried for long.
pub(crate) fn task(queue: &str, id: &str, kind: &str) -> Node {
    node(
        json!({"id": id, "type": "task", "queue": queue, "kind": kind,
        "retry": {"max_attempts": 5, "base_ms": 10, "jitter": 0.0}}),
    )
}

/// The same with an input.
pub(crate) fn task_of(queue: &str, id: &str, kind: &str, input: Value) -> Node {
    Node {
        input: Some(input),
        ..task(queue, id, kind)
    }
}

/// A pause.
pub(crate) fn delay(id: &str, milliseconds: u64) -> Node {
    node(json!({"id": id, "type": "delay", "milliseconds": milliseconds}))
}

/// What waits for what, written as `from>to`.
pub(crate) fn edges(pairs: &[&str]) -> Vec<Edge> {
    let edge = |pair: &&str| {
        let (from, to) = pair.split_once('>').expect("an edge is from>to");
        Edge {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    };
    pairs.iter().map(edge).collect()
}

/// A graph of these.
pub(crate) fn graph(nodes: Vec<Node>, pairs: &[&str]) -> Graph {
    Graph {
        nodes,
        edges: edges(pairs),
    }
}

/// One node after the other.
pub(crate) fn chain(nodes: Vec<Node>) -> Graph {
    let edge = |pair: &[Node]| Edge {
        from: pair[0].id.clone(),
        to: pair[1].id.clone(),
    };
    let edges = nodes.windows(2).map(edge).collect();
    Graph { nodes, edges }
}
