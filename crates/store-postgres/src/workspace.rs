//! Workspaces in PostgreSQL.

use crate::request::claim;
use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{Plan, WorkspaceId};
use leasehold_store::request::Counts;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
    WorkspaceStore, WorkspaceUse,
};
use leasehold_store::{Error, ErrorKind, Page, Result};
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl WorkspaceStore for PostgresStore {
    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated> {
        let row = self
            .maybe(
                "workspace_create",
                sql!("workspace/create"),
                &[
                    &self.given_now(),
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

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        let row = self
            .maybe("workspace_get", sql!("workspace/get"), &[&id.0])
            .await?;
        row.map(|row| row::workspace(&row)).transpose()
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        let row = self
            .maybe("workspace_find", sql!("workspace/find"), &[&name])
            .await?;
        row.map(|row| row::workspace(&row)).transpose()
    }

    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        let after = page.after.map(Uuid::from);
        let rows = self
            .many(
                "workspace_list",
                sql!("workspace/list"),
                &[&after, &page.rows()],
            )
            .await?;
        rows.iter().map(row::workspace).collect()
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        let plan = change.plan.map(Plan::as_str);
        let row = self
            .maybe(
                "workspace_update",
                sql!("workspace/update"),
                &[
                    &self.given_now(),
                    &id.0,
                    &plan,
                    &change.limit_override.is_some(),
                    &limit(change.limit_override.flatten()),
                    &change.paused,
                ],
            )
            .await?;
        self.notifier.wake_for_work(row.is_some());
        row.map(|row| row::workspace(&row)).transpose()
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        let row = self
            .maybe(
                "workspace_delete",
                sql!("workspace/delete"),
                &[&self.given_now(), &id.0],
            )
            .await?;
        self.notifier.wake_for_work(row.is_some());
        Ok(row.is_some())
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        let row = self
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

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        let context = "workspace_overview";
        // Folding first leaves few unfolded events to add; the result is exact either way.
        claim::fold(self).await?;
        let shown = i64::from(limit.min(PAGE_MAX));
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&self.given_now(), &shown];
        let rows = self
            .many(context, sql!("workspace/overview"), &params)
            .await?;
        let Some(first) = rows.first() else {
            let text = "the overview returned no totals row".to_owned();
            return Err(Error::new(context, ErrorKind::Broken(text)));
        };
        let busiest = rows.iter().filter(|row| row.get("shown"));
        Ok(WorkspaceOverview {
            at: row::time(first, "at")?,
            workspaces: row::count(first, "workspaces")?,
            requests: counts(first, "all_")?,
            busiest: busiest.map(workspace_use).collect::<Result<_>>()?,
        })
    }
}

fn limit(value: Option<u32>) -> Option<i32> {
    value.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

fn workspace_use(row: &Row) -> Result<WorkspaceUse> {
    Ok(WorkspaceUse {
        workspace: row::workspace(row)?,
        slots: SlotUse {
            limit: row.get::<_, i32>("concurrency_limit").unsigned_abs(),
            in_use: row::count(row, "in_use")?,
        },
        requests: counts(row, "")?,
    })
}

fn counts(row: &Row, of: &str) -> Result<Counts> {
    let count = |status: &str| row::count(row, &format!("{of}{status}"));
    Ok(Counts {
        pending: count("pending")?,
        claimed: count("claimed")?,
        dispatched: count("dispatched")?,
        completed: count("completed")?,
        failed: count("failed")?,
    })
}
