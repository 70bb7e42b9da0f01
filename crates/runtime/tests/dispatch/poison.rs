//! Poisoned requests: the dispatcher fails them without starting them, and makes an unknown start definite first.

use crate::dispatch_env::DispatchEnv;
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, parallel};
use crate::logs;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_engine::{Description, Engine, StartOutcome};
use leasehold_runtime::note_crash;
use leasehold_store::request::Crash;
use leasehold_testbed::{BackendKind, TestWorkspace};
use tracing::Level;

scenarios! {
    both: unknown_start_of_a_poisoned_request_is_made_definite,
        execution_of_a_poisoned_request_that_runs_is_terminated, suspect_is_started_and_forgotten;
}

/// Enqueues a request, loses its start with this fault, and notes crashes of so many processes on it.
async fn enqueue_crashed(
    env: &DispatchEnv,
    fault: Fault,
    crashes: usize,
) -> (TestWorkspace, RequestId, ExecutionId) {
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[fault]);
    assert_eq!(
        cycle(&env.dispatcher_with(parallel("first")))
            .await
            .released,
        1
    );
    let execution = env.execution(&workspace, id).await;
    for number in 0..crashes {
        let crash = Crash {
            process: format!("server-{number}"),
            executions: vec![execution],
        };
        let noted = note_crash(&*env.store, &crash).await.unwrap();
        assert_eq!(noted.len(), 1);
    }
    logs::assert_logged(
        &crate::documented(),
        "a process crashed while it computed the input of a request",
    );
    env.pass_backoffs();
    (workspace, id, execution)
}

async fn assert_poisoned(env: &DispatchEnv, workspace: &TestWorkspace, id: RequestId) {
    let request = env.get(workspace, id).await;
    assert_eq!(request.status, RequestStatus::Failed, "{request:?}");
    assert_eq!(request.failure_reason, Some(FailureReason::Poisoned.into()));
    let error = request.last_error.unwrap();
    assert!(error.contains("crashed 3 times in a row"), "{error}");
    assert_eq!(env.in_use(workspace).await, 0);
}

async fn unknown_start_of_a_poisoned_request_is_made_definite(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, id, execution) = enqueue_crashed(&env, Fault::CallLost, 3).await;
    assert_eq!(
        cycle(&env.dispatcher_with(parallel("first"))).await.failed,
        1
    );
    assert_poisoned(&env, &workspace, id).await;
    assert_eq!(env.engine.starts_of(execution), 1, "not started again");

    // The start of a dispatcher that wakes up now does not run it.
    let late = env.engine.last_start(execution);
    let ended = StartOutcome::AlreadyStarted { ended: true };
    assert_eq!(env.engine.start(&late).await, ended);
}

async fn execution_of_a_poisoned_request_that_runs_is_terminated(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, id, execution) = enqueue_crashed(&env, Fault::AnswerLost, 3).await;
    assert_eq!(env.engine.describe(execution).await, Ok(Description::Open));
    assert_eq!(
        cycle(&env.dispatcher_with(parallel("first"))).await.failed,
        1
    );
    assert_poisoned(&env, &workspace, id).await;
    let described = env.engine.describe(execution).await;
    assert!(matches!(described, Ok(Description::Ended { .. })));
}

async fn suspect_is_started_and_forgotten(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, id, execution) = enqueue_crashed(&env, Fault::CallLost, 2).await;
    assert_eq!(
        cycle(&env.dispatcher_with(parallel("first")))
            .await
            .dispatched,
        1
    );
    assert!(env.engine.last_start(execution).crashed);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    logs::assert_once(Level::WARN, &["outcome of the start unknown"]);
    let crash = Crash {
        process: "server-7".to_owned(),
        executions: vec![execution],
    };
    let noted = note_crash(&*env.store, &crash).await.unwrap();
    assert_eq!((noted[0].crashes.total, noted[0].crashes.alone), (1, 1));
}
