//! What a store tells of the jobs of nodes, and of the executions that end with them.

use crate::Fixture;
use crate::factory::new_request;
use crate::graph_factory::graph;
use crate::graph_invariants;
use crate::job_factory::{WORKER, all_end, completed, failed};
use leasehold_core::ExecutionEnd;
use leasehold_core::RequestStatus::{Completed, Failed};
use leasehold_core::job::{Again, JobFinish, JobFinished};
use leasehold_store::graph::EndedExecution;
use leasehold_store::request::NewRequest;
use std::collections::HashMap;

/// Which executions a call brought to their end is told once, by that call, with what became of their requests.
pub async fn tells_which_executions_it_ended(f: Fixture) {
    let t = f.graph_site(3, graph(&["a", "b"], &[("a", "b")])).await;
    let mut all = f.started_many(&t, 3).await;
    let first = f.take(10).await;
    let finishes = all_end(&first, &completed());
    let finished = f.end_all_and_see(WORKER, &finishes).await;
    assert_eq!(finished.ended, [], "each has another node");
    all.sort_by_key(|s| s.execution);
    let mut last = HashMap::new();
    for job in f.take(10).await {
        let execution = f.job(job.id).await.execution;
        last.insert(execution.expect("it is a node"), job.claim());
    }
    let claim = |n: usize| last[&all[n].execution];
    let finishes = [
        JobFinish {
            claim: claim(0),
            end: completed(),
        },
        JobFinish {
            claim: claim(1),
            end: failed(Again::Never),
        },
        JobFinish {
            claim: claim(2),
            end: failed(Again::Policy),
        },
    ];
    let finished = f.end_all_and_see(WORKER, &finishes).await;
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
    let again = f.end_all_and_see(WORKER, &finishes).await;
    assert_eq!(again.jobs, [JobFinished::LeaseLost; 3]);
    assert_eq!(again.ended, []);
    graph_invariants::check(&f, &all).await;
}

/// The jobs of a graph, of its first nodes and of those that follow, carry their request's trace; those of others do not.
pub async fn jobs_go_on_with_the_trace_of_their_request(f: Fixture) {
    let t = f
        .graph_site(2, graph(&["a", "b", "c"], &[("a", "b"), ("a", "c")]))
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
        let jobs = f.take(10).await;
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
        f.end_all(WORKER, &all_end(&jobs, &completed())).await;
    }
}
