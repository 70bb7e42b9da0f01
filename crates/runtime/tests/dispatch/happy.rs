//! Dispatch without faults: what is claimed, started, written and logged.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::fixtures::{begin_cycle, cycle};
use crate::logs;
use leasehold_core::{ExecutionStatus, RequestStatus};
use leasehold_testbed::BackendKind;
use serde_json::json;
use tracing::Level;

scenarios! {
    both: fifteen_requests_are_claimed_in_batches_of_ten_and_five, the_workflow_gets_what_was_enqueued, trace_id_of_the_caller_is_logged,
        execution_is_written_before_the_engine_is_called;
}

async fn fifteen_requests_are_claimed_in_batches_of_ten_and_five(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(20).await;
    let ids = env.enqueue(&workspace, 15).await;
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.batches, done.dispatched), (vec![10, 5], 15));
    let mut executions = Vec::new();
    for id in ids {
        let request = env.get(&workspace, id).await;
        assert_eq!(request.status, RequestStatus::Dispatched);
        assert!(request.dispatched_at.is_some());
        assert_eq!((request.attempt_count, request.claimed_by), (0, None));
        executions.push(request.execution.unwrap());
    }
    assert_eq!(env.in_use(&workspace).await, 15);
    env.assert_one_run_each(executions).await;
    logs::assert_once(Level::DEBUG, &["Processing 10 queue items"]);
    logs::assert_once(Level::DEBUG, &["Processing 5 queue items"]);
    crate::assert_event("Processing … queue items");
}

async fn the_workflow_gets_what_was_enqueued(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    let (workflow_id, argument) = env.temporal.complete_next().await;
    assert_eq!(workflow_id, format!("execution-{execution}"));
    assert_eq!(argument["params"], json!({"number": 0}));
    let (request, of) = (format!("request={id}"), format!("execution={execution}"));
    let definition = format!("definition={}", workspace.definition);
    logs::assert_once(
        Level::INFO,
        &["Dispatching queue item", &request, &definition],
    );
    logs::assert_once(Level::INFO, &["Dispatched execution", &request, &of]);
    crate::assert_event("Dispatching queue item");
    crate::assert_event("Dispatched execution");
    assert_eq!(logs::count(Level::INFO, &["trace_id="]), 0);
}

async fn trace_id_of_the_caller_is_logged(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let id = env.enqueue_with(&workspace, 1, |new| {
        new.trace_context = Some(format!("00-{trace}-00f067aa0ba902b7-00"));
    });
    let named = format!("request={}", id.await[0]);
    cycle(&env.dispatcher()).await;
    let trace_id = format!("trace_id={trace}");
    logs::assert_once(Level::INFO, &["Dispatching queue item", &named, &trace_id]);
    logs::assert_once(Level::INFO, &["Dispatched execution", &named, &trace_id]);
}

async fn execution_is_written_before_the_engine_is_called(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher());
    until("the engine is called", async || {
        !env.engine.calls().starts.is_empty()
    })
    .await;
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Claimed);
    let execution = request.execution.unwrap();
    let row = env
        .store
        .execution_get(workspace.workspace, execution)
        .await;
    assert_eq!(row.unwrap().unwrap().status, ExecutionStatus::Running);
    assert_eq!(env.engine.calls().starts, [execution]);
    assert_eq!(env.in_use(&workspace).await, 1);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    use RequestStatus::{Claimed, Dispatched, Pending};
    let path = env.path(&workspace, id).await;
    assert_eq!(path, [Pending, Claimed, Dispatched]);
}
