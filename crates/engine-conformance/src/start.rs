//! A start: however often it is told, one execution is started, and what cannot be started is refused.

use crate::crew::Crew;
use crate::fixture::EngineFixture;
use crate::graphs::{chain, task};
use futures::future::join_all;
use leasehold_core::ExecutionId;
use leasehold_engine::{Description, StartOutcome, Told};
use leasehold_store::fresh_id;
use serde_json::json;

/// The answer to a start of what runs already.
fn repeated(g: &EngineFixture) -> StartOutcome {
    if g.tells_repetitions {
        StartOutcome::AlreadyStarted { ended: false }
    } else {
        StartOutcome::Started
    }
}

/// A second start finds the first.
pub async fn a_repeated_one_is_the_same(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let graph = chain(vec![
        task(&g.queue, "first", "hold"),
        task(&g.queue, "second", "echo"),
    ]);
    let start = g.start(graph, json!({})).await;
    assert_eq!(g.engine.start(&start).await, repeated(&g));
    crew.let_go();
    g.completed(&start).await;
    let ended = StartOutcome::AlreadyStarted { ended: true };
    assert_eq!(g.engine.start(&start).await, ended);
    assert_eq!((crew.begun("first"), crew.begun("second")), (1, 1));
}

/// Of many at once one starts it, and its nodes are begun once.
pub async fn of_many_at_once_one_counts(g: EngineFixture) {
    let crew = Crew::at_work(&g);
    let graph = chain(vec![task(&g.queue, "only", "hold")]);
    let start = g.admit(graph, json!({}), None).await;
    let all = join_all((0..8).map(|_| g.engine.start(&start))).await;
    let started = all.iter().filter(|one| **one == StartOutcome::Started);
    let counted = if g.tells_repetitions { 1 } else { 8 };
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
    crew.let_go();
    g.completed(&start).await;
    assert_eq!(crew.begun("only"), 1);
}

/// An execution is open from its start to its end.
pub async fn leads_to_an_open_execution(g: EngineFixture) {
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let start = g.start(graph, json!({})).await;
    let seen = g.engine.describe(start.execution).await;
    assert_eq!(seen, Ok(Description::Open));
    let crew = Crew::at_work(&g);
    g.completed(&start).await;
    crew.leave().await;
}

/// What was never started is unknown, whatever is asked of it.
pub async fn what_had_none_is_unknown(g: EngineFixture) {
    let graph = chain(vec![task(&g.queue, "only", "echo")]);
    let admitted = g.admit(graph, json!({}), None).await;
    let body = &admitted.version.body;
    let nobody: ExecutionId = fresh_id();
    for execution in [nobody, admitted.execution] {
        let engine = &g.engine;
        assert_eq!(engine.describe(execution).await, Ok(Description::NotFound));
        assert_eq!(engine.cancel(execution, "no").await, Ok(Told::NotFound));
        assert_eq!(engine.terminate(execution, "no").await, Ok(Told::NotFound));
        assert_eq!(engine.nodes(execution, body).await, Ok(None));
    }
}

/// An engine that serves starts says that it is well.
pub async fn is_served_by_an_engine_that_is_well(g: EngineFixture) {
    assert_eq!(g.engine.health().await, Ok(()));
}
