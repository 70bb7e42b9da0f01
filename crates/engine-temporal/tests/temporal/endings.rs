//! Descriptions of open, ended and missing workflows.

use crate::worker::{Worker, failure};
use crate::{WAIT_TIMEOUT, engine, limited, options, order, workflow_id};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::{ExecutionEnd, ExecutionId, Timestamp};
use leasehold_engine::{Description, Engine, Error};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::{TestTemporal, eventually};
use std::time::Duration;
use uuid::Uuid;

/// Returns how the execution ended and its error; asserts that it ended just now.
pub(crate) async fn end_of(
    engine: &TemporalEngine,
    execution: ExecutionId,
) -> (ExecutionEnd, Option<String>) {
    let Ok(Description::Ended { end, error, at }) = engine.describe(execution).await else {
        panic!("the execution has not ended");
    };
    let ago = Timestamp::now().duration_since(at.unwrap());
    assert!(ago.as_secs().abs() < 300, "it ended {ago} ago");
    (end, error)
}

fn ended(end: ExecutionEnd, error: &str) -> (ExecutionEnd, Option<String>) {
    (end, Some(error.to_owned()))
}

#[tokio::test]
async fn workflow_is_open_until_it_completes() {
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
async fn failure_includes_its_causes() {
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
async fn long_failure_is_truncated() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let long = "ä".repeat(ERROR_MAX_CHARS + 1000);
    Worker::of(&start).await.fail(failure(&[&long])).await;
    let Ok(Description::Ended { error, .. }) = engine.describe(start.execution).await else {
        panic!("the execution has not ended");
    };
    assert!(error.unwrap().chars().count() <= ERROR_MAX_CHARS);
}

#[tokio::test]
async fn cancelled_workflow_stays_open_until_it_acknowledges() {
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
async fn termination_includes_identity_and_reason() {
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
async fn workflow_without_a_worker_times_out() {
    let engine = engine();
    let start = limited(order(), Duration::from_secs(1));
    engine.start(&start).await;
    let timed_out = eventually(WAIT_TIMEOUT, async || {
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
async fn unstarted_workflow_is_not_found() {
    let never = ExecutionId(Uuid::now_v7());
    assert_eq!(engine().describe(never).await, Ok(Description::NotFound));
}

#[tokio::test]
async fn missing_namespace_is_unavailable_not_not_found() {
    let engine = TemporalEngine::new(TemporalOptions {
        namespace: "nowhere".to_owned(),
        ..options()
    })
    .unwrap();
    let never = ExecutionId(Uuid::now_v7());
    for error in [
        engine.describe(never).await.unwrap_err(),
        engine.cancel(never, "").await.unwrap_err(),
        engine.terminate(never, "").await.unwrap_err(),
        engine.health().await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}
