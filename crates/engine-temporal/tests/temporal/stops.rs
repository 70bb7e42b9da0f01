//! Cancelling and terminating: once, repeated, too late, and of missing workflows.

use crate::calls::history;
use crate::worker::Worker;
use crate::{engine, order, workflow_id};
use leasehold_core::ExecutionId;
use leasehold_engine::{Engine, Start, StopAck};
use leasehold_testkit::TestTemporal;
use temporalio_common::protos::temporal::api::enums::v1::EventType;
use uuid::Uuid;

async fn cancel_requests(start: &Start) -> usize {
    let events = history(&workflow_id(start)).await;
    let cancel_requested = EventType::WorkflowExecutionCancelRequested;
    events
        .iter()
        .filter(|event| event.event_type() == cancel_requested)
        .count()
}

#[tokio::test]
async fn repeated_cancel_is_delivered_once() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    for _ in 0..3 {
        assert_eq!(
            engine.cancel(start.execution, "stop").await,
            Ok(StopAck::Acknowledged)
        );
    }
    assert_eq!(cancel_requests(&start).await, 1);
}

#[tokio::test]
async fn cancel_after_a_foreign_cancel_is_acknowledged() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    let id = workflow_id(&start);
    TestTemporal::shared()
        .cli(&["workflow", "cancel", "--workflow-id", &id])
        .unwrap();
    assert_eq!(
        engine.cancel(start.execution, "stop").await,
        Ok(StopAck::Acknowledged)
    );
    assert_eq!(cancel_requests(&start).await, 1);
}

#[tokio::test]
async fn stopping_an_ended_workflow_is_acknowledged() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    Worker::of(&start).await.complete().await;
    assert_eq!(
        engine.cancel(start.execution, "stop").await,
        Ok(StopAck::Acknowledged)
    );
    assert_eq!(
        engine.terminate(start.execution, "stop").await,
        Ok(StopAck::Acknowledged)
    );
    let last = history(&workflow_id(&start)).await.pop().unwrap();
    assert_eq!(last.event_type(), EventType::WorkflowExecutionCompleted);
}

#[tokio::test]
async fn repeated_terminate_is_acknowledged() {
    let (engine, start) = (engine(), order());
    engine.start(&start).await;
    for _ in 0..2 {
        assert_eq!(
            engine.terminate(start.execution, "stop").await,
            Ok(StopAck::Acknowledged)
        );
    }
}

#[tokio::test]
async fn stopping_an_unstarted_workflow_is_not_found() {
    let engine = engine();
    let never = ExecutionId(Uuid::now_v7());
    assert_eq!(engine.cancel(never, "stop").await, Ok(StopAck::NotFound));
    assert_eq!(engine.terminate(never, "stop").await, Ok(StopAck::NotFound));
}
