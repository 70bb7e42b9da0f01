//! The nodes of a graph as readers see them, and their retention.

use crate::Fixture;
use crate::factory::ok;
use crate::graph_factory::{
    completed_with, diamond, graph, graph_of, task, task_with_max_attempts,
};
use crate::job_factory::failed;
use leasehold_core::JsonText;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::job::RetryMode;
use leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES;
use leasehold_store::fresh_id;
use leasehold_store::job::JobPrune;
use leasehold_store::prune::Prune;
use serde_json::json;

/// Nodes are listed in the order of the graph, with output and times.
pub async fn are_listed_in_graph_order_with_their_times(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&t).await;
    let begun = f.now();
    f.advance(2);
    let ended = f.now();
    f.complete_node("a", json!([1])).await;
    f.advance(1);
    let b = f.claim_jobs(1).await;
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

/// A node that is retried shows the attempts and last error of its job.
pub async fn running_node_shows_attempts_and_error_of_its_job(f: Fixture) {
    let t = f
        .graph_workspace(1, graph_of(vec![task_with_max_attempts("a", 3)], &[]))
        .await;
    let s = f.enqueue_started(&t).await;
    for attempt in 1..=2 {
        let job = f.claim_job().await;
        assert_eq!(f.node(s.execution, "a").await.attempts, attempt);
        f.finish_job(&job, failed(RetryMode::Policy)).await;
        let node = f.node(s.execution, "a").await;
        assert_eq!((node.state, node.attempts), (NodeState::Running, attempt));
        assert_eq!(node.error.as_deref(), Some("it broke"));
    }
    let job = f.claim_job().await;
    f.finish_job(&job, completed_with(json!(1))).await;
    let node = f.node(s.execution, "a").await;
    assert_eq!((node.state, node.attempts), (NodeState::Completed, 3));
}

/// An execution that was never started has no graph and no nodes.
pub async fn unknown_execution_has_no_nodes(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let claimed = f.enqueue_running(&t).await;
    for execution in [fresh_id(), claimed.execution] {
        assert_eq!(ok(f.store.graph_get(execution).await), None);
        assert_eq!(ok(f.store.graph_nodes(execution).await), None);
    }
}

/// The list omits outputs beyond its size limit; each output can be read individually.
pub async fn oversized_outputs_are_omitted_from_the_list(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b", "c", "d"], &[]))
        .await;
    let s = f.enqueue_started(&t).await;
    let large = json!("x".repeat(NODE_OUTPUTS_MAX_BYTES as usize / 2 - 2));
    let jobs = f.claim_nodes(&["a", "b", "c", "d"]).await;
    for (job, output) in jobs.iter().zip([&large, &large, &json!(1)]) {
        f.finish_job(job, completed_with(output.clone())).await;
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

/// Outputs outlive their jobs and are still passed to later nodes.
pub async fn outputs_outlive_their_jobs(f: Fixture) {
    let t = f
        .graph_workspace(1, graph_of(vec![task("a"), task("b")], &[("a", "b")]))
        .await;
    let s = f.enqueue_started(&t).await;
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
    assert_eq!(f.node_letters(s.execution).await, "cc");
}

/// Pruning a request deletes its graph and nodes, and no others.
pub async fn are_pruned_with_their_request(f: Fixture) {
    let t = f.graph_workspace(2, graph(&["a"], &[])).await;
    let gone = f.enqueue_started(&t).await;
    f.complete_node("a", json!(1)).await;
    let stays = f.enqueue_started(&t).await;
    f.advance(1);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 100,
    };
    assert_eq!(ok(f.store.prune(&prune).await).requests, 1);
    assert_eq!(ok(f.store.graph_get(gone.execution).await), None);
    assert_eq!(ok(f.store.graph_nodes(gone.execution).await), None);
    assert_eq!(f.node_letters(stays.execution).await, "r");
    f.complete_node("a", json!(2)).await;
    assert_eq!(f.node_letters(stays.execution).await, "c");
}
