//! Tests of the graph's state machine: examples, and invariants on random graphs.

use super::super::{Edge, NodeKind};
use super::*;
use crate::{ExecutionId, JsonText, WorkspaceId};
use proptest::prelude::*;
use std::collections::HashMap;

fn machine(nodes: usize, edges: &[(usize, usize)]) -> Machine {
    let task = || NodeKind::Task {
        queue: "q".into(),
        kind: None,
    };
    let edge = |(from, to): &(usize, usize)| Edge {
        from: from.to_string(),
        to: to.to_string(),
    };
    Machine::new(Graph {
        nodes: (0..nodes)
            .map(|at| Node::new(at.to_string(), task()))
            .collect(),
        edges: edges.iter().map(edge).collect(),
    })
    .unwrap()
}

/// 0 → {1, 2} → 3
fn diamond() -> Machine {
    machine(4, &[(0, 1), (0, 2), (1, 3), (2, 3)])
}

#[test]
fn diamond_fans_out_and_in_and_ends() {
    let machine = diamond();
    let (mut state, step) = machine.begin();
    assert_eq!(step.begin, [0]);
    let mut complete = |at| {
        machine
            .apply(&mut state, GraphEvent::Completed(at))
            .unwrap()
    };
    assert_eq!(complete(0).begin, [1, 2]);
    assert_eq!(complete(2), Step::default());
    assert_eq!(complete(1).begin, [3]);
    assert_eq!(complete(3).end, Some(ExecutionEnd::Completed));
    assert_eq!(state.letters(), "cccc");
}

#[test]
fn failed_node_ends_the_graph_and_abandons_running_nodes() {
    let machine = diamond();
    let (mut state, _) = machine.begin();
    machine.apply(&mut state, GraphEvent::Completed(0)).unwrap();
    let step = machine.apply(&mut state, GraphEvent::Failed(1)).unwrap();
    assert_eq!(
        step,
        Step {
            begin: vec![],
            abandon: vec![2],
            end: Some(ExecutionEnd::Failed)
        }
    );
    assert_eq!(state.letters(), "cfxx");
}

#[test]
fn late_events_change_nothing() {
    let machine = diamond();
    let (mut state, _) = machine.begin();
    let events = [
        GraphEvent::Completed(3),
        GraphEvent::Failed(1),
        GraphEvent::Completed(99),
    ];
    for event in events {
        assert_eq!(machine.apply(&mut state, event), None, "never started");
    }
    machine.apply(&mut state, GraphEvent::Completed(0)).unwrap();
    assert_eq!(
        machine.apply(&mut state, GraphEvent::Completed(0)),
        None,
        "twice"
    );
    machine
        .apply(&mut state, GraphEvent::Stopped(GraphStop::Cancelled))
        .unwrap();
    let ended = state.clone();
    for event in [
        GraphEvent::Completed(1),
        GraphEvent::Failed(2),
        GraphEvent::Stopped(GraphStop::TimedOut),
    ] {
        assert_eq!(machine.apply(&mut state, event), None);
    }
    assert_eq!(state, ended);
    assert_eq!(ended.end(), Some(ExecutionEnd::Cancelled));
}

#[test]
fn node_whose_input_cannot_be_built_fails_before_it_starts() {
    let mut graph = diamond().graph().clone();
    graph.nodes[2].input = Some(serde_json::json!({"$from": "/params/missing"}));
    let machine = Machine::new(graph).unwrap();
    let (mut state, _) = machine.begin();
    let step = machine.apply(&mut state, GraphEvent::Completed(0)).unwrap();
    let outputs = HashMap::from([(0, JsonText::default())]);
    let prepared = machine.prepare(&mut state, step, &context(&outputs));
    assert_eq!(prepared.begin, []);
    assert!(prepared.abandon.is_empty());
    let (at, error) = prepared.failed.unwrap();
    assert_eq!(
        (at, error.as_str()),
        (
            2,
            "cannot build the node's input: /params/missing does not exist"
        )
    );
    assert_eq!(prepared.end, Some(ExecutionEnd::Failed));
    assert_eq!(state.letters(), "cxfx");
}

fn context(outputs: &HashMap<usize, JsonText>) -> NodeContext<'_> {
    static PARAMS: std::sync::LazyLock<JsonText> = std::sync::LazyLock::new(JsonText::default);
    NodeContext {
        execution: ExecutionId(uuid::Uuid::nil()),
        workspace: WorkspaceId(uuid::Uuid::nil()),
        params: &PARAMS,
        outputs,
    }
}

prop_compose! {
    fn any_graph()(n in 1usize..30, pairs in proptest::collection::hash_set((0usize..30, 0usize..30), 0..80))
        -> (usize, Vec<(usize, usize)>)
    {
        let mut edges: Vec<_> = pairs.into_iter().filter(|(from, to)| from < to && *to < n).collect();
        edges.sort_unstable();
        (n, edges)
    }
}

proptest! {
    /// In any order of completions, each node starts once, after all its predecessors, and the graph ends with the last.
    #[test]
    fn any_order_of_completions_starts_each_node_once(graph in any_graph(), picks: Vec<prop::sample::Index>, fail in 0usize..60) {
        let (n, edges) = graph;
        let machine = machine(n, &edges);
        let (mut state, step) = machine.begin();
        let mut open = step.begin;
        let mut begun: Vec<usize> = open.clone();
        let mut done: Vec<usize> = Vec::new();
        let mut picks = picks.into_iter();
        while state.end().is_none() {
            prop_assert!(!open.is_empty(), "stuck at {}", state.letters());
            let at = open.remove(picks.next().map_or(0, |pick| pick.index(open.len())));
            if at == fail {
                let step = machine.apply(&mut state, GraphEvent::Failed(at)).unwrap();
                open.sort_unstable();
                prop_assert_eq!(&step.abandon, &open);
                prop_assert_eq!(step.end, Some(ExecutionEnd::Failed));
                break;
            }
            let step = machine.apply(&mut state, GraphEvent::Completed(at)).unwrap();
            done.push(at);
            for &next in &step.begin {
                prop_assert!(!begun.contains(&next));
                prop_assert!(edges.iter().all(|(from, to)| *to != next || done.contains(from)));
            }
            begun.extend(&step.begin);
            open.extend(step.begin);
        }
        prop_assert_eq!(GraphState::read(&state.letters(), state.end()), Some(state.clone()));
        if fail >= n {
            prop_assert_eq!(state.end(), Some(ExecutionEnd::Completed));
            begun.sort_unstable();
            prop_assert_eq!(begun, (0..n).collect::<Vec<_>>());
        }
    }
}
