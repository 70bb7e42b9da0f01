//! What the store reports about nodes: ended executions, traces, notifications; and the largest graph.

use crate::Fixture;
use crate::factory::new_request;
use crate::graph_factory::{completed_with, graph};
use crate::graph_invariants;
use crate::job_factory::{WORKER, completed, failed, finish_each};
use crate::{job_notification, notification};
use leasehold_core::ExecutionEnd;
use leasehold_core::RequestStatus::{Completed, Failed};
use leasehold_core::job::{JobFinish, JobFinished, RetryMode};
use leasehold_core::limits::GRAPH_MAX_NODES;
use leasehold_store::graph::EndedExecution;
use leasehold_store::request::NewRequest;
use serde_json::json;
use std::collections::HashMap;

/// The call that ends an execution reports it once, with the outcome of its request.
pub async fn reports_the_executions_it_ended(f: Fixture) {
    let t = f
        .graph_workspace(3, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let mut all = f.enqueue_started_many(&t, 3).await;
    let first = f.claim_jobs(10).await;
    let finishes = finish_each(&first, &completed());
    let finished = f.finish_jobs_with_executions(WORKER, &finishes).await;
    assert_eq!(finished.ended, [], "each job has another node");
    all.sort_by_key(|s| s.execution);
    let mut last = HashMap::new();
    for job in f.claim_jobs(10).await {
        let execution = f.job(job.id).await.execution;
        last.insert(execution.expect("the job belongs to a node"), job.claim());
    }
    let claim = |n: usize| last[&all[n].execution];
    let finishes = [
        JobFinish {
            claim: claim(0),
            end: completed(),
        },
        JobFinish {
            claim: claim(1),
            end: failed(RetryMode::Never),
        },
        JobFinish {
            claim: claim(2),
            end: failed(RetryMode::Policy),
        },
    ];
    let finished = f.finish_jobs_with_executions(WORKER, &finishes).await;
    let ended = |n: usize, end: ExecutionEnd, status, error: Option<&str>| EndedExecution {
        execution: all[n].execution,
        request: all[n].request,
        end,
        status,
        reason: end.failure_reason(),
        error: error.map(str::to_owned),
    };
    let error = f.graph_run(all[1].execution).await.error;
    let expected = [
        ended(0, ExecutionEnd::Completed, Completed, None),
        ended(1, ExecutionEnd::Failed, Failed, error.as_deref()),
    ];
    assert_eq!(finished.ended, expected);
    assert!(error.is_some_and(|error| error.starts_with("node `b` failed: ")));
    let again = f.finish_jobs_with_executions(WORKER, &finishes).await;
    assert_eq!(again.jobs, [JobFinished::LeaseLost; 3]);
    assert_eq!(again.ended, []);
    graph_invariants::check(&f, &all).await;
}

/// All jobs of a graph carry the trace of their request; other jobs do not.
pub async fn jobs_carry_the_trace_of_their_request(f: Fixture) {
    let t = f
        .graph_workspace(2, graph(&["a", "b", "c"], &[("a", "b"), ("a", "c")]))
        .await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for trace_context in [Some(trace.to_owned()), None] {
        let new = NewRequest {
            trace_context: trace_context.clone(),
            ..new_request(&t)
        };
        f.enqueue_one(&t, new).await;
        let claimed = f.claim_one().await;
        f.start_graph(&claimed).await;
        f.dispatch(&claimed).await;
    }
    for round in [2, 4] {
        let jobs = f.claim_jobs(10).await;
        assert_eq!(jobs.len(), round);
        let traced = jobs
            .iter()
            .filter(|j| j.trace_context.as_deref() == Some(trace));
        assert_eq!(traced.count(), round / 2);
        let untraced = jobs.iter().filter(|j| j.trace_context.is_none());
        assert_eq!(untraced.count(), round / 2);
        for job in &jobs {
            let kept = f.job(job.id).await;
            assert_eq!(kept.trace_context, job.trace_context);
        }
        f.finish_jobs(WORKER, &finish_each(&jobs, &completed()))
            .await;
    }
}

/// The largest allowed graph runs: one node, then all but two at once, then one.
pub async fn largest_graph_runs_to_its_end(f: Fixture) {
    let wide: Vec<String> = (0..GRAPH_MAX_NODES - 2).map(|n| format!("n{n}")).collect();
    let mut nodes = vec!["first"];
    nodes.extend(wide.iter().map(String::as_str));
    nodes.push("last");
    let mut edges = Vec::new();
    for node in &wide {
        edges.extend([("first", node.as_str()), (node.as_str(), "last")]);
    }
    let t = f.graph_workspace(1, graph(&nodes, &edges)).await;
    let s = f.enqueue_started(&t).await;
    f.complete_node("first", json!(0)).await;
    let mut done = 0;
    loop {
        let jobs = f.claim_jobs(250).await;
        let answers = f
            .finish_jobs(WORKER, &finish_each(&jobs, &completed_with(json!(1))))
            .await;
        assert!(
            answers
                .iter()
                .all(|answer| *answer == JobFinished::Completed)
        );
        done += jobs.len();
        if jobs.is_empty() {
            break;
        }
    }
    assert_eq!(done, GRAPH_MAX_NODES - 1);
    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.end(), Some(ExecutionEnd::Completed));
    graph_invariants::check(&f, &[s]).await;
}

/// New nodes notify workers, and the end of the last node notifies dispatchers.
pub async fn nodes_notify_workers_and_the_end_notifies_dispatchers(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let s = f.enqueue_started(&t).await;
    let job = f.claim_job().await;
    job_notification::assert_notifies(&f, "the next node", f.finish_job(&job, completed())).await;
    let job = f.claim_job().await;
    notification::assert_notifies(&f, "a freed slot", f.finish_job(&job, completed())).await;
    assert_eq!(f.node_letters(s.execution).await, "cc");
}
