//! Tests of the changes that store operations make to a graph.

use super::super::{Edge, Graph, Node, NodeKind};
use super::*;
use crate::ExecutionEnd;
use serde_json::json;

fn text(value: serde_json::Value) -> JsonText {
    JsonText::from(&value)
}

fn task(id: &str) -> Node {
    let kind = NodeKind::Task {
        queue: "q".into(),
        kind: None,
    };
    Node::new(id, kind)
}

fn started(nodes: Vec<Node>, edges: &[(&str, &str)]) -> GraphChange {
    let edge = |(from, to): &(&str, &str)| Edge {
        from: (*from).into(),
        to: (*to).into(),
    };
    let graph = Graph {
        nodes,
        edges: edges.iter().map(edge).collect(),
    };
    let origin = GraphOrigin {
        workspace: uuid::Uuid::nil().into(),
        priority: 3,
        trace_context: None,
    };
    let machine = Arc::new(Machine::new(graph).unwrap());
    GraphChange::start(
        uuid::Uuid::nil().into(),
        origin,
        machine,
        text(json!({"n": 1})),
    )
}

/// Loads the graph as the next operation does.
fn next(change: &GraphChange) -> GraphChange {
    let machine = Arc::clone(&change.machine);
    GraphChange::of(
        change.execution,
        change.origin.clone(),
        machine,
        change.state.clone(),
    )
}

fn begun(change: &mut GraphChange) -> Vec<usize> {
    change
        .take_begun()
        .into_iter()
        .map(|(node, _)| node)
        .collect()
}

fn end(node: usize, outcome: NodeOutcome) -> NodeEnd {
    NodeEnd {
        node,
        attempts: 2,
        outcome,
    }
}

fn completed() -> NodeOutcome {
    NodeOutcome::Completed(text(json!({"x": 1})))
}

fn failed() -> NodeOutcome {
    NodeOutcome::Failed("it broke".into())
}

#[test]
fn start_starts_the_nodes_without_predecessors() {
    let mut change = started(vec![task("a"), task("b"), task("c")], &[("a", "c")]);
    assert!(change.is_new() && change.has_changed() && !change.has_ended());
    assert_eq!(begun(&mut change), [0, 1]);
    assert_eq!(change.state().letters(), "rrw");
}

#[test]
fn fan_in_needs_only_the_outputs_of_earlier_operations() {
    let graph = vec![task("a"), task("b"), task("c")];
    let mut change = next(&started(graph, &[("a", "c"), ("b", "c")]));
    let first = change.preview_end(0, &completed());
    assert_eq!(first, EndPreview::default());
    assert!(change.node_ended(end(0, completed()), NodeSource::default()));
    assert_eq!(begun(&mut change), [0usize; 0]);
    let mut change = next(&change);
    let second = change.preview_end(1, &completed());
    assert_eq!((second.begins, second.abandons), (true, false));
    assert_eq!(second.needs, [0].into());
    let source = NodeSource {
        params: text(json!({"n": 1})),
        outputs: [(0, text(json!("kept")))].into(),
    };
    assert!(change.node_ended(end(1, completed()), source));
    assert_eq!(change.ended(), [end(1, completed())]);
    let begun = change.take_begun();
    let NodeWork::Task { payload, .. } = &begun[0].1 else {
        panic!("it is a task");
    };
    let payload: serde_json::Value = payload.read().unwrap();
    let nodes = json!({"a": "kept", "b": {"x": 1}});
    assert_eq!(payload["input"]["nodes"], nodes);
}

#[test]
fn failed_node_abandons_running_nodes_and_is_named_in_the_error() {
    let mut change = next(&started(
        vec![task("a"), task("b"), task("c")],
        &[("a", "c")],
    ));
    assert!(change.preview_end(0, &failed()).abandons);
    assert!(change.node_ended(end(0, failed()), NodeSource::default()));
    assert_eq!(change.state().end(), Some(ExecutionEnd::Failed));
    assert_eq!(change.error(), Some("node `a` failed: it broke"));
    assert_eq!(change.abandoned(), [1]);
    change.end_abandoned(|_| 7);
    let abandoned = NodeEnd {
        node: 1,
        attempts: 7,
        outcome: NodeOutcome::Abandoned,
    };
    assert_eq!(change.ended(), [end(0, failed()), abandoned]);
    assert_eq!(
        (change.ended()[1].output(), change.ended()[1].error()),
        (None, None)
    );
}

#[test]
fn node_whose_input_cannot_be_built_fails_the_graph() {
    let mut bad = task("bad");
    bad.input = Some(json!({"$from": "/nodes/a/nowhere"}));
    let mut change = next(&started(vec![task("a"), bad, task("c")], &[("a", "bad")]));
    let preview = change.preview_end(0, &completed());
    assert_eq!((preview.begins, preview.abandons), (true, false));
    assert!(change.node_ended(end(0, completed()), NodeSource::default()));
    assert_eq!(begun(&mut change), [0usize; 0]);
    assert_eq!(change.abandoned(), [2]);
    assert_eq!(change.ended()[1].attempts, 0);
    assert!(change.error().unwrap().starts_with("node `bad` failed: "));
}

#[test]
fn events_after_the_end_change_nothing() {
    let mut change = next(&started(vec![task("a"), task("b")], &[]));
    assert!(change.stop(GraphStop::Cancelled, "enough"));
    assert_eq!(
        (change.error(), change.abandoned()),
        (Some("enough"), &[0, 1][..])
    );
    let mut change = next(&change);
    assert!(!change.stop(GraphStop::TimedOut, "late"));
    assert_eq!(change.preview_end(0, &failed()), EndPreview::default());
    assert!(!change.node_ended(end(0, completed()), NodeSource::default()));
    assert!(!change.has_changed() && change.ended().is_empty());
}
