//! Graphs under concurrency on PostgreSQL: locks held by other transactions, and the lock order.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::graph::{Graph, GraphStop, Node};
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_store_conformance::factory::LEASE;
use leasehold_store_conformance::graph_factory::{
    StartedGraph, completed_with, diamond, graph, graph_of, task_in, task_with_max_attempts,
};
use leasehold_store_conformance::job_factory::{QUEUE, WORKER, completed, failed, finish_each};
use leasehold_store_conformance::{Fixture, clock, graph_invariants};
use leasehold_testkit::eventually;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;
use tokio_postgres::Client;

const CLAIM_LOCK: &str = include_str!("sql/job_claim_lock.sql");
const ENQUEUE_EXACT_NUMBER: &str = include_str!("sql/enqueue_exact_number.sql");
const GRAPH_LOCK: &str = include_str!("sql/graph_lock.sql");
const LOCK_WAITS: &str = include_str!("sql/lock_waits.sql");

/// Returns a store, and a connection of another client.
async fn open_fixture() -> (Arc<Fixture>, Client) {
    let clock = clock();
    let database = support::database().await;
    let other = connect(&database).await;
    let store = support::store(&database, clock.clone());
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    (Arc::new(fixture), other)
}

async fn is_lock_awaited(other: &Client) -> bool {
    eventually(Duration::from_secs(60), || async {
        let row = other.query_one(LOCK_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") > 0
    })
    .await
}

/// Holds the lock of a claim in an open transaction.
async fn hold_claim_lock(other: &Client) {
    other.batch_execute("BEGIN").await.unwrap();
    other.query_one(CLAIM_LOCK, &[]).await.unwrap();
}

/// `jsonb` stores numbers that do not fit a double; all nodes must receive them unchanged.
#[tokio::test]
async fn long_numbers_reach_every_node_unchanged() {
    let (f, client) = open_fixture().await;
    let workspace = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let call: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
        [&workspace.workspace.0, &workspace.definition.0];
    client.query_one(ENQUEUE_EXACT_NUMBER, &call).await.unwrap();
    let claimed = f.claim_one().await;
    f.start_graph(&claimed).await;
    f.dispatch(&claimed).await;
    let numbers = "[12345678901234567890123, 0.12345678901234567890123, 9007199254740993]";
    for node in ["a", "b"] {
        let jobs = f.claim_nodes(&[node]).await;
        let input = jobs[0].payload.as_str();
        assert!(input.contains(numbers), "{node}: {input}");
        f.finish_job(&jobs[0], completed()).await;
    }
    assert_eq!(f.node_letters(claimed.execution).await, "cc");
}

#[tokio::test]
async fn node_completes_and_next_is_enqueued_during_a_claim() {
    let (f, other) = open_fixture().await;
    let workspace = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&workspace).await;
    let jobs = f.claim_nodes(&["a"]).await;
    hold_claim_lock(&other).await;
    let answer = f.finish_job(&jobs[0], completed()).await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.node_letters(s.execution).await, "crrw");
    other.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn only_running_node_fails_during_a_claim() {
    let (f, other) = open_fixture().await;
    let workspace = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&workspace).await;
    let jobs = f.claim_nodes(&["a"]).await;
    hold_claim_lock(&other).await;
    let answer = f.finish_job(&jobs[0], failed(RetryMode::Never)).await;
    assert_eq!(answer, JobFinished::Failed);
    assert_eq!(f.node_letters(s.execution).await, "fxxx");
    other.batch_execute("COMMIT").await.unwrap();
    graph_invariants::check(&f, &[s]).await;
}

