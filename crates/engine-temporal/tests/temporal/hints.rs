//! Recently ended workflows, pollers, and health.

use crate::worker::Worker;
use crate::{WAIT_TIMEOUT, bound_to, engine, options, order};
use leasehold_core::{ExecutionId, Timestamp, VersionBody};
use leasehold_engine::Engine;
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::{TestTemporal, eventually};
use std::collections::HashSet;
use uuid::Uuid;

/// Returns all executions ended since then, and the latest end time.
async fn ended_since(since: Timestamp) -> (HashSet<ExecutionId>, Option<Timestamp>) {
    let engine = engine();
    let (mut executions, mut newest, mut next) = (HashSet::new(), None, None);
    loop {
        let page = engine.ended_since(since, next).await.unwrap();
        executions.extend(page.executions);
        newest = newest.max(page.newest);
        next = page.next;
        if next.is_none() {
            return (executions, newest);
        }
    }
}

#[tokio::test]
async fn only_ended_leasehold_workflows_are_listed() {
    let engine = engine();
    let before = Timestamp::now();
    let (open, done, stopped) = (order(), order(), order());
    for start in [&open, &done, &stopped] {
        engine.start(start).await;
    }
    Worker::of(&done).await.complete().await;
    engine.terminate(stopped.execution, "stop").await.unwrap();
    let foreign = format!("execution-of-{}", Uuid::now_v7());
    let server = TestTemporal::shared();
    let start = ["workflow", "start", "--type", "Other", "--task-queue", "q"];
    server
        .cli(&[&start[..], &["--workflow-id", &foreign]].concat())
        .unwrap();
    server
        .cli(&["workflow", "terminate", "--workflow-id", &foreign])
        .unwrap();
    let seen = eventually(WAIT_TIMEOUT, async || {
        let (ended, _) = ended_since(before).await;
        ended.contains(&done.execution) && ended.contains(&stopped.execution)
    });
    assert!(seen.await);
    let (ended, newest) = ended_since(before).await;
    assert!(!ended.contains(&open.execution));
    assert!(newest.unwrap() >= before);
    let (later, _) = ended_since(Timestamp::now() + WAIT_TIMEOUT).await;
    assert!(later.is_empty());
}

#[tokio::test]
async fn continued_workflow_has_not_ended() {
    let (engine, start) = (engine(), order());
    let before = Timestamp::now();
    engine.start(&start).await;
    Worker::of(&start).await.continue_as_new(0).await;
    let marker = order();
    engine.start(&marker).await;
    engine.terminate(marker.execution, "stop").await.unwrap();
    let seen = eventually(WAIT_TIMEOUT, async || {
        ended_since(before).await.0.contains(&marker.execution)
    });
    assert!(seen.await);
    assert!(!ended_since(before).await.0.contains(&start.execution));
}

#[tokio::test]
async fn pollers_are_counted() {
    let (engine, start) = (engine(), order());
    let body = &start.version.body;
    assert_eq!(engine.pollers(body).await, Ok(Some(0)));
    engine.start(&start).await;
    Worker::of(&start).await.poll().await;
    assert_eq!(engine.pollers(body).await, Ok(Some(1)));
    let VersionBody::Binding { task_queue, .. } = body else {
        panic!("a binding");
    };
    let same_queue = bound_to("Other", task_queue);
    assert_eq!(engine.pollers(&same_queue.version.body).await, Ok(Some(1)));
}

#[tokio::test]
async fn running_server_is_healthy() {
    assert_eq!(engine().health().await, Ok(()));
    assert_eq!(engine().name(), "temporal");
}

#[tokio::test]
async fn namespaces_of_one_cluster_have_their_own_identity() {
    let server = TestTemporal::shared();
    let in_namespace = |namespace: &str| {
        TemporalEngine::new(TemporalOptions {
            namespace: namespace.to_owned(),
            ..options()
        })
        .unwrap()
    };
    let name = server.fresh_namespace();
    let (default, other) = (in_namespace("default"), in_namespace(&name));
    let (default, again) = (default.identity().await, default.identity().await);
    assert_eq!(default, again);
    let (default, other) = (default.unwrap(), other.identity().await.unwrap());
    assert_eq!(
        (&*default.namespace, &*other.namespace),
        ("default", &*name)
    );
    assert!(!default.cluster_id.is_empty());
    assert_eq!(default.cluster_id, other.cluster_id);
    assert!(!default.has_same_executions(&other));
}
