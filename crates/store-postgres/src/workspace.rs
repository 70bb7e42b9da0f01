//! Workspaces in PostgreSQL.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::{Plan, WorkspaceId};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated,
};
use leasehold_store::{Page, Result};
use uuid::Uuid;

fn limit(value: Option<u32>) -> Option<i32> {
    value.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

pub(crate) async fn create(store: &PostgresStore, new: &NewWorkspace) -> Result<WorkspaceCreated> {
    let row = store
        .maybe(
            "workspace_create",
            sql!("workspace/create"),
            &[
                &store.given_now(),
                &new.id.0,
                &new.name,
                &new.plan.as_str(),
                &limit(new.limit_override),
            ],
        )
        .await?;
    match row {
        Some(row) => Ok(WorkspaceCreated::Created(row::workspace(&row)?)),
        None => Ok(WorkspaceCreated::NameTaken),
    }
}

pub(crate) async fn get(store: &PostgresStore, id: WorkspaceId) -> Result<Option<Workspace>> {
    let row = store
        .maybe("workspace_get", sql!("workspace/get"), &[&id.0])
        .await?;
    row.map(|row| row::workspace(&row)).transpose()
}

pub(crate) async fn find(store: &PostgresStore, name: &str) -> Result<Option<Workspace>> {
    let row = store
        .maybe("workspace_find", sql!("workspace/find"), &[&name])
        .await?;
    row.map(|row| row::workspace(&row)).transpose()
}

pub(crate) async fn list(store: &PostgresStore, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
    let after = page.after.map(Uuid::from);
    let rows = store
        .many(
            "workspace_list",
            sql!("workspace/list"),
            &[&after, &page.rows()],
        )
        .await?;
    rows.iter().map(row::workspace).collect()
}

pub(crate) async fn update(
    store: &PostgresStore,
    id: WorkspaceId,
    change: &WorkspaceChange,
) -> Result<Option<Workspace>> {
    let plan = change.plan.map(Plan::as_str);
    let row = store
        .maybe(
            "workspace_update",
            sql!("workspace/update"),
            &[
                &store.given_now(),
                &id.0,
                &plan,
                &change.limit_override.is_some(),
                &limit(change.limit_override.flatten()),
                &change.paused,
            ],
        )
        .await?;
    store.wakes.ring_for_work(row.is_some());
    row.map(|row| row::workspace(&row)).transpose()
}

pub(crate) async fn delete(store: &PostgresStore, id: WorkspaceId) -> Result<bool> {
    let row = store
        .maybe(
            "workspace_delete",
            sql!("workspace/delete"),
            &[&store.given_now(), &id.0],
        )
        .await?;
    store.wakes.ring_for_work(row.is_some());
    Ok(row.is_some())
}

pub(crate) async fn slots(store: &PostgresStore, id: WorkspaceId) -> Result<Option<SlotUse>> {
    let row = store
        .maybe("workspace_slots", sql!("workspace/slots"), &[&id.0])
        .await?;
    row.map(|row| {
        Ok(SlotUse {
            limit: row.get::<_, i32>("concurrency_limit").unsigned_abs(),
            in_use: row::count(&row, "in_use")?,
        })
    })
    .transpose()
}
