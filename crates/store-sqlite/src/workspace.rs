//! Workspaces: statements and rows. Which limit a plan gives is kept in the schema and the core, not here.

use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob};
use crate::session::Session;
use leasehold_core::WorkspaceId;
use leasehold_store::Page;
use leasehold_store::request::Counts;
use leasehold_store::wake::Wake;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated,
};
use rusqlite::{Row, params};

const CREATE: &str = include_str!("../sql/workspace/create.sql");
const GET: &str = include_str!("../sql/workspace/get.sql");
const FIND: &str = include_str!("../sql/workspace/find.sql");
const LIST: &str = include_str!("../sql/workspace/list.sql");
const UPDATE: &str = include_str!("../sql/workspace/update.sql");
const DELETE: &str = include_str!("../sql/workspace/delete.sql");
const IS_OPEN: &str = include_str!("../sql/workspace/is_open.sql");
const SLOTS: &str = include_str!("../sql/workspace/slots.sql");
const COUNTS: &str = include_str!("../sql/workspace/counts.sql");

pub(crate) fn create(session: &Session<'_>, new: &NewWorkspace) -> Result<WorkspaceCreated, Fault> {
    let row = params![
        blob(new.id),
        Text(&new.name),
        new.plan.as_str(),
        new.limit_override,
        session.now
    ];
    Ok(match session.maybe(CREATE, row, workspace)? {
        Some(made) => WorkspaceCreated::Created(made),
        None => WorkspaceCreated::NameTaken,
    })
}

pub(crate) fn get(session: &Session<'_>, id: WorkspaceId) -> Result<Option<Workspace>, Fault> {
    session.maybe(GET, [blob(id)], workspace)
}

pub(crate) fn find(session: &Session<'_>, name: &str) -> Result<Option<Workspace>, Fault> {
    session.maybe(FIND, [Text(name)], workspace)
}

pub(crate) fn list(
    session: &Session<'_>,
    page: Page<WorkspaceId>,
) -> Result<Vec<Workspace>, Fault> {
    session.all(LIST, params![after_id(page.after), page.rows()], workspace)
}

pub(crate) fn update(
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
    let updated = session.maybe(UPDATE, row, workspace)?;
    if updated.is_some() {
        session.ring(Wake::Work);
    }
    Ok(updated)
}

pub(crate) fn delete(session: &Session<'_>, id: WorkspaceId) -> Result<bool, Fault> {
    let deleted = session.run(DELETE, params![blob(id), session.now])? > 0;
    if deleted {
        session.ring(Wake::Work);
    }
    Ok(deleted)
}

/// Whether the workspace is there and not deleted.
pub(crate) fn is_open(session: &Session<'_>, id: WorkspaceId) -> Result<bool, Fault> {
    session.one(IS_OPEN, [blob(id)], |row| Ok(row.get(0)?))
}

pub(crate) fn slots(session: &Session<'_>, id: WorkspaceId) -> Result<Option<SlotUse>, Fault> {
    session.maybe(SLOTS, [blob(id)], slot_use)
}

/// The columns of a workspace's limit and use.
pub(crate) fn slot_use(row: &Row<'_>) -> Result<SlotUse, Fault> {
    Ok(SlotUse {
        limit: row.get("concurrency_limit")?,
        in_use: row.get("in_use")?,
    })
}

pub(crate) fn counts(session: &Session<'_>, id: WorkspaceId) -> Result<Counts, Fault> {
    let found = session.maybe(COUNTS, [blob(id)], counted)?;
    Ok(found.unwrap_or_default())
}

/// The columns of counts, of one workspace or of all.
pub(crate) fn counted(row: &Row<'_>) -> Result<Counts, Fault> {
    Ok(Counts {
        pending: row.count("pending")?,
        claimed: row.count("claimed")?,
        dispatched: row.count("dispatched")?,
        completed: row.count("completed")?,
        failed: row.count("failed")?,
    })
}

pub(crate) fn workspace(row: &Row<'_>) -> Result<Workspace, Fault> {
    Ok(Workspace {
        id: row.id("id")?,
        name: row.get("name")?,
        plan: row.word("plan")?,
        limit_override: row.get("limit_override")?,
        paused: row.get("paused")?,
        created_at: row.time("created_at")?,
        deleted_at: row.time_or_none("deleted_at")?,
    })
}
