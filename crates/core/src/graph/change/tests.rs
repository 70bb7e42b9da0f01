//! Tests of the changes that store operations make to a graph.

use super::super::{Edge, Graph, Node, NodeKind, NodeReference};
use super::*;
use crate::ExecutionEnd;
use crate::limits::TRACE_CONTEXT_MAX_CHARS;
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
        crashed: false,
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
    let reference = NodeReference::read(&begun[0].1).unwrap();
    assert_eq!(reference.node, 2);
}

#[test]
fn stored_payload_does_not_grow_with_the_input() {
    let mut change = started(vec![task("a"), task("b")], &[]);
    let written = change.written_bytes();
    let begun = change.take_begun();
    assert_eq!(begun.len(), 2);
    let bytes = begun.iter().map(|(_, payload)| payload.as_str().len());
    assert!(bytes.clone().all(|bytes| bytes < 40));
    let rows = 2 * NODE_ROW_BYTES + "a".len() + "b".len() + "rr".len();
    assert_eq!(written, rows + bytes.sum::<usize>());
}

#[test]
fn step_that_would_write_too_much_fails_before_it_starts_a_node() {
    let ids: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    let graph = Graph {
        nodes: ids.iter().map(|id| task(id)).collect(),
        edges: Vec::new(),
    };
    let machine = Arc::new(Machine::new(graph).unwrap());
    let start = |trace: usize| {
        let origin = GraphOrigin {
            workspace: uuid::Uuid::nil().into(),
            priority: 0,
            trace_context: Some("x".repeat(trace)),
            crashed: false,
        };
        let execution = uuid::Uuid::nil().into();
        GraphChange::start(execution, origin, Arc::clone(&machine), JsonText::default())
    };
    let mut allowed = start(TRACE_CONTEXT_MAX_CHARS);
    assert_eq!(allowed.take_begun().len(), 1_000);
    let mut refused = start(4_000);
    assert_eq!(refused.take_begun(), []);
    assert_eq!(refused.state().end(), Some(ExecutionEnd::Failed));
    let error = refused.error().unwrap();
    assert!(
        error.contains("failed: the nodes that start together write more than "),
        "{error}"
    );
    assert!(refused.written_bytes() < 10_000);
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
    change.end_abandoned(|_| Some(7));
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

#[test]
fn node_whose_queue_is_refused_fails_the_graph_and_no_other_node_starts() {
    let in_queue = |id: &str, queue: &str| {
        let kind = NodeKind::Task {
            queue: queue.into(),
            kind: None,
        };
        Node::new(id, kind)
    };
    let nodes = vec![
        task("a"),
        in_queue("b", "free"),
        in_queue("c", "closed"),
        task("d"),
    ];
    let mut change = next(&started(nodes, &[("a", "b"), ("a", "c")]));
    assert!(change.node_ended(end(0, completed()), NodeSource::default()));
    let mut permitted = change.clone();
    permitted.refuse_queues(|_| false);
    assert_eq!(begun(&mut permitted), [1, 2]);
    change.refuse_queues(|queue| queue == "closed");
    assert_eq!(change.state().end(), Some(ExecutionEnd::Failed));
    assert_eq!(begun(&mut change), [0usize; 0]);
    assert_eq!(change.abandoned(), [3]);
    let why = "this workspace may not use queue `closed`; ask an administrator to share it";
    let refused = NodeEnd {
        node: 2,
        attempts: 0,
        outcome: NodeOutcome::Failed(why.to_owned()),
    };
    assert_eq!(change.ended()[1], refused);
    let error = format!("node `c` failed: {why}");
    assert_eq!(change.error(), Some(error.as_str()));
}

#[test]
fn graph_names_each_task_queue_once() {
    let delay = NodeKind::Delay { milliseconds: 1 };
    let graph = Graph {
        nodes: vec![task("a"), Node::new("b", delay), task("c")],
        edges: Vec::new(),
    };
    assert_eq!(graph.task_queues(), ["q"]);
}
