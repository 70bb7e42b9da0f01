//! Workspaces in PostgreSQL.

use crate::audit;
use crate::request::claim;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::OpenTransaction;
use crate::transaction::connection;
use async_trait::async_trait;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{Plan, Usage, WorkspaceId, WorkspaceQuota};
use leasehold_store::audit::AuditRecord;
use leasehold_store::request::Counts;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
    WorkspaceStore, WorkspaceUse,
};
use leasehold_store::{Actor, Error, ErrorKind, Page, Result};
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl WorkspaceStore for PostgresStore {
    async fn workspace_create(&self, new: &NewWorkspace, by: &Actor) -> Result<WorkspaceCreated> {
        self.audited(
            "workspace_create",
            by,
            sql!("workspace/create"),
            &[
                &self.given_now(),
                &new.id.0,
                &new.name,
                &new.plan.as_str(),
                &limit(new.limit_override),
            ],
            |row| {
                let Some(row) = row else {
                    return Ok((WorkspaceCreated::NameTaken, None));
                };
                let created = row::workspace(row)?;
                let change = AuditRecord::workspace_create(&created);
                Ok((WorkspaceCreated::Created(created), Some(change)))
            },
        )
        .await
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
        by: &Actor,
    ) -> Result<Option<Workspace>> {
        let plan = change.plan.map(Plan::as_str);
        let updated = self
            .audited(
                "workspace_update",
                by,
                sql!("workspace/update"),
                &[
                    &self.given_now(),
                    &id.0,
                    &plan,
                    &change.limit_override.is_some(),
                    &limit(change.limit_override.flatten()),
                    &change.paused,
                    &change.max_pending_override.is_some(),
                    &row::signed(change.max_pending_override.flatten()),
                    &change.max_open_bytes_override.is_some(),
                    &row::signed(change.max_open_bytes_override.flatten()),
                ],
                |row| {
                    let updated = row.map(row::workspace).transpose()?;
                    let record = |updated| AuditRecord::workspace_update(updated, change);
                    let record = updated.as_ref().map(record);
                    Ok((updated, record))
                },
            )
            .await?;
        self.notifier.wake_for_work(updated.is_some());
        Ok(updated)
    }

    async fn workspace_delete(&self, id: WorkspaceId, by: &Actor) -> Result<bool> {
        let context = "workspace_delete";
        let now = self.given_now();
        let mut client = connection(self, context).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        // A publish in progress may create a queue of this workspace.
        transaction.one(sql!("queue/owner_lock"), &[&id.0]).await?;
        let deleted = transaction
            .many(sql!("workspace/delete"), &[&now, &id.0])
            .await?;
        if let Some(row) = deleted.first() {
            let change = AuditRecord::workspace_delete(id, row.get("name"));
            audit::record(&transaction, now, by, &change).await?;
        }
        transaction.commit().await?;
        self.notifier.wake_for_work(!deleted.is_empty());
        Ok(!deleted.is_empty())
    }

    async fn workspace_quota(&self, id: WorkspaceId) -> Result<Option<WorkspaceQuota>> {
        // Folding first leaves few unfolded events to add; the result is exact either way.
        claim::fold(self).await?;
        let row = self
            .maybe("workspace_quota", sql!("workspace/quota"), &[&id.0])
            .await?;
        row.map(|row| {
            Ok(WorkspaceQuota {
                max_pending: row::count(&row, "max_pending")?,
                max_open_bytes: row::count(&row, "max_open_bytes")?,
                used: Usage {
                    requests: row::count(&row, "pending")?,
                    bytes: row::count(&row, "open_bytes")?,
                },
            })
        })
        .transpose()
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
        let params: &Params<'_> = &[&self.given_now(), &shown];
        let rows = self
            .many(context, sql!("workspace/overview"), params)
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
