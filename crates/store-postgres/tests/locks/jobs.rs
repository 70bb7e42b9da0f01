//! Locked rows of graphs and of leases.

use super::{id, lock, open_fixture, promptly, unlock};
use crate::support::pace::promptly_within;
use leasehold_core::job::{ClaimedJob, JobFinished};
use leasehold_store_conformance::factory::{LEASE, ok};
use leasehold_store_conformance::graph_factory::{StartedGraph, graph};
use leasehold_store_conformance::graph_invariants;
use leasehold_store_conformance::job_factory::{
    WORKER, completed, finish_each, job_ids, job_refs, job_with_dedup_key, new_job, payload,
};
use std::time::Duration;

/// How long a claim may take beside a sweep: it waits for one locked execution, 200 ms, and not for all of them.
const ONE_EXECUTION: Duration = Duration::from_millis(500);
/// How long a call may take that meets hundreds of locked rows: if it waited for each, it would take a minute.
const HUNDREDS: Duration = Duration::from_secs(2);

/// Returns the graph that a job is a node of.
fn graph_of<'a>(all: &'a [StartedGraph], job: &ClaimedJob) -> &'a StartedGraph {
    let payload = job.payload.as_str();
    let found = all
        .iter()
        .find(|s| payload.contains(&s.execution.to_string()));
    found.expect("the payload names its execution")
}

/// The finish of a node must not hold its page of leases while it waits for a row of its request.
#[tokio::test]
async fn locked_row_of_one_execution_does_not_delay_results_and_renewals_of_others() {
    for table in [
        "workflow_execution_queue",
        "workflow_execution",
        "execution_graph",
    ] {
        let (f, operator) = open_fixture().await;
        let workspace = f.graph_workspace(3, graph(&["a"], &[])).await;
        let all = f.enqueue_started_many(&workspace, 3).await;
        let jobs = f.claim_jobs(3).await;
        let locked = graph_of(&all, &jobs[1]);
        let condition = match table {
            "workflow_execution_queue" => id(locked.request),
            "workflow_execution" => id(locked.execution),
            _ => format!("execution_id = '{}'", locked.execution),
        };
        lock(&operator, table, &condition).await;

        let ends = finish_each(&jobs, &completed());
        let finished = ok(promptly(f.store.job_finish(WORKER, &ends)).await);
        let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
        assert_eq!(finished.jobs, [done, unwritten, done], "{table}");
        let one = ok(promptly(f.store.job_finish(WORKER, &ends[1..2])).await);
        assert_eq!(one.jobs, [unwritten], "{table}");
        let renewed = ok(promptly(f.store.job_renew(WORKER, &job_refs(&jobs), LEASE)).await);
        assert_eq!(renewed.renewed, [jobs[1].id], "{table}");
        assert_eq!(renewed.busy, [], "{table}");

        unlock(&operator).await;
        assert_eq!(f.finish_job(&jobs[1], completed()).await, done);
        graph_invariants::check(&f, &all).await;
        assert_eq!(f.slots(workspace.workspace).await.in_use, 0);
    }
}

#[tokio::test]
async fn locked_page_of_leases_does_not_delay_other_pages() {
    let (f, operator) = open_fixture().await;
    f.enqueue_jobs(2).await;
    let (one, other) = (f.claim_job().await, f.claim_job().await);
    assert_ne!(one.token, other.token);
    lock(&operator, "job_lease", &format!("token = {}", one.token)).await;
    let jobs = [one.clone(), other.clone()];
    let renewed = ok(promptly(f.store.job_renew(WORKER, &job_refs(&jobs), LEASE)).await);
    assert_eq!(
        (renewed.renewed, renewed.busy),
        (vec![other.id], vec![one.id])
    );
    let ends = finish_each(&jobs, &completed());
    let finished = ok(promptly(f.store.job_finish(WORKER, &ends)).await);
    let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
    assert_eq!(finished.jobs, [unwritten, done]);
    unlock(&operator).await;
    assert_eq!(f.finish_job(&one, completed()).await, done);
    // A lease that is lost is not reported as busy.
    let gone = ok(f.store.job_renew(WORKER, &job_refs(&jobs), LEASE).await);
    assert_eq!((gone.renewed, gone.busy), (vec![], vec![]));
}

