//! The order of nodes, and the data passed between them.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, delay, graph, task, task_of};
use crate::task_workers::TaskWorkers;
use leasehold_core::graph::NodeState;
use serde_json::json;
use std::time::Duration;

/// Nodes with the same predecessor start together, and their common successor gets all outputs.
pub async fn fans_out_and_in(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let mut nodes = vec![task_of(&g.queue, "root", "echo", json!(1))];
    let mut pairs = Vec::new();
    for at in 0..5 {
        let id = format!("w{at}");
        pairs.extend([format!("root>{id}"), format!("{id}>join")]);
        nodes.push(task_of(
            &g.queue,
            &id,
            "add",
            json!([{"$from": "/nodes/root"}, at]),
        ));
    }
    nodes.push(task(&g.queue, "join", "echo"));
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let start = g.start(graph(nodes, &pairs), json!({"p": true})).await;
    g.expect_completed(&start).await;
    let join =
        json!({"params": {"p": true}, "nodes": {"w0": 1, "w1": 2, "w2": 3, "w3": 4, "w4": 5}});
    assert_eq!(g.output(&start, "join").await, join);
    assert_eq!(workers.attempts("join"), 1);
}

/// A node waits for all its predecessors.
pub async fn node_waits_for_all_predecessors(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let nodes = vec![
        task(&g.queue, "quick", "echo"),
        task(&g.queue, "slow", "hold"),
        task(&g.queue, "join", "echo"),
    ];
    let start = g
        .start(graph(nodes, &["quick>join", "slow>join"]), json!({}))
        .await;
    workers.wait_started("slow", g.timeout).await;
    g.wait_for_state(&start, "quick", NodeState::Completed)
        .await;
    use NodeState::{Completed, Running, Waiting};
    assert_eq!(g.states(&start).await, [Completed, Running, Waiting]);
    workers.release_held();
    g.expect_completed(&start).await;
    assert_eq!(g.output(&start, "slow").await, json!("let go"));
}

/// A node gets everything before it, or what its input selects, or a literal.
pub async fn passes_params_and_outputs(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let chosen = json!({"order": {"$from": "/params/order/id"}, "all": [{"$from": "/nodes/whole"}], "kept": "$from"});
    let nodes = vec![
        task(&g.queue, "whole", "echo"),
        task(&g.queue, "none", "nothing"),
        task_of(&g.queue, "chosen", "echo", chosen),
        task(&g.queue, "given", "echo"),
        task_of(&g.queue, "null", "echo", json!({"$from": "/nodes/none"})),
    ];
    let pairs = ["whole>chosen", "whole>given", "none>given", "none>null"];
    let params = json!({"order": {"id": 7, "name": "ä\u{1F600}"}, "half": 0.5});
    let start = g.start(graph(nodes, &pairs), params.clone()).await;
    g.expect_completed(&start).await;
    let whole = json!({"params": params, "nodes": {}});
    assert_eq!(g.output(&start, "whole").await, whole);
    assert_eq!(g.output(&start, "none").await, json!(null));
    let chosen = json!({"order": 7, "all": [whole], "kept": "$from"});
    assert_eq!(g.output(&start, "chosen").await, chosen);
    let given = json!({"params": params, "nodes": {"whole": whole, "none": null}});
    assert_eq!(g.output(&start, "given").await, given);
    assert_eq!(g.output(&start, "null").await, json!(null));
    workers.stop().await;
}

/// A delay takes the given time and has no output.
pub async fn delay_takes_the_given_time(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let graph = chain(vec![delay("pause", 400), task(&g.queue, "after", "echo")]);
    let start = g.start(graph, json!({})).await;
    g.expect_completed(&start).await;
    let pause = g.node(&start, "pause").await;
    assert_eq!(g.output(&start, "pause").await, json!(null));
    let times = pause.started_at.zip(pause.finished_at);
    let (began, ended) = times.expect("a node that has ended has its times");
    let took = ended.duration_since(began).unsigned_abs();
    assert!(took >= Duration::from_millis(400), "{took:?}");
    workers.stop().await;
}
