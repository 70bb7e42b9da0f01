//! What is told of a workflow while it is open, after each way to end, and when there is none.

use crate::worker::{Worker, failure};
use crate::{PATIENCE, engine, limited, options, order, workflow_id};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::{ExecutionEnd, ExecutionId, Timestamp};
use leasehold_engine::{Description, Engine, Error};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::{TestTemporal, eventually};
use std::time::Duration;
use uuid::Uuid;

/// How it ended and what was told of it; every end has its time, of just now.
pub(crate) async fn end_of(
    engine: &TemporalEngine,
    execution: ExecutionId,
) -> (ExecutionEnd, Option<String>) {
    let Ok(Description::Ended { end, error, at }) = engine.describe(execution).await else {
        panic!("it has ended");
    };
    let ago = Timestamp::now().duration_since(at.unwrap());
    assert!(ago.as_secs().abs() < 300, "it ended {ago} ago");
    (end, error)
}

fn ended(end: ExecutionEnd, error: &str) -> (ExecutionEnd, Option<String>) {
    (end, Some(error.to_owned()))
}

#[tokio::test]
async fn open_until_it_completes() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    assert_eq!(
        engine.describe(start.execution).await,
        Ok(Description::Open)
    );
    Worker::of(&start).await.complete().await;
    assert_eq!(
        end_of(&engine, start.execution).await,
        (ExecutionEnd::Completed, None)
    );
}

#[tokio::test]
async fn a_failure_is_told_with_its_causes() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let failure = failure(&["Activity task failed", "card declined", "HTTP 402"]);
    Worker::of(&start).await.fail(failure).await;
    assert_eq!(
        end_of(&engine, start.execution).await,
        ended(
            ExecutionEnd::Failed,
            "Activity task failed: card declined: HTTP 402"
        )
    );
}

#[tokio::test]
async fn an_endless_failure_is_cut() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let long = "ä".repeat(ERROR_MAX_CHARS + 1000);
    Worker::of(&start).await.fail(failure(&[&long])).await;
    let Ok(Description::Ended { error, .. }) = engine.describe(start.execution).await else {
        panic!("it has ended");
    };
    assert!(error.unwrap().chars().count() <= ERROR_MAX_CHARS);
}

#[tokio::test]
async fn a_cancelled_workflow_has_agreed_to_it() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    engine.cancel(start.execution, "not needed").await.unwrap();
    assert_eq!(
        engine.describe(start.execution).await,
        Ok(Description::Open)
    );
    Worker::of(&start).await.cancel().await;
    assert_eq!(
        end_of(&engine, start.execution).await,
        ended(ExecutionEnd::Cancelled, "the workflow was cancelled")
    );
}

#[tokio::test]
async fn a_termination_is_told_with_who_and_why() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let id = workflow_id(&start);
    let terminate = ["workflow", "terminate", "--workflow-id", &id];
    let why = ["--reason", "by hand", "--identity", "operator"];
    TestTemporal::shared()
        .cli(&[terminate, why].concat())
        .unwrap();
    assert_eq!(
        end_of(&engine, start.execution).await,
        ended(ExecutionEnd::Terminated, "terminated by operator: by hand")
    );
}

#[tokio::test]
async fn a_workflow_nobody_works_on_times_out() {
    let engine = engine();
    let start = limited(order(), Duration::from_secs(1));
    engine.start(&start).await;
    let timed_out = eventually(PATIENCE, async || {
        engine.describe(start.execution).await != Ok(Description::Open)
    });
    assert!(timed_out.await);
    assert_eq!(
        end_of(&engine, start.execution).await,
        ended(
            ExecutionEnd::TimedOut,
            "the workflow's execution timeout passed"
        )
    );
}

#[tokio::test]
async fn what_was_never_started_is_not_found() {
    let never = ExecutionId(Uuid::now_v7());
    assert_eq!(engine().describe(never).await, Ok(Description::NotFound));
}

#[tokio::test]
async fn in_a_missing_namespace_nothing_is_known_to_be_missing() {
    let lost = TemporalEngine::new(TemporalOptions {
        namespace: "nowhere".to_owned(),
        ..options()
    })
    .unwrap();
    let never = ExecutionId(Uuid::now_v7());
    for error in [
        lost.describe(never).await.unwrap_err(),
        lost.cancel(never, "").await.unwrap_err(),
        lost.terminate(never, "").await.unwrap_err(),
        lost.health().await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}
