//! What a request needs was deleted while it waited: it fails with the reason, without a slot, and nothing else does.

use crate::cast::{cycle, parallel, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::Fault;
use crate::logs;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_testbed::{BackendKind, TestWorkspace};
use tracing::Level;

const VERSION_REMOVE: &str = include_str!("../sql/version_remove.sql");

scenarios! {
    both: workspace_deleted_meanwhile, definition_deleted_meanwhile, what_runs_goes_on_after_its_workspace_was_deleted;
    postgres: version_deleted_meanwhile, version_deleted_between_claim_and_start,
        version_deleted_after_an_unknown_start;
}

async fn assert_failed(
    scene: &DispatchEnv,
    site: &TestWorkspace,
    id: RequestId,
    reason: FailureReason,
) {
    let request = scene.get(site, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(request.failure_reason, Some(reason));
    assert_eq!((request.execution, request.dispatch_failures), (None, 0));
    assert_eq!(scene.in_use(site).await, 0);
    let (named, why) = (format!("request={id}"), format!("reason={reason}"));
    logs::assert_once(Level::WARN, &[&named, &why]);
    crate::assert_event(match reason {
        FailureReason::WorkspaceNotFound => "Workspace not found",
        FailureReason::DefinitionNotFound => "Definition not found",
        _ => "Version not found",
    });
}

async fn workspace_deleted_meanwhile(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (deleted, other) = (scene.site(2).await, scene.site(2).await);
    let id = scene.enqueue_one(&deleted).await;
    scene.enqueue_one(&other).await;
    assert!(
        scene
            .store
            .workspace_delete(deleted.workspace)
            .await
            .unwrap()
    );
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&scene, &deleted, id, FailureReason::WorkspaceNotFound).await;
}

async fn definition_deleted_meanwhile(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (deleted, other) = (scene.site(2).await, scene.site(2).await);
    let id = scene.enqueue_one(&deleted).await;
    scene.enqueue_one(&other).await;
    let (workspace, definition) = (deleted.workspace, deleted.definition);
    let gone = scene.store.definition_delete(workspace, definition).await;
    assert!(gone.unwrap());
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&scene, &deleted, id, FailureReason::DefinitionNotFound).await;
}

/// Nothing deletes a version; somebody with the database's password can.
async fn remove_version(scene: &DispatchEnv, site: &TestWorkspace) {
    let hand = scene.by_hand().await;
    let removed = hand.execute(VERSION_REMOVE, &[&site.version.0]).await;
    assert_eq!(removed.unwrap(), 1);
}

async fn version_deleted_meanwhile() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let (deleted, other) = (scene.site(2).await, scene.site(2).await);
    let id = scene.enqueue_one(&deleted).await;
    scene.enqueue_one(&other).await;
    remove_version(&scene, &deleted).await;
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.dispatched, done.failed), (1, 1));
    assert_failed(&scene, &deleted, id, FailureReason::VersionNotFound).await;
}

async fn version_deleted_between_claim_and_start() {
    use crate::cast::begin_cycle;
    use crate::faulty_engine::barrier;
    use crate::faulty_store::Outage;
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(2).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene
        .faults
        .inject("version_get", &[Outage::Waits(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher());
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    remove_version(&scene, &site).await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().failed, 1);
    assert_failed(&scene, &site, id, FailureReason::VersionNotFound).await;
    assert_eq!(scene.engine.calls().starts, []);
}

/// It may run, so it must not fail; following finds its end.
async fn version_deleted_after_an_unknown_start() {
    let scene = DispatchEnv::still(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::AnswerLost]);
    cycle(&scene.dispatcher_with(parallel("first"))).await;
    remove_version(&scene, &site).await;
    scene.wait_out();
    // The store of the first has the version in its cache.
    let second = scene.dispatcher_elsewhere(parallel("second"));
    assert_eq!(cycle(&second).await.released, 1);
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
    assert_eq!(scene.in_use(&site).await, 1);
    scene.temporal.complete_next().await;
    let follower = scene.follower();
    until("its end is found", async || {
        round(&follower).await;
        scene.status(&site, id).await == RequestStatus::Completed
    })
    .await;
    assert_eq!(scene.in_use(&site).await, 0);
}

async fn what_runs_goes_on_after_its_workspace_was_deleted(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    assert!(scene.store.workspace_delete(site.workspace).await.unwrap());
    scene.temporal.complete_next().await;
    let follower = scene.follower();
    until("its end is found", async || {
        round(&follower).await;
        scene.status(&site, id).await == RequestStatus::Completed
    })
    .await;
    assert_eq!(scene.in_use(&site).await, 0);
}
