//! The ends of an execution, and the error of each.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, delay, graph, task, task_of};
use crate::task_workers::TaskWorkers;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::NodeState;
use leasehold_core::queue_access::refusal_text;
use leasehold_engine::StartOutcome;
use leasehold_store::queue::SharedWith;
use serde_json::json;
use std::time::Duration;

/// An execution whose nodes all complete has no error.
pub async fn completed_execution_has_no_error(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let start = g
        .start(chain(vec![task(&g.queue, "only", "echo")]), json!({}))
        .await;
    g.expect_completed(&start).await;
    let node = g.node(&start, "only").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 1));
    assert_eq!(node.error, None);
    assert!(node.started_at.is_some() && node.started_at <= node.finished_at);
    workers.stop().await;
}

/// The error names the failed node, and the remaining nodes are cancelled.
pub async fn failure_names_the_node_and_cancels_the_rest(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let nodes = vec![
        task(&g.queue, "done", "echo"),
        task(&g.queue, "bad", "fail"),
        delay("beside", 3_600_000),
        task(&g.queue, "after", "echo"),
    ];
    let graph = graph(
        nodes,
        &["done>bad", "done>beside", "bad>after", "beside>after"],
    );
    let start = g.start(graph, json!({})).await;
    g.expect_failed(&start, "node `bad` failed: told to fail")
        .await;
    use NodeState::{Cancelled, Completed, Failed};
    let states = [Completed, Failed, Cancelled, Cancelled];
    assert_eq!(g.states(&start).await, states);
    let bad = g.node(&start, "bad").await;
    assert_eq!(
        (bad.attempts, bad.error.as_deref()),
        (1, Some("told to fail"))
    );
    assert_eq!(workers.attempts("after"), 0);
    let after = g.node(&start, "after").await;
    assert_eq!((after.attempts, after.output), (0, None));
}

/// The timeout of the execution ends it.
pub async fn execution_times_out(g: EngineFixture) {
    let graph = chain(vec![
        delay("pause", 3_600_000),
        task(&g.queue, "after", "echo"),
    ]);
    let timeout = Some(Duration::from_secs(5));
    let start = g.start_for(graph, json!({}), timeout).await;
    let (end, error) = g.wait_ended(&start).await;
    assert_eq!(end, ExecutionEnd::TimedOut);
    assert!(error.is_some(), "the error is set");
    let states = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(&start).await, states);
}

/// A node whose queue is no longer shared with the workspace fails when it starts, and the error names the queue.
pub async fn queue_that_is_no_longer_shared_fails_the_execution(g: EngineFixture) {
    let nodes = vec![delay("pause", 1), task(&g.queue, "far", "echo")];
    let start = g.admit(chain(nodes), json!({}), None).await;
    let none = SharedWith::Workspaces(Vec::new());
    let by = leasehold_store::Actor::Local;
    let shared = g.store.queue_share(&g.queue, &none, &by).await;
    shared.expect("failed to change the sharing");
    assert_eq!(g.engine.start(&start).await, StartOutcome::Started);
    let error = format!("node `far` failed: {}", refusal_text(&g.queue));
    g.expect_failed(&start, &error).await;
    let counts = g.store.queue_counts(&g.queue).await;
    let counts = counts.expect("failed to count the jobs");
    assert_eq!(counts.ready + counts.running + counts.completed, 0);
    let states = [NodeState::Completed, NodeState::Failed];
    assert_eq!(g.states(&start).await, states);
}

/// A node whose input cannot be resolved fails before a worker gets it.
pub async fn missing_input_fails_the_node(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let nowhere = json!({"$from": "/params/nowhere"});
    let bad = || task_of(&g.queue, "bad", "echo", nowhere.clone());
    let error = "node `bad` failed: cannot build the node's input: /params/nowhere does not exist";
    let first = g.start(chain(vec![bad()]), json!({})).await;
    g.expect_failed(&first, error).await;
    let second = chain(vec![task(&g.queue, "good", "echo"), bad()]);
    let second = g.start(second, json!({})).await;
    g.expect_failed(&second, error).await;
    assert_eq!(
        g.states(&second).await,
        [NodeState::Completed, NodeState::Failed]
    );
    assert_eq!(workers.attempts("bad"), 0);
}
