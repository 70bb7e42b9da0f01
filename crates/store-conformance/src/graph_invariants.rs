//! Invariants of graphs, checked through the trait while no operation runs.

use crate::Fixture;
use crate::factory::known;
use crate::graph_factory::StartedGraph;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::{ExecutionStatus, JobStatus};
use leasehold_store::graph::GraphRun;
use leasehold_store::job::{Job, JobFilter};
use std::collections::BTreeSet;

/// Reads these executions with their nodes and jobs, and asserts every invariant.
///
/// # Panics
/// When an invariant is violated.
pub async fn check(f: &Fixture, executions: &[StartedGraph]) {
    let jobs = f.all_jobs(&JobFilter::default(), 500).await;
    for started in executions {
        let run = f.graph_run(started.execution).await;
        let nodes = f.nodes(started.execution).await;
        let own: Vec<&Job> = jobs
            .iter()
            .filter(|job| job.execution == Some(started.execution))
            .collect();
        nodes_fit(&run, &nodes);
        jobs_fit(&run, &nodes, &own);
        execution_fits(f, started, &run).await;
    }
}

fn nodes_fit(run: &GraphRun, nodes: &[NodeRun]) {
    let states: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
    assert_eq!(
        states,
        run.state.nodes(),
        "the graph state agrees with the nodes"
    );
    assert_eq!(run.finished_at.is_some(), run.state.end().is_some());
    for node in nodes {
        let id = &node.id;
        match node.state {
            NodeState::Waiting => {
                assert_eq!((node.job, node.started_at), (None, None), "{id} is waiting");
            }
            NodeState::Running => assert!(node.job.is_some(), "{id} has a job"),
            NodeState::Completed => {
                assert!(
                    node.attempts > 0 && node.job.is_some(),
                    "{id} has an attempt and a job"
                );
            }
            NodeState::Failed => assert!(node.error.is_some(), "{id} has an error"),
            NodeState::Cancelled => {
                assert_eq!(
                    node.finished_at.is_some(),
                    node.started_at.is_some(),
                    "{id}"
                );
            }
        }
        let ended = matches!(node.state, NodeState::Completed | NodeState::Failed);
        assert!(!ended || node.finished_at.is_some(), "{id} has an end time");
        let open = matches!(node.state, NodeState::Waiting | NodeState::Running);
        assert!(!open || node.finished_at.is_none(), "{id} has no end time");
        assert!(
            !open || run.state.end().is_none(),
            "{id} is open in an ended graph"
        );
        let completed = node.state == NodeState::Completed;
        assert_eq!(node.output.is_some(), completed, "the output of {id}");
    }
}

fn jobs_fit(run: &GraphRun, nodes: &[NodeRun], jobs: &[&Job]) {
    let of_nodes: BTreeSet<_> = nodes.iter().filter_map(|node| node.job).collect();
    let begun = nodes.iter().filter(|node| node.job.is_some()).count();
    assert_eq!(of_nodes.len(), begun, "each node has its own job");
    for job in jobs {
        assert!(of_nodes.contains(&job.id), "{} belongs to no node", job.id);
        let ended = run.state.end().is_some();
        assert!(
            !ended || known(&job.status).is_finished(),
            "{} is open in an ended graph",
            job.id
        );
        assert_eq!(job.result, None, "outputs are stored with the nodes");
    }
    for node in nodes {
        let Some(job) = jobs.iter().find(|job| Some(job.id) == node.job) else {
            continue;
        };
        let id = &node.id;
        assert_eq!(job.attempts, node.attempts, "the attempts of {id}");
        match node.state {
            NodeState::Waiting => panic!("{id} is waiting and has a job"),
            // A job that lost its last lease fails before its graph is updated.
            NodeState::Running => assert_ne!(job.status, JobStatus::Completed, "{id}"),
            NodeState::Completed => assert_eq!(job.status, JobStatus::Completed, "{id}"),
            NodeState::Failed | NodeState::Cancelled => {
                assert_eq!(job.status, JobStatus::Failed, "{id}");
            }
        }
    }
}

async fn execution_fits(f: &Fixture, started: &StartedGraph, run: &GraphRun) {
    let execution = f.execution(started.workspace, started.execution).await;
    let execution = execution.expect("the execution is kept");
    let expected = match run.state.end() {
        None => ExecutionStatus::Running,
        Some(end) => ExecutionStatus::Running.after(end),
    };
    assert_eq!(execution.status, expected, "execution and graph agree");
    assert_eq!(execution.finished_at, run.finished_at);
    assert_eq!(execution.error, run.error);
}
