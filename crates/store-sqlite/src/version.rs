//! Versions of definitions: statements and rows. They are written once and never changed.

use crate::error::Fault;
use crate::row::{Columns, blob, json_text};
use crate::session::Session;
use leasehold_core::duration::millis;
use leasehold_core::{DefinitionId, VersionBody, VersionId, WorkspaceId};
use leasehold_store::definition::{NewVersion, Version};
use leasehold_store::{ErrorKind, Page};
use rusqlite::{Row, params};
use std::time::Duration;

const PUBLISH: &str = include_str!("../sql/definition/publish.sql");
const CREATE: &str = include_str!("../sql/version/create.sql");
const GET: &str = include_str!("../sql/version/get.sql");
const LIST: &str = include_str!("../sql/version/list.sql");

pub(crate) fn publish(session: &Session<'_>, new: &NewVersion) -> Result<Option<Version>, Fault> {
    let body = serde_json::to_value(&new.body)
        .map_err(|error| ErrorKind::Value(error.to_string()))
        .and_then(|body| json_text(&body))?;
    let schema = new.params_schema.as_ref().map(json_text).transpose()?;
    let timeout = new
        .execution_timeout
        .map(|timeout| millis(timeout).cast_signed());
    let ids = [blob(new.workspace), blob(new.definition), blob(new.id)];
    let number = session.maybe(PUBLISH, ids, |row| Ok(row.get::<_, u32>(0)?))?;
    let Some(number) = number else {
        return Ok(None);
    };
    let row = params![
        blob(new.id),
        blob(new.workspace),
        blob(new.definition),
        number,
        body,
        schema,
        timeout,
        session.now
    ];
    session.one(CREATE, row, version).map(Some)
}

pub(crate) fn get(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: VersionId,
) -> Result<Option<Version>, Fault> {
    session.maybe(GET, [blob(workspace), blob(id)], version)
}

pub(crate) fn list(
    session: &Session<'_>,
    workspace: WorkspaceId,
    definition: DefinitionId,
    page: Page<u32>,
) -> Result<Vec<Version>, Fault> {
    let row = params![
        blob(workspace),
        blob(definition),
        page.after.unwrap_or_default(),
        page.rows()
    ];
    session.all(LIST, row, version)
}

fn version(row: &Row<'_>) -> Result<Version, Fault> {
    let body: VersionBody = serde_json::from_value(row.json("body")?)
        .map_err(|error| ErrorKind::Broken(format!("the body of a version: {error}")))?;
    let schema: Option<String> = row.get("params_schema")?;
    let timeout: Option<i64> = row.get("execution_timeout_ms")?;
    Ok(Version {
        id: row.id("id")?,
        workspace: row.id("workspace_id")?,
        definition: row.id("definition_id")?,
        number: row.get("number")?,
        body,
        params_schema: match schema {
            Some(_) => Some(row.json("params_schema")?),
            None => None,
        },
        execution_timeout: timeout.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        created_at: row.time("created_at")?,
    })
}
