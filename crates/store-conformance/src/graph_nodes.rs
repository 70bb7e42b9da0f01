//! What a store promises about the nodes of a graph as readers see them, and how long they are kept.

use crate::Fixture;
use crate::factory::ok;
use crate::graph_factory::{came_to, diamond, graph, graph_of, task, tried_task};
use crate::job_factory::failed;
use leasehold_core::JsonText;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::job::Again;
use leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES;
use leasehold_store::fresh_id;
use leasehold_store::job::JobPrune;
use leasehold_store::prune::Prune;
use serde_json::json;

/// Each node is told of in the order of the graph, with what it came to and when.
pub async fn are_in_the_order_of_the_graph_with_their_times(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let s = f.started(&t).await;
    let begun = f.now();
    f.advance(2);
    let ended = f.now();
    f.complete_node("a", json!([1])).await;
    f.advance(1);
    let b = f.take(1).await;
    let nodes = f.nodes(s.execution).await;
    let a = NodeRun {
        state: NodeState::Completed,
        job: nodes[0].job,
        attempts: 1,
        output: Some(JsonText::from(&json!([1]))),
        error: None,
        started_at: Some(begun),
        finished_at: Some(ended),
        ..NodeRun::waiting("a")
    };
    let running = |id: &str, attempts| NodeRun {
        state: NodeState::Running,
        attempts,
        started_at: Some(ended),
        ..NodeRun::waiting(id)
    };
    let b = NodeRun {
        job: Some(b[0].id),
        ..running("b", 1)
    };
    let c = NodeRun {
        job: nodes[2].job,
        ..running("c", 0)
    };
    assert_eq!(nodes, [a, b, c, NodeRun::waiting("d")]);
    assert!(nodes[0].job.is_some() && nodes[2].job.is_some());
}

/// Attempts and last error of a node that is tried again are those of its job.
pub async fn tell_of_attempts_while_they_run(f: Fixture) {
    let t = f
        .graph_site(1, graph_of(vec![tried_task("a", 3)], &[]))
        .await;
    let s = f.started(&t).await;
    for attempt in 1..=2 {
        let job = f.take_one().await;
        assert_eq!(f.node(s.execution, "a").await.attempts, attempt);
        f.end(&job, failed(Again::Policy)).await;
        let node = f.node(s.execution, "a").await;
        assert_eq!((node.state, node.attempts), (NodeState::Running, attempt));
        assert_eq!(node.error.as_deref(), Some("it broke"));
    }
    let job = f.take_one().await;
    f.end(&job, came_to(json!(1))).await;
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 3));
}

/// What was never started has no graph and no nodes.
pub async fn of_an_unknown_execution_are_none(f: Fixture) {
    let t = f.graph_site(1, diamond()).await;
    let claimed = f.running(&t).await;
    for execution in [fresh_id(), claimed.execution] {
        assert_eq!(ok(f.store.graph_get(execution).await), None);
        assert_eq!(ok(f.store.graph_nodes(execution).await), None);
    }
}

/// A list holds outputs as far as they fit into it; each can be read by itself.
pub async fn outputs_that_do_not_fit_are_left_out(f: Fixture) {
    let t = f.graph_site(1, graph(&["a", "b", "c", "d"], &[])).await;
    let s = f.started(&t).await;
    let large = json!("x".repeat(NODE_OUTPUTS_MAX_BYTES as usize / 2 - 2));
    let jobs = f.take_nodes(&["a", "b", "c", "d"]).await;
    for (job, output) in jobs.iter().zip([&large, &large, &json!(1)]) {
        f.end(job, came_to(output.clone())).await;
    }
    let nodes = f.nodes(s.execution).await;
    let (kept, one) = (JsonText::from(&large), JsonText::from(&json!(1)));
    let shown: Vec<_> = nodes.iter().map(|node| node.output.clone()).collect();
    assert_eq!(shown, [Some(kept.clone()), Some(kept), None, None]);
    let omitted: Vec<_> = nodes.iter().map(|node| node.output_omitted).collect();
    assert_eq!(omitted, [false, false, true, false]);
    let output = |node| f.store.graph_output(s.execution, node);
    assert_eq!(ok(output(2).await), Some(one));
    assert_eq!(ok(output(3).await), None);
    assert_eq!(ok(output(9).await), None);
    assert_eq!(ok(f.store.graph_output(fresh_id(), 0).await), None);
}

/// Outputs outlive the jobs that made them, and are passed on all the same.
pub async fn outputs_outlive_their_jobs(f: Fixture) {
    let t = f
        .graph_site(1, graph_of(vec![task("a"), task("b")], &[("a", "b")]))
        .await;
    let s = f.started(&t).await;
    f.complete_node("a", json!("kept")).await;
    f.advance(1);
    let prune = JobPrune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 100,
    };
    assert_eq!(ok(f.store.job_prune(&prune).await).jobs, 1);
    let kept = Some(JsonText::from(&json!("kept")));
    assert_eq!(f.node(s.execution, "a").await.output, kept);
    f.complete_node("b", json!(2)).await;
    assert_eq!(f.letters(s.execution).await, "cc");
}

/// A pruned request takes graph and nodes along, and leaves those of others.
pub async fn go_with_their_request(f: Fixture) {
    let t = f.graph_site(2, graph(&["a"], &[])).await;
    let gone = f.started(&t).await;
    f.complete_node("a", json!(1)).await;
    let stays = f.started(&t).await;
    f.advance(1);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 100,
    };
    assert_eq!(ok(f.store.prune(&prune).await).requests, 1);
    assert_eq!(ok(f.store.graph_get(gone.execution).await), None);
    assert_eq!(ok(f.store.graph_nodes(gone.execution).await), None);
    assert_eq!(f.letters(stays.execution).await, "r");
    f.complete_node("a", json!(2)).await;
    assert_eq!(f.letters(stays.execution).await, "c");
}
