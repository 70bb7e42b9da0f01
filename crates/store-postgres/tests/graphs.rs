//! What only PostgreSQL can get wrong about graphs: locks that others hold, and the order in which many take them.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::graph::{Graph, GraphStop, Node};
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_store_conformance::factory::LEASE;
use leasehold_store_conformance::graph_factory::{
    Started, came_to, diamond, graph, graph_of, task_in, tried_task,
};
use leasehold_store_conformance::job_factory::{QUEUE, WORKER, all_end, completed, failed};
use leasehold_store_conformance::{Fixture, clock, graph_invariants};
use leasehold_testkit::eventually;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;
use tokio_postgres::Client;

const CLAIM_LOCK: &str = include_str!("sql/job_claim_lock.sql");
const ENQUEUE_EXACT_NUMBER: &str = include_str!("sql/enqueue_exact_number.sql");
const CANCEL_WAITING: &str = include_str!("sql/cancel_waiting.sql");
const GRAPH_LOCK: &str = include_str!("sql/graph_lock.sql");
const SOMEONE_WAITS: &str = include_str!("sql/someone_waits.sql");

/// A store, and a connection of somebody else.
async fn ground() -> (Arc<Fixture>, Client) {
    let clock = clock();
    let database = support::database().await;
    let other = connect(&database).await;
    let store = support::store(&database, clock.clone());
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    (Arc::new(fixture), other)
}

