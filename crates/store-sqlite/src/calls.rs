//! Workspaces, definitions, versions, executions, queues, and what else the port asks for with more than an id: each call hands its verb's
//! function to the writer or to a reader. Knows no SQL.

use crate::{
    SqliteStore, change, definition, execution, instance, lock, overview, queue, version, workspace,
};
use leasehold_core::{DefinitionId, ExecutionId, VersionId, WorkspaceId};
use leasehold_store::change::{ChangePage, ChangeStart};
use leasehold_store::definition::{
    Definition, DefinitionCreated, NewDefinition, NewVersion, Version,
};
use leasehold_store::execution::{
    ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished,
};
use leasehold_store::instance::InstanceBeat;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::queue::{JobCounts, Queue, QueueChange, QueueUse};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
};
use leasehold_store::{Page, Result};
use std::time::Duration;

pub(crate) async fn workspace_create(
    store: &SqliteStore,
    new: &NewWorkspace,
) -> Result<WorkspaceCreated> {
    let new = new.clone();
    store
        .write("workspace_create", move |s| workspace::create(s, &new))
        .await
}

pub(crate) async fn workspace_get(
    store: &SqliteStore,
    id: WorkspaceId,
) -> Result<Option<Workspace>> {
    store
        .read("workspace_get", move |s| workspace::get(s, id))
        .await
}

pub(crate) async fn workspace_find(store: &SqliteStore, name: &str) -> Result<Option<Workspace>> {
    let name = name.to_owned();
    store
        .read("workspace_find", move |s| workspace::find(s, &name))
        .await
}

pub(crate) async fn workspace_list(
    store: &SqliteStore,
    page: Page<WorkspaceId>,
) -> Result<Vec<Workspace>> {
    store
        .read("workspace_list", move |s| workspace::list(s, page))
        .await
}

pub(crate) async fn workspace_update(
    store: &SqliteStore,
    id: WorkspaceId,
    change: &WorkspaceChange,
) -> Result<Option<Workspace>> {
    let change = *change;
    store
        .write("workspace_update", move |s| {
            workspace::update(s, id, &change)
        })
        .await
}

pub(crate) async fn workspace_delete(store: &SqliteStore, id: WorkspaceId) -> Result<bool> {
    store
        .write("workspace_delete", move |s| workspace::delete(s, id))
        .await
}

pub(crate) async fn workspace_slots(
    store: &SqliteStore,
    id: WorkspaceId,
) -> Result<Option<SlotUse>> {
    store
        .read("workspace_slots", move |s| workspace::slots(s, id))
        .await
}

pub(crate) async fn workspace_overview(
    store: &SqliteStore,
    limit: u32,
) -> Result<WorkspaceOverview> {
    store
        .read("workspace_overview", move |s| {
            overview::workspaces(s, limit)
        })
        .await
}

pub(crate) async fn definition_create(
    store: &SqliteStore,
    new: &NewDefinition,
) -> Result<DefinitionCreated> {
    let new = new.clone();
    store
        .write("definition_create", move |s| definition::create(s, &new))
        .await
}

