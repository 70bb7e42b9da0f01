//! Definitions: statements and rows.

use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob};
use crate::session::Session;
use crate::workspace;
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::definition::{Definition, DefinitionCreated, NewDefinition};
use rusqlite::{Row, params};

const CREATE: &str = include_str!("../sql/definition/create.sql");
const GET: &str = include_str!("../sql/definition/get.sql");
const FIND: &str = include_str!("../sql/definition/find.sql");
const LIST: &str = include_str!("../sql/definition/list.sql");
const DELETE: &str = include_str!("../sql/definition/delete.sql");
const IS_OPEN: &str = include_str!("../sql/definition/is_open.sql");

pub(crate) fn create(
    session: &Session<'_>,
    new: &NewDefinition,
) -> Result<DefinitionCreated, Fault> {
    if !workspace::is_open(session, new.workspace)? {
        return Ok(DefinitionCreated::WorkspaceNotFound);
    }
    let row = params![
        blob(new.id),
        blob(new.workspace),
        Text(&new.name),
        session.now
    ];
    Ok(match session.maybe(CREATE, row, definition)? {
        Some(made) => DefinitionCreated::Created(made),
        None => DefinitionCreated::NameTaken,
    })
}

pub(crate) fn get(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<Option<Definition>, Fault> {
    session.maybe(GET, [blob(workspace), blob(id)], definition)
}

pub(crate) fn find(
    session: &Session<'_>,
    workspace: WorkspaceId,
    name: &str,
) -> Result<Option<Definition>, Fault> {
    session.maybe(FIND, params![blob(workspace), Text(name)], definition)
}

pub(crate) fn list(
    session: &Session<'_>,
    workspace: WorkspaceId,
    page: Page<DefinitionId>,
) -> Result<Vec<Definition>, Fault> {
    let row = params![blob(workspace), after_id(page.after), page.rows()];
    session.all(LIST, row, definition)
}

pub(crate) fn delete(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool, Fault> {
    let row = params![blob(workspace), blob(id), session.now];
    Ok(session.run(DELETE, row)? > 0)
}

/// Whether it can still be run: neither it nor its workspace is deleted.
pub(crate) fn is_open(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool, Fault> {
    session.one(IS_OPEN, [blob(workspace), blob(id)], |row| Ok(row.get(0)?))
}

fn definition(row: &Row<'_>) -> Result<Definition, Fault> {
    Ok(Definition {
        id: row.id("id")?,
        workspace: row.id("workspace_id")?,
        name: row.get("name")?,
        current_version: row.id_or_none("current_version_id")?,
        created_at: row.time("created_at")?,
    })
}
