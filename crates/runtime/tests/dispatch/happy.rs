//! When nothing goes wrong: what is claimed, started, written down and logged.

use crate::cast::{begin_cycle, cycle};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::logs;
use leasehold_core::{ExecutionStatus, RequestStatus};
use leasehold_testbed::BackendKind;
use serde_json::json;
use tracing::Level;

scenarios! {
    both: fifteen_requests_are_claimed_in_batches_of_ten_and_five, the_workflow_gets_what_was_enqueued, the_caller_s_trace_is_beside_what_is_logged,
        the_execution_is_written_before_the_engine_hears_of_it;
}

async fn fifteen_requests_are_claimed_in_batches_of_ten_and_five(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(20).await;
    let asked = scene.enqueue(&site, 15).await;
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.batches, done.dispatched), (vec![10, 5], 15));
    let mut executions = Vec::new();
    for id in asked {
        let request = scene.get(&site, id).await;
        assert_eq!(request.status, RequestStatus::Dispatched);
        assert!(request.dispatched_at.is_some());
        assert_eq!((request.attempt_count, request.claimed_by), (0, None));
        executions.push(request.execution.unwrap());
    }
    assert_eq!(scene.in_use(&site).await, 15);
    scene.assert_one_run_each(executions).await;
    logs::assert_once(Level::DEBUG, &["Processing 10 queue items"]);
    logs::assert_once(Level::DEBUG, &["Processing 5 queue items"]);
    crate::assert_event("Processing … queue items");
}

async fn the_workflow_gets_what_was_enqueued(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    let (workflow_id, argument) = scene.temporal.complete_next().await;
    assert_eq!(workflow_id, format!("execution-{execution}"));
    assert_eq!(argument["params"], json!({"number": 0}));
    let (request, of) = (format!("request={id}"), format!("execution={execution}"));
    let definition = format!("definition={}", site.definition);
    logs::assert_once(
        Level::INFO,
        &["Dispatching queue item", &request, &definition],
    );
    logs::assert_once(Level::INFO, &["Dispatched execution", &request, &of]);
    crate::assert_event("Dispatching queue item");
    crate::assert_event("Dispatched execution");
    assert_eq!(logs::count(Level::INFO, &["trace_id="]), 0);
}

async fn the_caller_s_trace_is_beside_what_is_logged(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let id = scene.enqueue_with(&site, 1, |new| {
        new.trace_context = Some(format!("00-{trace}-00f067aa0ba902b7-00"));
    });
    let named = format!("request={}", id.await[0]);
    cycle(&scene.dispatcher()).await;
    let said = format!("trace_id={trace}");
    logs::assert_once(Level::INFO, &["Dispatching queue item", &named, &said]);
    logs::assert_once(Level::INFO, &["Dispatched execution", &named, &said]);
}

async fn the_execution_is_written_before_the_engine_hears_of_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher());
    until("the engine is called", async || {
        !scene.engine.calls().starts.is_empty()
    })
    .await;
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Claimed);
    let execution = request.execution.unwrap();
    let row = scene.store.execution_get(site.workspace, execution).await;
    assert_eq!(row.unwrap().unwrap().status, ExecutionStatus::Running);
    assert_eq!(scene.engine.calls().starts, [execution]);
    assert_eq!(scene.in_use(&site).await, 1);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    use RequestStatus::{Claimed, Dispatched, Pending};
    let path = scene.path(&site, id).await;
    assert_eq!(path, [Pending, Claimed, Dispatched]);
}