#[tokio::test]
async fn abandoning_a_queued_node_waits_for_a_running_claim() {
    let (f, other) = open_fixture().await;
    let workspace = f.graph_workspace(1, graph(&["a", "b"], &[])).await;
    let s = f.enqueue_started(&workspace).await;
    let jobs = f.claim_jobs(1).await;
    hold_claim_lock(&other).await;
    let failing = {
        let (f, job) = (Arc::clone(&f), jobs[0].clone());
        tokio::spawn(async move { f.finish_job(&job, failed(RetryMode::Never)).await })
    };
    assert!(
        is_lock_awaited(&other).await,
        "the finish waits for the claim"
    );
    // Its own lease can still be renewed meanwhile.
    let renewed = f.store.job_renew(WORKER, &[jobs[0].claim()], LEASE).await;
    assert_eq!(renewed.unwrap().renewed, [jobs[0].id]);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(failing.await.unwrap(), JobFinished::Failed);
    assert_eq!(f.node_letters(s.execution).await, "fx");
    assert_eq!(f.claim_jobs(10).await, []);
    graph_invariants::check(&f, &[s]).await;
}

#[tokio::test]
async fn node_with_unresolvable_input_abandons_running_nodes() {
    let (f, _other) = open_fixture().await;
    let mut next = leasehold_store_conformance::graph_factory::task("next");
    next.input = Some(json!({"$from": "/nodes/a/gone"}));
    let nodes = ["a", "b", "c"].map(leasehold_store_conformance::graph_factory::task);
    let nodes = nodes.into_iter().chain([next]).collect();
    let workspace = f
        .graph_workspace(1, graph_of(nodes, &[("a", "next")]))
        .await;
    let s = f.enqueue_started(&workspace).await;
    let jobs = f.claim_nodes(&["a", "b", "c"]).await;
    let end = |job: &ClaimedJob| JobFinish {
        claim: job.claim(),
        end: completed(),
    };
    let ends = [end(&jobs[1]), end(&jobs[0]), end(&jobs[2])];
    let answers = f.finish_jobs(WORKER, &ends).await;
    let lost = JobFinished::LeaseLost;
    let expected = [JobFinished::Completed, JobFinished::Completed, lost];
    assert_eq!(
        answers, expected,
        "a job finished after the graph ended has lost its lease"
    );
    assert_eq!(f.node_letters(s.execution).await, "ccxf");
    let error = f.graph_run(s.execution).await.error.unwrap();
    let expected =
        "node `next` failed: cannot build the node's input: /nodes/a/gone does not exist";
    assert_eq!(error, expected);
    graph_invariants::check(&f, &[s]).await;
}

/// The lock of one graph times out; the results of the other graphs are written.
#[tokio::test]
async fn locked_graph_does_not_block_results_of_others() {
    let (f, other) = open_fixture().await;
    let workspace = f.graph_workspace(3, graph(&["a"], &[])).await;
    let all = f.enqueue_started_many(&workspace, 3).await;
    let jobs = f.claim_jobs(3).await;
    let of_second = |s: &&StartedGraph| {
        let payload = jobs[1].payload.as_str();
        payload.contains(&s.execution.to_string())
    };
    let locked = all.iter().find(of_second).unwrap().execution.0;
    other.batch_execute("BEGIN").await.unwrap();
    other.query_one(GRAPH_LOCK, &[&locked]).await.unwrap();
    let ends = finish_each(&jobs, &completed());
    let finished = f.finish_jobs_with_executions(WORKER, &ends).await;
    let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
    assert_eq!(finished.jobs, [done, unwritten, done]);
    assert_eq!(finished.ended.len(), 2);
    let failure = finished.failure.unwrap();
    assert!(failure.contains("transaction conflict"), "{failure}");

    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(f.finish_job(&jobs[1], completed()).await, done);
    graph_invariants::check(&f, &all).await;
    assert_eq!(f.slots(workspace.workspace).await.in_use, 0);
}

#[tokio::test]
async fn node_returns_to_its_queue_while_its_graph_is_locked() {
    let (f, other) = open_fixture().await;
    let workspace = f.graph_workspace(1, graph(&["a"], &[])).await;
    let s = f.enqueue_started(&workspace).await;
    let jobs = f.claim_jobs(1).await;
    other.batch_execute("BEGIN").await.unwrap();
    let locked = s.execution.0;
    other.query_one(GRAPH_LOCK, &[&locked]).await.unwrap();
    let answer = f.finish_job(&jobs[0], JobEnd::Returned).await;
    assert_eq!(answer, JobFinished::Queued { run_at: f.now() });
    other.batch_execute("ROLLBACK").await.unwrap();
    graph_invariants::check(&f, &[s]).await;
}

