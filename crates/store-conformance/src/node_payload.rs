//! Payloads of the jobs of graphs: stored as references, built by the claim, bounded.

use crate::Fixture;
use crate::factory::{LEASE, new_request, ok};
use crate::graph_factory::{completed_with, graph, graph_of, task};
use crate::graph_invariants;
use crate::job_factory::{QUEUE, completed, failed, job_ids, new_job};
use leasehold_core::graph::{Graph, GraphStop, Node, NodeReference};
use leasehold_core::job::{ClaimedJob, JobFinished, RetryMode};
use leasehold_core::limits::{CLAIM_MAX_BYTES, PAYLOAD_MAX_BYTES, STEP_READ_MAX_BYTES};
use leasehold_core::{ExecutionEnd, JsonText};
use leasehold_store::graph::GraphStarted;
use leasehold_store::job::JobFilter;
use leasehold_store::request::NewRequest;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn node(value: Value) -> Node {
    serde_json::from_value(value).expect("the node is valid")
}

fn wide_graph(nodes: usize) -> Graph {
    let ids: Vec<String> = (0..nodes).map(|n| format!("n{n}")).collect();
    graph(&ids.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}

fn input(job: &ClaimedJob) -> Value {
    let payload: Value = job.payload.read().expect("the payload is JSON");
    payload["input"].clone()
}

/// A node's job stores a reference; every claim of it builds the same payload.
pub async fn every_attempt_sees_the_same_payload(f: Fixture) {
    let t = f.graph_workspace(1, wide_graph(20)).await;
    let params = json!({"text": "x".repeat(31 * 1024)});
    let request = NewRequest {
        params: JsonText::from(&params),
        ..new_request(&t)
    };
    let s = f.enqueue_started_with(&t, request).await;
    for job in f.all_jobs(&JobFilter::default(), 100).await {
        assert!(job.payload.as_str().len() < 60, "{}", job.payload.as_str());
        let reference = NodeReference::read(&job.payload).expect("a reference");
        assert_eq!(job.kind, format!("n{}", reference.node));
    }
    let first = f.claim_jobs(100).await;
    assert_eq!(first.len(), 20);
    for job in &first {
        assert_eq!(input(job), json!({"params": params, "nodes": {}}));
    }
    f.finish_job(&first[0], failed(RetryMode::Policy)).await;
    f.advance(LEASE.as_secs() + 1);
    let again = f.claim_jobs(100).await;
    assert_eq!(again.len(), 20);
    for job in &first {
        let other = again.iter().find(|other| other.id == job.id);
        assert_eq!(other.map(|other| &other.payload), Some(&job.payload));
    }
    graph_invariants::check(&f, &[s]).await;
}

/// Only jobs of graphs are resolved: a plain job keeps a payload that looks like a reference.
pub async fn plain_job_keeps_a_payload_that_looks_like_a_reference(f: Fixture) {
    let t = f.graph_workspace(1, wide_graph(1)).await;
    f.enqueue_started(&t).await;
    let payload = JsonText::of(&NodeReference { node: 0, bytes: 1 }).expect("it is JSON");
    let mut plain = new_job();
    plain.payload = payload.clone();
    let plain = f.enqueue_job(plain).await;
    let jobs = f.claim_jobs(10).await;
    assert_eq!(jobs.len(), 2);
    let found = jobs.iter().find(|job| job.id == plain).expect("claimed");
    assert_eq!(found.payload, payload);
}

/// A claim returns the jobs for which it may read and build, and at least one; later claims return the others, without a lost attempt.
pub async fn claim_is_cut_by_bytes(f: Fixture) {
    const NODES: usize = 60;
    let t = f.graph_workspace(1, wide_graph(NODES)).await;
    let request = NewRequest {
        params: JsonText::from(&json!("x".repeat(200 * 1024))),
        ..new_request(&t)
    };
    f.enqueue_started_with(&t, request).await;
    let mut all = BTreeSet::new();
    while all.len() < NODES {
        let jobs = f.claim_jobs(1_000).await;
        assert!(!jobs.is_empty(), "{} of {NODES} are claimed", all.len());
        let bytes: usize = jobs.iter().map(|job| job.payload.as_str().len()).sum();
        assert!(bytes <= CLAIM_MAX_BYTES, "{bytes}");
        assert!(jobs.iter().all(|job| job.attempt == 1));
        all.extend(job_ids(&jobs));
    }
    assert_eq!(f.claim_jobs(10).await, []);
}

/// Templates that would insert more than a URL or an input may have fail the execution at its start. The error names node and limit.
pub async fn template_over_a_limit_fails_the_execution(f: Fixture) {
    let url = "https://example.com/".to_owned() + &"{/params}".repeat(200);
    let large = Value::Array(vec![json!({"$from": "/params"}); 200]);
    let cases = [
        (
            json!({"id": "bad", "type": "http", "url": url}),
            "node `bad` failed: cannot build the node's url: it exceeds 8192 characters with /params inserted",
        ),
        (
            json!({"id": "bad", "type": "task", "queue": QUEUE, "input": large}),
            "node `bad` failed: the node's input exceeds 261120 bytes of JSON; select less with `input`",
        ),
    ];
    for (bad, error) in cases {
        let t = f
            .graph_workspace(1, graph_of(vec![task("good"), node(bad)], &[]))
            .await;
        let request = NewRequest {
            params: JsonText::from(&json!("\u{e4}".repeat(100_000))),
            ..new_request(&t)
        };
        f.enqueue_one(&t, request).await;
        let claimed = f.claim_one().await;
        let started = ok(f.store.graph_start(&(&claimed).into()).await);
        let GraphStarted::Ended(ended) = started else {
            panic!("it started: {started:?}");
        };
        assert_eq!(ended.end, ExecutionEnd::Failed);
        assert_eq!(ended.error.as_deref(), Some(error));
        assert_eq!(f.all_jobs(&JobFilter::default(), 10).await, []);
    }
}

/// Nodes whose inputs would be built from too many bytes of outputs fail the execution, however little they select.
pub async fn step_that_reads_too_much_fails_the_execution(f: Fixture) {
    let before = STEP_READ_MAX_BYTES / (PAYLOAD_MAX_BYTES - 100) + 2;
    let ids: Vec<String> = (0..before).map(|n| format!("n{n}")).collect();
    let input: Vec<Value> = ids
        .iter()
        .map(|id| json!({"$from": format!("/nodes/{id}/small")}))
        .collect();
    let last = node(json!({"id": "last", "type": "task", "queue": QUEUE, "input": input}));
    let nodes = ids.iter().map(|id| task(id)).chain([last]).collect();
    let edges: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "last")).collect();
    let t = f.graph_workspace(1, graph_of(nodes, &edges)).await;
    let s = f.enqueue_started(&t).await;
    let output = json!({"small": 1, "large": "x".repeat(PAYLOAD_MAX_BYTES - 100)});
    let jobs = f.claim_jobs(1_000).await;
    assert_eq!(jobs.len(), before);
    for job in &jobs {
        let answer = f.finish_job(job, completed_with(output.clone())).await;
        assert_eq!(answer, JobFinished::Completed);
    }
    let run = f.graph_run(s.execution).await;
    assert_eq!(run.state.end(), Some(ExecutionEnd::Failed));
    let error = run.error.expect("the error is set");
    let start = "node `last` failed: the nodes that start together read ";
    assert!(error.starts_with(start), "{error}");
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// The end of a graph deletes the jobs that were never claimed; their nodes are cancelled at that time.
pub async fn jobs_that_were_never_claimed_are_deleted_with_their_graph(f: Fixture) {
    let pause = node(json!({"id": "pause", "type": "delay", "milliseconds": 60_000}));
    let nodes = vec![task("first"), pause, task("a"), task("b"), task("next")];
    let t = f
        .graph_workspace(2, graph_of(nodes, &[("first", "next")]))
        .await;
    let both = f.enqueue_started_many(&t, 2).await;
    let first = f.claim_jobs(1).await;
    let ended = f.finish_job(&first[0], failed(RetryMode::Never)).await;
    assert_eq!(ended, JobFinished::Failed);
    let stopped = both
        .iter()
        .find(|s| Some(s.execution) != execution_of(&first[0]))
        .expect("the other execution");
    f.advance(1);
    f.stop_graph(stopped.execution, GraphStop::Cancelled).await;
    let left = f.all_jobs(&JobFilter::default(), 100).await;
    assert_eq!(
        left.iter().map(|job| job.id).collect::<Vec<_>>(),
        [first[0].id]
    );
    for s in &both {
        let finished = f.graph_run(s.execution).await.finished_at;
        assert!(finished.is_some());
        for id in ["pause", "a", "b"] {
            let node = f.node(s.execution, id).await;
            assert_eq!(
                (node.job, node.attempts, node.error),
                (None, 0, None),
                "{id}"
            );
            assert!(
                node.started_at.is_some() && node.finished_at == finished,
                "{id}"
            );
        }
    }
    assert_eq!(f.claim_jobs(10).await, []);
    f.enqueue_started(&t).await;
    assert_eq!(f.claim_jobs(10).await.len(), 3, "the queue goes on");
    f.finish_job(&first[0], completed()).await;
    graph_invariants::check(&f, &both).await;
    crate::job_invariants::check(&f).await;
}

fn execution_of(job: &ClaimedJob) -> Option<leasehold_core::ExecutionId> {
    let payload: Value = job.payload.read().ok()?;
    serde_json::from_value(payload["execution_id"].clone()).ok()
}
