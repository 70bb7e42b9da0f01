//! Every way an execution ends by itself, and what is said of it then.

use crate::crew::Crew;
use crate::fixture::EngineFixture;
use crate::graphs::{chain, delay, graph, task, task_of};
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::NodeState;
use serde_json::json;
use std::time::Duration;

/// All nodes are done.
pub async fn completed_is_without_an_error(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let start = g
        .start(chain(vec![task(&g.queue, "only", "echo")]), json!({}))
        .await;
    g.completed(&start).await;
    let node = g.node(&start, "only").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 1));
    assert_eq!(node.error, None);
    assert!(node.started_at.is_some() && node.started_at <= node.finished_at);
    crew.leave().await;
}

/// The error names the node, and what was not done never will be.
pub async fn failed_names_the_node_and_cancels_the_rest(g: EngineFixture) {
    let crew = Crew::at_work(&g);
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
    g.failed(&start, "node `bad` failed: told to fail").await;
    use NodeState::{Cancelled, Completed, Failed};
    let states = [Completed, Failed, Cancelled, Cancelled];
    assert_eq!(g.states(&start).await, states);
    let bad = g.node(&start, "bad").await;
    assert_eq!(
        (bad.attempts, bad.error.as_deref()),
        (1, Some("told to fail"))
    );
    assert_eq!(crew.begun("after"), 0);
    let after = g.node(&start, "after").await;
    assert_eq!((after.attempts, after.output), (0, None));
}

/// The execution's own timeout passes.
pub async fn timed_out_by_the_executions_timeout(g: EngineFixture) {
    let graph = chain(vec![
        delay("pause", 3_600_000),
        task(&g.queue, "after", "echo"),
    ]);
    let timeout = Some(Duration::from_secs(1));
    let start = g.start_for(graph, json!({}), timeout).await;
    let (end, error) = g.ended(&start).await;
    assert_eq!(end, ExecutionEnd::TimedOut);
    assert!(error.is_some(), "it says why");
    let states = [NodeState::Cancelled, NodeState::Cancelled];
    assert_eq!(g.states(&start).await, states);
}

/// A node whose input is not there fails before anybody sees it.
pub async fn failed_where_an_input_cannot_be_made(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let nowhere = json!({"$from": "/params/nowhere"});
    let bad = || task_of(&g.queue, "bad", "echo", nowhere.clone());
    let error = "node `bad` failed: its input needs /params/nowhere, which is not there";
    let first = g.start(chain(vec![bad()]), json!({})).await;
    g.failed(&first, error).await;
    let second = chain(vec![task(&g.queue, "good", "echo"), bad()]);
    let second = g.start(second, json!({})).await;
    g.failed(&second, error).await;
    assert_eq!(
        g.states(&second).await,
        [NodeState::Completed, NodeState::Failed]
    );
    assert_eq!(crew.begun("bad"), 0);
}
