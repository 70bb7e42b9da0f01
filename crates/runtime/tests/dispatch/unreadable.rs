//! Params that were changed by hand so that they cannot be read: the request fails, and an unknown start is made definite first.

use crate::dispatch_env::DispatchEnv;
use crate::faulty_engine::{DescribeFault, Fault};
use crate::fixtures::cycle;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_engine::{Engine, StartOutcome};
use leasehold_testbed::{BackendKind, TestWorkspace};

const DEEP_PARAMS: &str = include_str!("../sql/request_deep_params.sql");
const DEEP_PARAMS_SQLITE: &str = include_str!("../sql/request_deep_params_sqlite.sql");

scenarios! {
    both: unreadable_params_fail_only_their_request,
        unreadable_params_keep_the_slot_until_the_start_is_definite,
        execution_that_runs_is_kept_although_its_params_became_unreadable;
}

/// Makes the params of a request unreadable, as an operator can.
async fn spoil(env: &DispatchEnv, on: BackendKind, request: RequestId) {
    let changed = match on {
        BackendKind::Postgres => {
            let client = env.sql_client().await;
            client.execute(DEEP_PARAMS, &[&request.0]).await.unwrap()
        }
        BackendKind::Sqlite | BackendKind::SqliteMemory => {
            let client = rusqlite::Connection::open(env.file()).unwrap();
            let id = request.0.into_bytes();
            let changed = client.execute(DEEP_PARAMS_SQLITE, [id]).unwrap();
            u64::try_from(changed).unwrap()
        }
    };
    assert_eq!(changed, 1);
}

async fn assert_failed(
    env: &DispatchEnv,
    workspace: &TestWorkspace,
    id: RequestId,
    reason: FailureReason,
) {
    let request = env.get(workspace, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(request.failure_reason, Some(reason.into()));
    let error = request.last_error.unwrap();
    assert!(error.contains("params cannot be read"), "{error}");
}

async fn unreadable_params_fail_only_their_request(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(5).await;
    let ids = env.enqueue(&workspace, 3).await;
    spoil(&env, on, ids[1]).await;
    let report = cycle(&env.dispatcher()).await;
    assert_eq!((report.dispatched, report.failed), (2, 1));
    assert_failed(&env, &workspace, ids[1], FailureReason::DispatchExhausted).await;
    assert_eq!(env.in_use(&workspace).await, 2);
}

async fn unreadable_params_keep_the_slot_until_the_start_is_definite(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    spoil(&env, on, id).await;
    let execution = env.execution(&workspace, id).await;
    env.engine
        .inject_describe(execution, DescribeFault::Unavailable);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.released, 1, "the engine is silent");
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    assert_eq!(env.in_use(&workspace).await, 1);

    env.engine.clear_describe(execution);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.failed, 1);
    assert_failed(&env, &workspace, id, FailureReason::Terminated).await;
    assert_eq!(env.in_use(&workspace).await, 0);
    // The start of a dispatcher that wakes up now does not run it.
    let late = env.engine.last_start(execution);
    let ended = StartOutcome::AlreadyStarted { ended: true };
    assert_eq!(env.engine.start(&late).await, ended);
}

async fn execution_that_runs_is_kept_although_its_params_became_unreadable(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    spoil(&env, on, id).await;
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    assert_eq!(env.in_use(&workspace).await, 1);
}
