//! Workspaces: statements and rows. The schema and the core define the limit of each plan.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob, timestamp};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::notification::Notification;
use leasehold_store::request::Counts;
use leasehold_store::sql;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
    WorkspaceStore, WorkspaceUse,
};
use leasehold_store::{Page, Result};
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
const SLOTS: &str = sql!("workspace/slots");
const COUNTS: &str = sql!("workspace/counts");

#[async_trait]
impl WorkspaceStore for SqliteStore {
    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated> {
        let new = new.clone();
        self.write("workspace_create", move |s| create(s, &new))
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
        self.read("workspace_find", move |s| {
            s.optional(FIND, [Text(&name)], workspace)
        })
        .await
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
    ) -> Result<Option<Workspace>> {
        let change = *change;
        self.write("workspace_update", move |s| update(s, id, &change))
            .await
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        self.write("workspace_delete", move |s| {
            let deleted = s.run(DELETE, params![blob(id), s.now])? > 0;
            if deleted {
                s.notify(Notification::Work);
            }
            Ok(deleted)
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

fn create(session: &Session<'_>, new: &NewWorkspace) -> Result<WorkspaceCreated, Fault> {
    let row = params![
        blob(new.id),
        Text(&new.name),
        new.plan.as_str(),
        new.limit_override,
        session.now
    ];
    Ok(match session.optional(CREATE, row, workspace)? {
        Some(created) => WorkspaceCreated::Created(created),
        None => WorkspaceCreated::NameTaken,
    })
}

fn update(
    session: &Session<'_>,
    id: WorkspaceId,
    change: &WorkspaceChange,
) -> Result<Option<Workspace>, Fault> {
    let row = params![
        blob(id),
        change.plan.map(|plan| plan.as_str()),
        change.limit_override.is_some(),
        change.limit_override.flatten(),
        change.paused,
        session.now
    ];
    let updated = session.optional(UPDATE, row, workspace)?;
    if updated.is_some() {
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
        paused: row.get("paused")?,
        created_at: row.time("created_at")?,
        deleted_at: row.time_or_none("deleted_at")?,
    })
}