#[tokio::test]
async fn locked_note_of_one_job_does_not_delay_results_of_others() {
    let (f, operator) = open_fixture().await;
    let new: Vec<_> = (0..20).map(|_| new_job()).collect();
    f.enqueue_new_jobs(&new).await;
    let jobs = f.claim_jobs(20).await;
    for job in &jobs {
        let progress = payload(1);
        let reported = f.store.job_progress(WORKER, job.claim(), &progress);
        assert!(ok(reported.await));
    }
    let condition = format!("job_id = {}", jobs[7].id);
    lock(&operator, "job_note", &condition).await;
    let ends = finish_each(&jobs, &completed());
    let finished = ok(promptly(f.store.job_finish(WORKER, &ends)).await);
    let unwritten = |answer: &JobFinished| *answer == JobFinished::NotWritten;
    assert_eq!(finished.jobs.iter().position(unwritten), Some(7));
    let completed_jobs = finished.jobs.iter().filter(|answer| !unwritten(answer));
    assert!(
        completed_jobs
            .into_iter()
            .all(|one| *one == JobFinished::Completed)
    );
    unlock(&operator).await;
    assert_eq!(job_ids(&jobs[7..8]), [jobs[7].id]);
    assert_eq!(
        f.finish_job(&jobs[7], completed()).await,
        JobFinished::Completed
    );
}

#[tokio::test]
async fn locked_execution_does_not_keep_others_from_timing_out() {
    for table in ["workflow_execution_queue", "execution_graph"] {
        let (f, operator) = open_fixture().await;
        let timeout = Some(Duration::from_secs(60));
        let workspace = f
            .graph_workspace_with_timeout(4, graph(&["a"], &[]), timeout)
            .await;
        let all = f.enqueue_started_many(&workspace, 4).await;
        f.advance(120);
        let condition = match table {
            "workflow_execution_queue" => id(all[0].request),
            _ => format!("execution_id = '{}'", all[0].execution),
        };
        lock(&operator, table, &condition).await;
        let ended = ok(promptly(f.store.graph_expire("sweeper", 2)).await);
        assert!(!ended.is_empty(), "{table}");
        let mut total = ended.len();
        while total < 3 {
            let ended = ok(promptly(f.store.graph_expire("sweeper", 2)).await);
            assert!(!ended.is_empty(), "{table}: {total} of 3 ended");
            total += ended.len();
        }
        unlock(&operator).await;
        assert_eq!(f.expire_graphs().await.len(), 1, "{table}");
    }
}

/// Claims of a queue delete the last version of its cursor.
#[tokio::test]
async fn locked_cursor_does_not_stop_claims_of_the_queue() {
    let (f, operator) = open_fixture().await;
    f.enqueue_jobs(1).await;
    f.claim_job().await;
    lock(&operator, "job_cursor", "true").await;
    for _ in 0..3 {
        f.enqueue_jobs(1).await;
        promptly(f.claim_job()).await;
    }
    unlock(&operator).await;
    f.enqueue_jobs(1).await;
    f.claim_job().await;
    assert_eq!(f.claim_jobs(10).await, []);
}

/// A claim requeues expired jobs of all queues; a locked note or key of one of them must not stop it.
#[tokio::test]
async fn locked_note_or_key_of_an_expired_job_does_not_stop_claims() {
    for table in ["job_note", "job_key"] {
        let (f, operator) = open_fixture().await;
        let new = [job_with_dedup_key("k", None), new_job()];
        f.enqueue_new_jobs(&new).await;
        let jobs = f.claim_jobs(2).await;
        let progress = payload(1);
        let reported = f.store.job_progress(WORKER, jobs[0].claim(), &progress);
        assert!(ok(reported.await));
        lock(&operator, table, &format!("job_id = {}", jobs[0].id)).await;
        f.advance(3_600);
        let again = promptly(f.claim_jobs(10)).await;
        assert_eq!(job_ids(&again), [jobs[1].id], "{table}");
        unlock(&operator).await;
        let requeued = f.claim_jobs(10).await;
        assert_eq!(job_ids(&requeued), [jobs[0].id], "{table}");
    }
}

/// One statement may lock all requests of a tenant. A page of leases contains jobs of several.
#[tokio::test]
async fn many_locked_requests_of_one_tenant_do_not_delay_results_of_others() {
    let (f, operator) = open_fixture().await;
    let tenant = f.graph_workspace(20, graph(&["a"], &[])).await;
    let other = f.graph_workspace(4, graph(&["a"], &[])).await;
    let mut all = f.enqueue_started_many(&tenant, 20).await;
    all.extend(f.enqueue_started_many(&other, 4).await);
    let jobs = f.claim_jobs(24).await;
    assert!(jobs.iter().all(|job| job.token == jobs[0].token));
    let condition = format!("workspace_id = '{}'", tenant.workspace);
    lock(&operator, "workflow_execution_queue", &condition).await;
    let ends = finish_each(&jobs, &completed());
    let finished = ok(promptly(f.store.job_finish(WORKER, &ends)).await);
    for (job, answer) in jobs.iter().zip(&finished.jobs) {
        let is_locked = graph_of(&all, job).workspace == tenant.workspace;
        let expected = match is_locked {
            true => JobFinished::NotWritten,
            false => JobFinished::Completed,
        };
        assert_eq!(*answer, expected);
    }
    unlock(&operator).await;
    let ends = finish_each(&jobs, &completed());
    let finished = ok(f.store.job_finish(WORKER, &ends).await);
    let done = JobFinished::Completed;
    assert_eq!(finished.jobs.iter().filter(|one| **one == done).count(), 20);
    graph_invariants::check(&f, &all).await;
}

