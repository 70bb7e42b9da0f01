//! Starting an execution: idempotent, and unknown executions are reported.

use crate::fixture::EngineFixture;
use crate::graphs::{chain, task};
use crate::task_workers::TaskWorkers;
use futures::future::join_all;
use leasehold_core::ExecutionId;
use leasehold_engine::{Description, StartOutcome, StopAck};
use leasehold_store::fresh_id;
use serde_json::json;

/// The outcome of a repeated start of a running execution.
fn repeated_start(g: &EngineFixture) -> StartOutcome {
    if g.reports_repeated_starts {
        StartOutcome::AlreadyStarted { ended: false }
    } else {
        StartOutcome::Started
    }
}

/// A repeated start finds the first.
pub async fn repeated_start_finds_the_first(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let graph = chain(vec![
        task(&g.queue, "first", "hold"),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    assert_eq!(g.engine.start(&start).await, repeated_start(&g));
    workers.release_held();
    g.expect_completed(&start).await;
    let ended = StartOutcome::AlreadyStarted { ended: true };
    assert_eq!(g.engine.start(&start).await, ended);
    assert_eq!(
        (workers.attempts("first"), workers.attempts("second")),
        (1, 1)
    );
}

/// Of concurrent starts one counts, and each node is started once.
pub async fn concurrent_starts_start_once(g: EngineFixture) {
    let workers = TaskWorkers::start(&g);
    let graph = chain(vec![task(&g.queue, "only", "hold")]);
    let start = g.admit(graph, json!({}), None).await;
    let all = join_all((0..8).map(|_| g.engine.start(&start))).await;
    let started = all.iter().filter(|one| **one == StartOutcome::Started);
    let counted = if g.reports_repeated_starts { 1 } else { 8 };
    assert_eq!(started.count(), counted, "{all:?}");
    for one in &all {
        assert!(
            matches!(
                one,
                StartOutcome::Started | StartOutcome::AlreadyStarted { ended: false }
            ),
            "{all:?}"
        );
    }
    workers.release_held();
    g.expect_completed(&start).await;
    assert_eq!(workers.attempts("only"), 1);
}

/// An execution is open from its start to its end.
pub async fn started_execution_is_open_until_its_end(g: EngineFixture) {
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let start = g.start(graph, json!({})).await;
    let description = g.engine.describe(start.execution).await;
    assert_eq!(description, Ok(Description::Open));
    let workers = TaskWorkers::start(&g);
    g.expect_completed(&start).await;
    workers.stop().await;
}

/// An execution that was never started is unknown to every call.
pub async fn execution_that_was_not_started_is_unknown(g: EngineFixture) {
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let admitted = g.admit(graph, json!({}), None).await;
    let body = &admitted.version.body;
    let unknown: ExecutionId = fresh_id();
    for execution in [unknown, admitted.execution] {
        let engine = &g.engine;
        assert_eq!(engine.describe(execution).await, Ok(Description::NotFound));
        assert_eq!(engine.cancel(execution, "no").await, Ok(StopAck::NotFound));
        assert_eq!(
            engine.terminate(execution, "no").await,
            Ok(StopAck::NotFound)
        );
        assert_eq!(engine.nodes(execution, body).await, Ok(None));
    }
}

/// A running engine reports that it is healthy.
pub async fn engine_reports_healthy(g: EngineFixture) {
    assert_eq!(g.engine.health().await, Ok(()));
}
