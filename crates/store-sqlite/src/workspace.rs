//! Workspaces: statements and rows. The schema and the core define the limit of each plan.

use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob, timestamp};
use crate::session::Session;
use crate::{SqliteStore, audit, queue_access};
use async_trait::async_trait;
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{Usage, WorkspaceId, WorkspaceQuota};
use leasehold_store::audit::AuditRecord;
use leasehold_store::notification::Notification;
use leasehold_store::request::Counts;
use leasehold_store::sql;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
    WorkspaceStore, WorkspaceUse,
};
use leasehold_store::{Actor, Page, Result};
use rusqlite::{Row, params};

const CREATE: &str = sql!("workspace/create");
const GET: &str = sql!("workspace/get");
const FIND: &str = sql!("workspace/find");
const LIST: &str = sql!("workspace/list");
const UPDATE: &str = sql!("workspace/update");
const DELETE: &str = sql!("workspace/delete");
const TOTAL: &str = sql!("workspace/total");
const OVERVIEW: &str = sql!("workspace/overview");
const IS_OPEN: &str = sql!("workspace/is_open");
const QUOTA: &str = sql!("workspace/quota");
const SLOTS: &str = sql!("workspace/slots");
const COUNTS: &str = sql!("workspace/counts");

#[async_trait]
impl WorkspaceStore for SqliteStore {
    async fn workspace_create(&self, new: &NewWorkspace, by: &Actor) -> Result<WorkspaceCreated> {
        let (new, by) = (new.clone(), by.clone());
        self.write("workspace_create", move |s| create(s, &new, &by))
            .await
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        self.read("workspace_get", move |s| {
            s.optional(GET, [blob(id)], workspace)
        })
        .await
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        let name = name.to_owned();
        self.read("workspace_find", move |s| find(s, &name)).await
    }

    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        self.read("workspace_list", move |s| {
            s.all(LIST, params![after_id(page.after), page.rows()], workspace)
        })
        .await
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
        by: &Actor,
    ) -> Result<Option<Workspace>> {
        let (change, by) = (*change, by.clone());
        self.write("workspace_update", move |s| update(s, id, &change, &by))
            .await
    }

    async fn workspace_delete(&self, id: WorkspaceId, by: &Actor) -> Result<bool> {
        let by = by.clone();
        self.write("workspace_delete", move |s| {
            let row = params![blob(id), s.now];
            let deleted: Option<String> = s.optional(DELETE, row, |row| Ok(row.get("name")?))?;
            if let Some(name) = &deleted {
                audit::record(s, &by, &AuditRecord::workspace_delete(id, name))?;
                queue_access::release(s, id)?;
                s.notify(Notification::Work);
            }
            Ok(deleted.is_some())
        })
        .await
    }

    async fn workspace_quota(&self, id: WorkspaceId) -> Result<Option<WorkspaceQuota>> {
        self.read("workspace_quota", move |s| {
            s.optional(QUOTA, [blob(id)], quota)
        })
        .await
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        self.read("workspace_slots", move |s| {
            s.optional(SLOTS, [blob(id)], slot_use)
        })
        .await
    }

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        self.read("workspace_overview", move |s| overview(s, limit))
            .await
    }
}

/// Returns the workspace of this name, unless it is deleted.
pub(crate) fn find(session: &Session<'_>, name: &str) -> Result<Option<Workspace>, Fault> {
    session.optional(FIND, [Text(name)], workspace)
}

fn create(
    session: &Session<'_>,
    new: &NewWorkspace,
    by: &Actor,
) -> Result<WorkspaceCreated, Fault> {
    let row = params![
        blob(new.id),
        Text(&new.name),
        new.plan.as_str(),
        new.limit_override,
        session.now
    ];
    let Some(created) = session.optional(CREATE, row, workspace)? else {
        return Ok(WorkspaceCreated::NameTaken);
    };
    audit::record(session, by, &AuditRecord::workspace_create(&created))?;
    Ok(WorkspaceCreated::Created(created))
}

fn update(
    session: &Session<'_>,
    id: WorkspaceId,
    change: &WorkspaceChange,
    by: &Actor,
) -> Result<Option<Workspace>, Fault> {
    let row = params![
        blob(id),
        change.plan.map(|plan| plan.as_str()),
        change.limit_override.is_some(),
        change.limit_override.flatten(),
        change.paused,
        session.now,
        change.max_pending_override.is_some(),
        signed(change.max_pending_override.flatten()),
        change.max_open_bytes_override.is_some(),
        signed(change.max_open_bytes_override.flatten())
    ];
    let updated = session.optional(UPDATE, row, workspace)?;
    if let Some(updated) = &updated {
        audit::record(session, by, &AuditRecord::workspace_update(updated, change))?;
        session.notify(Notification::Work);
    }
    Ok(updated)
}

fn overview(session: &Session<'_>, limit: u32) -> Result<WorkspaceOverview, Fault> {
    session.in_snapshot(|session| {
        let total = |row: &Row<'_>| Ok((row.count("workspaces")?, counted(row)?));
        let (workspaces, requests) = session.one(TOTAL, [], total)?;
        let busiest = session.all(OVERVIEW, [limit.min(PAGE_MAX)], |row| {
            Ok(WorkspaceUse {
                workspace: workspace(row)?,
                slots: slot_use(row)?,
                requests: counted(row)?,
            })
        })?;
        Ok(WorkspaceOverview {
            at: timestamp(session.now)?,
            workspaces,
            requests,
            busiest,
        })
    })
}

/// Whether the workspace exists and is not deleted.
pub(crate) fn is_open(session: &Session<'_>, id: WorkspaceId) -> Result<bool, Fault> {
    session.one(IS_OPEN, [blob(id)], |row| Ok(row.get(0)?))
}

/// Returns a number for an INTEGER column. A larger one than fits is out of every range that the schema allows.
fn signed(value: Option<u64>) -> Option<i64> {
    value.map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

fn quota(row: &Row<'_>) -> Result<WorkspaceQuota, Fault> {
    Ok(WorkspaceQuota {
        max_pending: row.count("max_pending")?,
        max_open_bytes: row.count("max_open_bytes")?,
        used: Usage {
            requests: row.count("pending")?,
            bytes: row.count("open_bytes")?,
        },
    })
}

/// Reads a workspace's limit and the slots in use.
fn slot_use(row: &Row<'_>) -> Result<SlotUse, Fault> {
    Ok(SlotUse {
        limit: row.get("concurrency_limit")?,
        in_use: row.get("in_use")?,
    })
}

pub(crate) fn counts(session: &Session<'_>, id: WorkspaceId) -> Result<Counts, Fault> {
    let found = session.optional(COUNTS, [blob(id)], counted)?;
    Ok(found.unwrap_or_default())
}

/// Reads request counts, of one workspace or of all.
fn counted(row: &Row<'_>) -> Result<Counts, Fault> {
    Ok(Counts {
        pending: row.count("pending")?,
        claimed: row.count("claimed")?,
        dispatched: row.count("dispatched")?,
        completed: row.count("completed")?,
        failed: row.count("failed")?,
    })
}

fn workspace(row: &Row<'_>) -> Result<Workspace, Fault> {
    Ok(Workspace {
        id: row.id("id")?,
        name: row.get("name")?,
        plan: row.parsed("plan")?,
        limit_override: row.get("limit_override")?,
        max_pending_override: row.count_or_none("max_pending_override")?,
        max_open_bytes_override: row.count_or_none("max_open_bytes_override")?,
        paused: row.get("paused")?,
        created_at: row.time("created_at")?,
        deleted_at: row.time_or_none("deleted_at")?,
    })
}
