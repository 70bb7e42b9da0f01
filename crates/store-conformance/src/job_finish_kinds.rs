//! One call that finishes jobs of every kind.

use crate::Fixture;
use crate::factory::{LEASE, ok};
use crate::graph_factory::{completed_with, graph};
use crate::job_factory::{WORKER, completed, failed};
use crate::{graph_invariants, job_invariants};
use leasehold_core::JsonText;
use leasehold_core::job::{JobEnd, JobFinish, JobFinished, JobRef, RetryMode};
use leasehold_store::job::{Job, JobsFinished};
use serde_json::json;

/// One call finishes plain jobs and nodes of several graphs and returns the outcomes in order. A lost lease does not affect the others.
pub async fn one_call_finishes_jobs_of_every_kind(f: Fixture) {
    let t = f
        .graph_workspace(4, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let mut all = f.enqueue_started_many(&t, 2).await;
    f.enqueue_jobs(3).await;
    all.extend(f.enqueue_started_many(&t, 2).await);
    let jobs = f.claim_jobs(10).await;
    assert_eq!(jobs.len(), 7);
    let ends = [
        completed_with(json!({"x": 1})),
        failed(RetryMode::Never),
        completed_with(json!({"y": 2})),
        failed(RetryMode::Policy),
        completed(),
        JobEnd::Returned,
        JobEnd::Snoozed(LEASE),
    ];
    let mut finishes: Vec<JobFinish> = jobs
        .iter()
        .zip(ends)
        .map(|(job, end)| JobFinish {
            claim: job.claim(),
            end,
        })
        .collect();
    for (at, of) in [(1, 0), (4, 2)] {
        let claim = JobRef {
            token: jobs[of].token + 1_000,
            ..jobs[of].claim()
        };
        let end = failed(RetryMode::Never);
        finishes.insert(at, JobFinish { claim, end });
    }
    let finished = f.finish_jobs_with_executions(WORKER, &finishes).await;
    let queued = |job: &Job| JobFinished::Queued { run_at: job.run_at };
    let (retried, back, later) = (
        f.job(jobs[3].id).await,
        f.job(jobs[5].id).await,
        f.job(jobs[6].id).await,
    );
    let expected = [
        JobFinished::Completed,
        JobFinished::LeaseLost,
        JobFinished::Failed,
        JobFinished::Completed,
        JobFinished::LeaseLost,
        queued(&retried),
        JobFinished::Completed,
        queued(&back),
        queued(&later),
    ];
    assert_eq!(finished.jobs, expected);
    assert_eq!([retried.attempts, back.attempts, later.attempts], [1, 0, 0]);
    let result = f.job(jobs[2].id).await.result;
    assert_eq!(result, Some(JsonText::from(&json!({"y": 2}))));
    let ended: Vec<_> = finished.ended.iter().map(|ended| ended.execution).collect();
    assert_eq!(ended, [all[1].execution]);
    for (s, letters) in all.iter().zip(["cr", "fx", "rw", "rw"]) {
        assert_eq!(f.node_letters(s.execution).await, letters);
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 3);
    graph_invariants::check(&f, &all).await;
    job_invariants::check(&f).await;
}

/// A call without claims does nothing.
pub async fn call_without_claims_does_nothing(f: Fixture) {
    let nothing = ok(f.store.job_finish(WORKER, &[]).await);
    assert_eq!(nothing, JobsFinished::default());
}