/// Returns a graph: first → `width` nodes in two queues → last, each with two attempts.
fn wide(width: usize) -> Graph {
    let middle: Vec<String> = (0..width).map(|n| format!("m{n}")).collect();
    let node = |(n, id): (usize, &String)| Node {
        retry: task_with_max_attempts(id, 2).retry,
        ..task_in(["mail", "post"][n % 2], id)
    };
    let mut nodes = vec![
        task_with_max_attempts("first", 2),
        task_with_max_attempts("last", 2),
    ];
    nodes.extend(middle.iter().enumerate().map(node));
    let mut edges = Vec::new();
    for id in &middle {
        edges.extend([("first", id.as_str()), (id.as_str(), "last")]);
    }
    graph_of(nodes, &edges)
}

fn random_end() -> Option<JobEnd> {
    match fastrand::u32(0..100) {
        0..80 => Some(completed_with(json!(fastrand::u32(..)))),
        80..86 => Some(failed(RetryMode::Policy)),
        86..88 => Some(failed(RetryMode::Never)),
        88..92 => Some(JobEnd::Returned),
        92..96 => Some(JobEnd::Snoozed(Duration::from_secs(1))),
        _ => None,
    }
}

/// Claims and finishes jobs until `done`; abandons some claims.
async fn work(f: Arc<Fixture>, name: String, done: Arc<std::sync::atomic::AtomicBool>) {
    while !done.load(std::sync::atomic::Ordering::Relaxed) {
        let claim = JobClaim {
            queue: [QUEUE, "post"][fastrand::usize(0..2)].to_owned(),
            worker: name.clone(),
            max: fastrand::u32(1..12),
            lease: Some(LEASE),
        };
        let mut jobs = f.store.job_claim(&claim).await.unwrap().jobs;
        fastrand::shuffle(&mut jobs);
        let end = |job: &ClaimedJob| {
            let claim = job.claim();
            random_end().map(|end| JobFinish { claim, end })
        };
        let ends: Vec<JobFinish> = jobs.iter().filter_map(end).collect();
        f.store.job_finish(&name, &ends).await.unwrap();
        if jobs.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

/// Expires leases and graphs, and stops a graph now and then, until all graphs have ended.
async fn expire_until_ended(f: &Fixture, all: &[StartedGraph]) {
    let mut open: Vec<StartedGraph> = all.to_vec();
    while !open.is_empty() {
        f.advance(fastrand::u64(1..3));
        f.store.job_requeue_expired(1_000).await.unwrap();
        f.expire_graphs().await;
        if fastrand::u32(0..3) == 0 {
            let stopped = open[fastrand::usize(0..open.len())].execution;
            f.stop_graph(stopped, GraphStop::Cancelled).await;
        }
        let mut left = Vec::new();
        for s in open {
            if f.graph_run(s.execution).await.state.end().is_none() {
                left.push(s);
            }
        }
        open = left;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_finish_stop_and_expiry_never_deadlock_and_keep_invariants() {
    let (f, _other) = open_fixture().await;
    let workspace = f
        .graph_workspace_with_timeout(100, wide(8), Some(Duration::from_secs(300)))
        .await;
    let all = f.enqueue_started_many(&workspace, 60).await;
    let done = Arc::default();
    let workers: Vec<_> = (0..5)
        .map(|n| tokio::spawn(work(Arc::clone(&f), format!("w{n}"), Arc::clone(&done))))
        .collect();
    expire_until_ended(&f, &all).await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    graph_invariants::check(&f, &all).await;
    assert_eq!(f.slots(workspace.workspace).await.in_use, 0);
    assert_eq!(f.expire_graphs().await, []);
}