pub(crate) async fn definition_get(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<Option<Definition>> {
    store
        .read("definition_get", move |s| definition::get(s, workspace, id))
        .await
}

pub(crate) async fn definition_find(
    store: &SqliteStore,
    workspace: WorkspaceId,
    name: &str,
) -> Result<Option<Definition>> {
    let name = name.to_owned();
    store
        .read("definition_find", move |s| {
            definition::find(s, workspace, &name)
        })
        .await
}

pub(crate) async fn definition_list(
    store: &SqliteStore,
    workspace: WorkspaceId,
    page: Page<DefinitionId>,
) -> Result<Vec<Definition>> {
    store
        .read("definition_list", move |s| {
            definition::list(s, workspace, page)
        })
        .await
}

pub(crate) async fn definition_delete(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool> {
    store
        .write("definition_delete", move |s| {
            definition::delete(s, workspace, id)
        })
        .await
}

pub(crate) async fn version_publish(
    store: &SqliteStore,
    new: &NewVersion,
) -> Result<Option<Version>> {
    let new = new.clone();
    store
        .write("version_publish", move |s| version::publish(s, &new))
        .await
}

pub(crate) async fn version_get(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: VersionId,
) -> Result<Option<Version>> {
    store
        .read("version_get", move |s| version::get(s, workspace, id))
        .await
}

pub(crate) async fn version_list(
    store: &SqliteStore,
    workspace: WorkspaceId,
    definition: DefinitionId,
    page: Page<u32>,
) -> Result<Vec<Version>> {
    store
        .read("version_list", move |s| {
            version::list(s, workspace, definition, page)
        })
        .await
}

pub(crate) async fn execution_get(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: ExecutionId,
) -> Result<Option<Execution>> {
    store
        .read("execution_get", move |s| execution::get(s, workspace, id))
        .await
}

pub(crate) async fn execution_find(
    store: &SqliteStore,
    id: ExecutionId,
) -> Result<Option<Execution>> {
    store
        .read("execution_find", move |s| execution::find(s, id))
        .await
}

pub(crate) async fn execution_list(
    store: &SqliteStore,
    filter: &ExecutionFilter,
    page: Page<i64>,
) -> Result<Vec<Execution>> {
    let filter = *filter;
    store
        .read("execution_list", move |s| execution::list(s, &filter, page))
        .await
}

pub(crate) async fn execution_finish(
    store: &SqliteStore,
    by: &str,
    finishes: &[ExecutionFinish],
) -> Result<Vec<ExecutionFinished>> {
    let (by, finishes) = (by.to_owned(), finishes.to_vec());
    store
        .write("execution_finish", move |s| {
            execution::finish(s, &by, &finishes)
        })
        .await
}

pub(crate) async fn execution_list_running(
    store: &SqliteStore,
    ids: &[ExecutionId],
) -> Result<Vec<Execution>> {
    let ids = ids.to_vec();
    store
        .read("execution_list_running", move |s| {
            execution::list_running(s, &ids)
        })
        .await
}

pub(crate) async fn execution_list_active(
    store: &SqliteStore,
    page: Page<ActiveKey>,
) -> Result<Vec<Execution>> {
    store
        .read("execution_list_active", move |s| {
            execution::list_active(s, page)
        })
        .await
}

pub(crate) async fn lock_acquire(
    store: &SqliteStore,
    request: &LockRequest,
) -> Result<LockAcquired> {
    let request = request.clone();
    store
        .write("lock_acquire", move |s| lock::acquire(s, &request))
        .await
}

pub(crate) async fn lock_extend(
    store: &SqliteStore,
    token: &LockToken,
    at_most_for: Duration,
) -> Result<bool> {
    let token = token.clone();
    store
        .write("lock_extend", move |s| lock::extend(s, &token, at_most_for))
        .await
}

pub(crate) async fn lock_release(
    store: &SqliteStore,
    token: &LockToken,
    at_least_for: Duration,
) -> Result<bool> {
    let token = token.clone();
    store
        .write("lock_release", move |s| {
            lock::release(s, &token, at_least_for)
        })
        .await
}

pub(crate) async fn instance_beat(
    store: &SqliteStore,
    beat: &InstanceBeat,
    forget_after: Duration,
) -> Result<()> {
    let beat = beat.clone();
    store
        .write("instance_beat", move |s| {
            instance::beat(s, &beat, forget_after)
        })
        .await
}

pub(crate) async fn change_list(
    store: &SqliteStore,
    start: &ChangeStart,
    workspace: Option<WorkspaceId>,
    limit: u32,
) -> Result<ChangePage> {
    let start = start.clone();
    store
        .read("change_list", move |s| {
            change::list(s, &start, workspace, limit)
        })
        .await
}

pub(crate) async fn queue_update(
    store: &SqliteStore,
    name: &str,
    change: &QueueChange,
) -> Result<Queue> {
    let (name, change) = (name.to_owned(), *change);
    store
        .write("queue_update", move |s| queue::update(s, &name, &change))
        .await
}

pub(crate) async fn queue_counts(store: &SqliteStore, name: &str) -> Result<JobCounts> {
    let name = name.to_owned();
    store
        .read("queue_counts", move |s| queue::counts(s, &name))
        .await
}

pub(crate) async fn job_limit_set(store: &SqliteStore, limit: Option<u32>) -> Result<()> {
    store
        .write("job_limit_set", move |s| queue::limit_set(s, limit))
        .await
}

pub(crate) async fn queue_overview(
    store: &SqliteStore,
    limit: u32,
    up_to: u32,
) -> Result<Vec<QueueUse>> {
    store
        .read("queue_overview", move |s| overview::queues(s, limit, up_to))
        .await
}