/// Ending an execution before its last node blocks claims of the queues of its nodes, which other tenants use too.
#[tokio::test]
async fn locked_rows_of_executions_that_time_out_do_not_delay_claims_of_their_queue() {
    for table in ["workflow_execution_queue", "job_lease"] {
        let (f, operator) = open_fixture().await;
        let timeout = Some(Duration::from_secs(60));
        let workspace = f
            .graph_workspace_with_timeout(10, graph(&["a"], &[]), timeout)
            .await;
        let all = f.enqueue_started_many(&workspace, 10).await;
        f.claim_jobs(5).await;
        f.advance(61);
        lock(&operator, table, "true").await;
        let store = std::sync::Arc::clone(&f.store);
        let sweep = tokio::spawn(async move { ok(store.graph_expire("sweeper", 100).await).len() });
        f.enqueue_jobs(10).await;
        for _ in 0..10 {
            // A claim waits for the end of one execution at most.
            promptly_within(ONE_EXECUTION, f.claim_jobs_as("other", 1)).await;
        }
        let mut ended = sweep.await.unwrap();
        unlock(&operator).await;
        ended += f.expire_graphs().await.len();
        assert_eq!(ended, all.len(), "{table}");
    }
}

/// A worker sends thousands of results in one call.
#[tokio::test]
async fn hundreds_of_locked_results_do_not_delay_the_result_of_another_tenant() {
    for table in ["workflow_execution_queue", "execution_graph"] {
        let (f, operator) = open_fixture().await;
        let tenant = f.graph_workspace(300, graph(&["a"], &[])).await;
        let other = f.graph_workspace(1, graph(&["a"], &[])).await;
        let locked = f.enqueue_started_many(&tenant, 300).await;
        let jobs = f.claim_jobs(300).await;
        assert_eq!(jobs.len(), 300);
        let free = f.enqueue_started_many(&other, 1).await;
        let last = f.claim_job().await;
        let condition = match table {
            "execution_graph" => {
                "execution_id IN (SELECT id FROM workflow_execution WHERE workspace_id = '{}')"
            }
            _ => "workspace_id = '{}'",
        };
        let condition = condition.replace("{}", &tenant.workspace.to_string());
        lock(&operator, table, &condition).await;
        let all: Vec<ClaimedJob> = jobs.into_iter().chain([last]).collect();
        let ends = finish_each(&all, &completed());
        let finish = f.store.job_finish(WORKER, &ends);
        let finished = ok(promptly_within(HUNDREDS, finish).await);
        let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
        assert_eq!(finished.jobs[300], done, "{table}");
        assert!(finished.jobs[..300].iter().all(|one| *one == unwritten));
        unlock(&operator).await;
        let finished = ok(f.store.job_finish(WORKER, &ends[..300]).await);
        assert!(finished.jobs.iter().all(|one| *one == done), "{table}");
        graph_invariants::check(&f, &locked).await;
        graph_invariants::check(&f, &free).await;
    }
}

#[tokio::test]
async fn hundreds_of_locked_executions_do_not_keep_another_from_timing_out() {
    let (f, operator) = open_fixture().await;
    let timeout = Some(Duration::from_secs(60));
    let nodes = || graph(&["a"], &[]);
    let tenant = f.graph_workspace_with_timeout(300, nodes(), timeout).await;
    let other = f.graph_workspace_with_timeout(1, nodes(), timeout).await;
    f.enqueue_started_many(&tenant, 300).await;
    f.advance(1);
    let free = f.enqueue_started_many(&other, 1).await;
    f.advance(120);
    let condition = format!("workspace_id = '{}'", tenant.workspace);
    lock(&operator, "workflow_execution_queue", &condition).await;
    let expire = f.store.graph_expire("sweeper", 100);
    let ended = ok(promptly_within(HUNDREDS, expire).await);
    let ended: Vec<_> = ended.iter().map(|one| one.request).collect();
    assert_eq!(ended, [free[0].request]);
    unlock(&operator).await;
    assert_eq!(f.expire_graphs().await.len(), 300);
}
