//! A workspace, definition or version is deleted while a request waits: only that request fails, with the reason and without a slot.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, parallel, round};
use crate::logs;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_testbed::{BackendKind, TestWorkspace};
use tracing::Level;

const VERSION_REMOVE: &str = include_str!("../sql/version_remove.sql");

scenarios! {
    both: workspace_deleted_meanwhile, definition_deleted_meanwhile, execution_continues_after_its_workspace_was_deleted;
    postgres: version_deleted_meanwhile, version_deleted_between_claim_and_start,
        version_deleted_after_an_unknown_start;
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
    assert_eq!((request.execution, request.dispatch_failures), (None, 0));
    assert_eq!(env.in_use(workspace).await, 0);
    let (named, why) = (format!("request={id}"), format!("reason={reason}"));
    logs::assert_once(Level::WARN, &[&named, &why]);
    crate::assert_event(match reason {
        FailureReason::WorkspaceNotFound => "Workspace not found",
        FailureReason::DefinitionNotFound => "Definition not found",
        _ => "Version not found",
    });
}

async fn workspace_deleted_meanwhile(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (deleted, other) = (env.workspace(2).await, env.workspace(2).await);
    let id = env.enqueue_one(&deleted).await;
    env.enqueue_one(&other).await;
    assert!(
        env.store
            .workspace_delete(deleted.workspace, &leasehold_store::Actor::Local)
            .await
            .unwrap()
    );
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&env, &deleted, id, FailureReason::WorkspaceNotFound).await;
}

async fn definition_deleted_meanwhile(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (deleted, other) = (env.workspace(2).await, env.workspace(2).await);
    let id = env.enqueue_one(&deleted).await;
    env.enqueue_one(&other).await;
    let (workspace, definition) = (deleted.workspace, deleted.definition);
    let gone = env
        .store
        .definition_delete(workspace, definition, &leasehold_store::Actor::Local)
        .await;
    assert!(gone.unwrap());
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&env, &deleted, id, FailureReason::DefinitionNotFound).await;
}

/// Deletes a version directly in the database; no call does that.
async fn remove_version(env: &DispatchEnv, workspace: &TestWorkspace) {
    let client = env.sql_client().await;
    let removed = client
        .execute(VERSION_REMOVE, &[&workspace.version.0])
        .await;
    assert_eq!(removed.unwrap(), 1);
}

async fn version_deleted_meanwhile() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let (deleted, other) = (env.workspace(2).await, env.workspace(2).await);
    let id = env.enqueue_one(&deleted).await;
    env.enqueue_one(&other).await;
    remove_version(&env, &deleted).await;
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&env, &deleted, id, FailureReason::VersionNotFound).await;
}

async fn version_deleted_between_claim_and_start() {
    use crate::faulty_engine::barrier;
    use crate::faulty_store::StoreFault;
    use crate::fixtures::begin_cycle;
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(2).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.faults
        .inject("version_get", &[StoreFault::Waits(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher());
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    remove_version(&env, &workspace).await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().failed, 1);
    assert_failed(&env, &workspace, id, FailureReason::VersionNotFound).await;
    assert_eq!(env.engine.calls().starts, []);
}

/// The execution may run, so the request must not fail; the reconciler finds its end.
async fn version_deleted_after_an_unknown_start() {
    let env = DispatchEnv::with_manual_clock(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost]);
    cycle(&env.dispatcher_with(parallel("first"))).await;
    remove_version(&env, &workspace).await;
    env.pass_backoffs();
    // The first store has cached the version.
    let second = env.dispatcher_of_another_process(parallel("second"));
    assert_eq!(cycle(&second).await.released, 1);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    assert_eq!(env.in_use(&workspace).await, 1);
    env.temporal.complete_next().await;
    let reconciler = env.reconciler();
    until("its end is found", async || {
        round(&reconciler).await;
        env.status(&workspace, id).await == RequestStatus::Completed
    })
    .await;
    assert_eq!(env.in_use(&workspace).await, 0);
}

async fn execution_continues_after_its_workspace_was_deleted(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    assert!(
        env.store
            .workspace_delete(workspace.workspace, &leasehold_store::Actor::Local)
            .await
            .unwrap()
    );
    env.temporal.complete_next().await;
    let reconciler = env.reconciler();
    until("its end is found", async || {
        round(&reconciler).await;
        env.status(&workspace, id).await == RequestStatus::Completed
    })
    .await;
    assert_eq!(env.in_use(&workspace).await, 0);
}