async fn somebody_waits(other: &Client) -> bool {
    eventually(Duration::from_secs(10), || async {
        let row = other.query_one(SOMEONE_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") > 0
    })
    .await
}

/// Somebody claims, and is not done yet.
async fn claiming(other: &Client) {
    other.batch_execute("BEGIN").await.unwrap();
    other.query_one(CLAIM_LOCK, &[]).await.unwrap();
}

/// `jsonb` keeps numbers that no double holds; the first nodes are given them as the later ones are.
#[tokio::test]
async fn numbers_of_any_length_reach_every_node_to_the_last_digit() {
    let (f, client) = ground().await;
    let site = f.graph_site(1, graph(&["a", "b"], &[("a", "b")])).await;
    let call: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
        [&site.workspace.0, &site.definition.0];
    client.query_one(ENQUEUE_EXACT_NUMBER, &call).await.unwrap();
    let claimed = f.claim_one().await;
    f.start_graph(&claimed).await;
    f.dispatch(&claimed).await;
    let numbers = "[12345678901234567890123, 0.12345678901234567890123, 9007199254740993]";
    for node in ["a", "b"] {
        let jobs = f.take_nodes(&[node]).await;
        let input = jobs[0].payload.as_str();
        assert!(input.contains(numbers), "{node}: {input}");
        f.end(&jobs[0], completed()).await;
    }
    assert_eq!(f.letters(claimed.execution).await, "cc");
}

#[tokio::test]
async fn a_node_completes_while_somebody_claims_and_the_next_is_put_into_its_queue() {
    let (f, other) = ground().await;
    let site = f.graph_site(1, diamond()).await;
    let s = f.started(&site).await;
    let jobs = f.take_nodes(&["a"]).await;
    claiming(&other).await;
    let answer = f.end(&jobs[0], completed()).await;
    assert_eq!(answer, JobFinished::Completed);
    assert_eq!(f.letters(s.execution).await, "crrw");
    other.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn the_only_node_that_runs_fails_while_somebody_claims() {
    let (f, other) = ground().await;
    let site = f.graph_site(1, diamond()).await;
    let s = f.started(&site).await;
    let jobs = f.take_nodes(&["a"]).await;
    claiming(&other).await;
    let answer = f.end(&jobs[0], failed(Again::Never)).await;
    assert_eq!(answer, JobFinished::Failed);
    assert_eq!(f.letters(s.execution).await, "fxxx");
    other.batch_execute("COMMIT").await.unwrap();
    graph_invariants::check(&f, &[s]).await;
}

#[tokio::test]
async fn what_gives_a_queued_node_up_waits_for_the_claim_that_could_take_it() {
    let (f, other) = ground().await;
    let site = f.graph_site(1, graph(&["a", "b"], &[])).await;
    let s = f.started(&site).await;
    let jobs = f.take(1).await;
    claiming(&other).await;
    let failing = {
        let (f, job) = (Arc::clone(&f), jobs[0].clone());
        tokio::spawn(async move { f.end(&job, failed(Again::Never)).await })
    };
    assert!(somebody_waits(&other).await, "the end waits for the claim");
    // Its own lease is not lost by that, and nobody else waits for it.
    let renewed = f.store.job_renew(WORKER, &[jobs[0].claim()], LEASE).await;
    assert_eq!(renewed.unwrap(), [jobs[0].id]);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(failing.await.unwrap(), JobFinished::Failed);
    assert_eq!(f.letters(s.execution).await, "fx");
    assert_eq!(f.take(10).await, []);
    graph_invariants::check(&f, &[s]).await;
}

#[tokio::test]
async fn a_node_that_cannot_be_given_its_input_gives_up_what_others_work_on() {
    let (f, _other) = ground().await;
    let mut next = leasehold_store_conformance::graph_factory::task("next");
    next.input = Some(json!({"$from": "/nodes/a/gone"}));
    let nodes = ["a", "b", "c"].map(leasehold_store_conformance::graph_factory::task);
    let nodes = nodes.into_iter().chain([next]).collect();
    let site = f.graph_site(1, graph_of(nodes, &[("a", "next")])).await;
    let s = f.started(&site).await;
    let jobs = f.take_nodes(&["a", "b", "c"]).await;
    let end = |job: &ClaimedJob| JobFinish {
        claim: job.claim(),
        end: completed(),
    };
    let ends = [end(&jobs[1]), end(&jobs[0]), end(&jobs[2])];
    let answers = f.end_all(WORKER, &ends).await;
    let lost = JobFinished::LeaseLost;
    let expected = [JobFinished::Completed, JobFinished::Completed, lost];
    assert_eq!(answers, expected, "what comes after the end comes too late");
    assert_eq!(f.letters(s.execution).await, "ccxf");
    let error = f.graph_run(s.execution).await.error.unwrap();
    let expected = "node `next` failed: its input needs /nodes/a/gone, which is not there";
    assert_eq!(error, expected);
    graph_invariants::check(&f, &[s]).await;
}

/// The lock of one graph is not got in time; the ends of the others count all the same.
#[tokio::test]
async fn a_graph_that_stays_locked_hides_the_end_of_no_other() {
    let (f, other) = ground().await;
    let site = f.graph_site(3, graph(&["a"], &[])).await;
    let all = f.started_many(&site, 3).await;
    let jobs = f.take(3).await;
    let of_second = |s: &&Started| {
        let payload = jobs[1].payload.as_str();
        payload.contains(&s.execution.to_string())
    };
    let locked = all.iter().find(of_second).unwrap().execution.0;
    other.batch_execute("BEGIN").await.unwrap();
    other.query_one(GRAPH_LOCK, &[&locked]).await.unwrap();
    let finishing = {
        let (f, ends) = (Arc::clone(&f), all_end(&jobs, &completed()));
        tokio::spawn(async move { f.end_all_and_see(WORKER, &ends).await })
    };
    assert!(somebody_waits(&other).await, "one end waits for the lock");
    other.query_one(CANCEL_WAITING, &[]).await.unwrap();
    let finished = finishing.await.unwrap();
    let (done, unwritten) = (JobFinished::Completed, JobFinished::NotWritten);
    assert_eq!(finished.jobs, [done, unwritten, done]);
    assert_eq!(finished.ended.len(), 2);
    let failure = finished.failure.unwrap();
    assert!(failure.contains("asks to try again"), "{failure}");

    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(f.end(&jobs[1], completed()).await, done);
    graph_invariants::check(&f, &all).await;
    assert_eq!(f.slots(site.workspace).await.in_use, 0);
}

#[tokio::test]
async fn a_node_goes_back_while_its_graph_is_locked() {
    let (f, other) = ground().await;
    let site = f.graph_site(1, graph(&["a"], &[])).await;
    let s = f.started(&site).await;
    let jobs = f.take(1).await;
    other.batch_execute("BEGIN").await.unwrap();
    let locked = s.execution.0;
    other.query_one(GRAPH_LOCK, &[&locked]).await.unwrap();
    let answer = f.end(&jobs[0], JobEnd::GivenBack).await;
    assert_eq!(answer, JobFinished::Queued { run_at: f.now() });
    other.batch_execute("ROLLBACK").await.unwrap();
    graph_invariants::check(&f, &[s]).await;
}

/// first → so many in two queues → last, each tried twice.
fn wide(width: usize) -> Graph {
    let middle: Vec<String> = (0..width).map(|n| format!("m{n}")).collect();
    let node = |(n, id): (usize, &String)| Node {
        retry: tried_task(id, 2).retry,
        ..task_in(["mail", "post"][n % 2], id)
    };
    let mut nodes = vec![tried_task("first", 2), tried_task("last", 2)];
    nodes.extend(middle.iter().enumerate().map(node));
    let mut edges = Vec::new();
    for id in &middle {
        edges.extend([("first", id.as_str()), (id.as_str(), "last")]);
    }
    graph_of(nodes, &edges)
}

fn some_end() -> Option<JobEnd> {
    match fastrand::u32(0..100) {
        0..80 => Some(came_to(json!(fastrand::u32(..)))),
        80..86 => Some(failed(Again::Policy)),
        86..88 => Some(failed(Again::Never)),
        88..92 => Some(JobEnd::GivenBack),
        92..96 => Some(JobEnd::Snoozed(Duration::from_secs(1))),
        _ => None,
    }
}

/// Claims and ends until told to stop; some claims it forgets.
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
            some_end().map(|end| JobFinish { claim, end })
        };
        let ends: Vec<JobFinish> = jobs.iter().filter_map(end).collect();
        f.store.job_finish(&name, &ends).await.unwrap();
        if jobs.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

/// Ends leases and whatever time has ended, and stops a graph now and then, until all have ended.
async fn settle(f: &Fixture, all: &[Started]) {
    let mut open: Vec<Started> = all.to_vec();
    while !open.is_empty() {
        f.advance(fastrand::u64(1..3));
        f.store.job_requeue_expired(1_000).await.unwrap();
        f.settle_graphs().await;
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
async fn ends_stops_expiry_and_settling_at_once_never_deadlock_and_leave_everything_true() {
    let (f, _other) = ground().await;
    let site = f
        .timed_graph_site(100, wide(8), Some(Duration::from_secs(300)))
        .await;
    let all = f.started_many(&site, 60).await;
    let done = Arc::default();
    let workers: Vec<_> = (0..5)
        .map(|n| tokio::spawn(work(Arc::clone(&f), format!("w{n}"), Arc::clone(&done))))
        .collect();
    settle(&f, &all).await;
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    graph_invariants::check(&f, &all).await;
    assert_eq!(f.slots(site.workspace).await.in_use, 0);
    assert_eq!(f.settle_graphs().await, []);
}
