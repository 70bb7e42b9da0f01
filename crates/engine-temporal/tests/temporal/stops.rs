//! Cancelling and terminating: once, again, too late, and of nothing.

use crate::calls::history;
use crate::worker::Worker;
use crate::{engine, order, workflow_id};
use leasehold_core::ExecutionId;
use leasehold_engine::{Engine, Start, Told};
use leasehold_testkit::TestTemporal;
use temporalio_common::protos::temporal::api::enums::v1::EventType;
use uuid::Uuid;

async fn cancel_requests(start: &Start) -> usize {
    let events = history(&workflow_id(start)).await;
    let asked = EventType::WorkflowExecutionCancelRequested;
    events
        .iter()
        .filter(|event| event.event_type() == asked)
        .count()
}

#[tokio::test]
async fn a_repeated_cancellation_is_heard_once() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    for _ in 0..3 {
        assert_eq!(engine.cancel(start.execution, "stop").await, Ok(Told::Told));
    }
    assert_eq!(cancel_requests(&start).await, 1);
}

#[tokio::test]
async fn somebody_elses_cancellation_is_as_good_as_ours() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let id = workflow_id(&start);
    TestTemporal::shared()
        .cli(&["workflow", "cancel", "--workflow-id", &id])
        .unwrap();
    assert_eq!(engine.cancel(start.execution, "stop").await, Ok(Told::Told));
    assert_eq!(cancel_requests(&start).await, 1);
}

#[tokio::test]
async fn telling_an_ended_workflow_does_no_harm() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    Worker::of(&start).await.complete().await;
    assert_eq!(engine.cancel(start.execution, "stop").await, Ok(Told::Told));
    assert_eq!(
        engine.terminate(start.execution, "stop").await,
        Ok(Told::Told)
    );
    let last = history(&workflow_id(&start)).await.pop().unwrap();
    assert_eq!(last.event_type(), EventType::WorkflowExecutionCompleted);
}

#[tokio::test]
async fn a_termination_twice_is_a_termination() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    for _ in 0..2 {
        assert_eq!(
            engine.terminate(start.execution, "stop").await,
            Ok(Told::Told)
        );
    }
}

#[tokio::test]
async fn nobody_is_told_of_what_was_never_started() {
    let engine = engine();
    let never = ExecutionId(Uuid::now_v7());
    assert_eq!(engine.cancel(never, "stop").await, Ok(Told::NotFound));
    assert_eq!(engine.terminate(never, "stop").await, Ok(Told::NotFound));
}
