//! Definitions and their immutable versions: statements and rows.

use crate::error::Fault;
use crate::row::{Columns, SqliteRecord, Text, after_id, blob, checked_text, json_text};
use crate::session::Session;
use crate::writer::Effect;
use crate::{SqliteStore, audit, queue_access, workspace};
use async_trait::async_trait;
use leasehold_core::duration::millis;
use leasehold_core::limits::CATALOG_ROW_BYTES;
use leasehold_core::{DefinitionId, JsonText, VersionId, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::definition::{
    CachedVersion, Definition, DefinitionCreated, DefinitionStore, NewDefinition, NewVersion,
    Version, VersionCache, VersionPublished, VersionRecord,
};
use leasehold_store::sql;
use leasehold_store::{Actor, ErrorKind, Page, Result};
use rusqlite::{Row, params};
use std::sync::Arc;

const CREATE: &str = sql!("definition/create");
const GET: &str = sql!("definition/get");
const FIND: &str = sql!("definition/find");
const LIST: &str = sql!("definition/list");
const DELETE: &str = sql!("definition/delete");
const PUBLISH: &str = sql!("definition/publish");
const VERSION_CREATE: &str = sql!("version/create");
const VERSION_GET: &str = sql!("version/get");
const VERSION_LIST: &str = sql!("version/list");
const IS_OF: &str = sql!("definition/is_of");
const IS_OPEN: &str = sql!("definition/is_open");
const CHARGE: &str = sql!("workspace/charge_catalog");

#[async_trait]
impl DefinitionStore for SqliteStore {
    async fn definition_create(
        &self,
        new: &NewDefinition,
        by: &Actor,
    ) -> Result<DefinitionCreated> {
        let (new, by) = (new.clone(), by.clone());
        self.writer
            .write_or_rollback("definition_create", move |s| create(s, &new, &by))
            .await
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        self.read("definition_get", move |s| {
            s.optional(GET, [blob(workspace), blob(id)], definition)
        })
        .await
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        let name = name.to_owned();
        self.read("definition_find", move |s| {
            s.optional(FIND, params![blob(workspace), Text(&name)], definition)
        })
        .await
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        self.read("definition_list", move |s| {
            let row = params![blob(workspace), after_id(page.after), page.rows()];
            s.all(LIST, row, definition)
        })
        .await
    }

    async fn definition_delete(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
        by: &Actor,
    ) -> Result<bool> {
        let by = by.clone();
        self.write("definition_delete", move |s| {
            let row = params![blob(workspace), blob(id), s.now];
            let deleted: Option<String> = s.optional(DELETE, row, |row| Ok(row.get("name")?))?;
            if let Some(name) = &deleted {
                let record = AuditRecord::definition_delete(workspace, id, name);
                audit::record(s, &by, &record)?;
            }
            Ok(deleted.is_some())
        })
        .await
    }

    async fn version_publish(&self, new: &NewVersion, by: &Actor) -> Result<VersionPublished> {
        let (new, by) = (new.clone(), by.clone());
        self.writer
            .write_or_rollback("version_publish", move |s| publish(s, &new, &by))
            .await
    }

    async fn version_get(
        &self,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<Version>>> {
        if let Some(cached) = self.versions.get(workspace, id) {
            return Ok(Some(Arc::clone(cached.version())));
        }
        let versions = Arc::clone(&self.versions);
        self.read("version_get", move |s| {
            let found = cached_version(s, &versions, workspace, id)?;
            Ok(found.map(|cached| Arc::clone(cached.version())))
        })
        .await
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<VersionRecord>> {
        self.read("version_list", move |s| {
            let row = params![
                blob(workspace),
                blob(definition),
                page.after.unwrap_or_default(),
                page.rows()
            ];
            s.all(VERSION_LIST, row, version_record)
        })
        .await
    }
}

fn create(
    session: &Session<'_>,
    new: &NewDefinition,
    by: &Actor,
) -> Result<Effect<DefinitionCreated>, Fault> {
    if !workspace::is_open(session, new.workspace)? {
        return Ok(Effect::Rollback(DefinitionCreated::WorkspaceNotFound));
    }
    let row = params![
        blob(new.id),
        blob(new.workspace),
        Text(&new.name),
        session.now
    ];
    let Some(created) = session.optional(CREATE, row, definition)? else {
        return Ok(Effect::Rollback(DefinitionCreated::NameTaken));
    };
    if !charge(session, new.workspace, CATALOG_ROW_BYTES)? {
        return Ok(Effect::Rollback(DefinitionCreated::QuotaExceeded));
    }
    audit::record(session, by, &AuditRecord::definition_create(&created))?;
    Ok(Effect::Commit(DefinitionCreated::Created(created)))
}

/// Counts bytes of definitions and versions; false, and nothing is counted, if the workspace would exceed its limit.
fn charge(session: &Session<'_>, workspace: WorkspaceId, bytes: u64) -> Result<bool, Fault> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let row = params![blob(workspace), bytes];
    Ok(session.optional(CHARGE, row, |_| Ok(()))?.is_some())
}

/// Whether the definition can run: neither it nor its workspace is deleted.
pub(crate) fn is_open(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool, Fault> {
    session.one(IS_OPEN, [blob(workspace), blob(id)], |row| Ok(row.get(0)?))
}

/// Whether the definition is of this workspace, deleted or not.
pub(crate) fn is_of(
    session: &Session<'_>,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool, Fault> {
    session.one(IS_OF, [blob(workspace), blob(id)], |row| Ok(row.get(0)?))
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

fn publish(
    session: &Session<'_>,
    new: &NewVersion,
    by: &Actor,
) -> Result<Effect<VersionPublished>, Fault> {
    if !is_open(session, new.workspace, new.definition)? {
        return Ok(Effect::Rollback(VersionPublished::DefinitionNotFound));
    }
    let grants = match queue_access::prepare(session, new)? {
        Ok(grants) => grants,
        Err(refusal) => return Ok(Effect::Rollback(VersionPublished::QueueRefused(refusal))),
    };
    let Some(version) = insert_version(session, new)? else {
        return Ok(Effect::Rollback(VersionPublished::DefinitionNotFound));
    };
    if !charge(session, new.workspace, new.bytes())? {
        return Ok(Effect::Rollback(VersionPublished::QuotaExceeded));
    }
    let record = AuditRecord::version_publish(&version, &grants);
    audit::record(session, by, &record)?;
    Ok(Effect::Commit(VersionPublished::of(Some(version))))
}

fn insert_version(session: &Session<'_>, new: &NewVersion) -> Result<Option<Version>, Fault> {
    let body = JsonText::of(&new.body)
        .map_err(|error| ErrorKind::Value(error.to_string()))
        .and_then(|body| checked_text(&body))?;
    let schema = new.params_schema.as_ref().map(json_text).transpose()?;
    let timeout = new
        .execution_timeout
        .map(|timeout| millis(timeout).cast_signed());
    let ids = [blob(new.workspace), blob(new.definition), blob(new.id)];
    let number = session.optional(PUBLISH, ids, |row| Ok(row.get::<_, u32>(0)?))?;
    let Some(number) = number else {
        return Ok(None);
    };
    let row = params![
        blob(new.id),
        blob(new.workspace),
        blob(new.definition),
        number,
        body.as_str(),
        schema,
        timeout,
        session.now
    ];
    session.one(VERSION_CREATE, row, version).map(Some)
}

/// Returns a version from the cache or the database.
pub(crate) fn cached_version(
    session: &Session<'_>,
    versions: &VersionCache,
    workspace: WorkspaceId,
    id: VersionId,
) -> Result<Option<Arc<CachedVersion>>, Fault> {
    if let Some(cached) = versions.get(workspace, id) {
        return Ok(Some(cached));
    }
    let found = session.optional(VERSION_GET, [blob(workspace), blob(id)], version)?;
    Ok(found.map(|version| versions.insert(version)))
}

fn version_record(row: &Row<'_>) -> Result<VersionRecord, Fault> {
    VersionRecord::read(&SqliteRecord(row))
}

fn version(row: &Row<'_>) -> Result<Version, Fault> {
    let parsed = version_record(row)?.parse();
    parsed.map_err(|error| {
        let text = format!("a version's body in the database is invalid: {error}");
        ErrorKind::Broken(text).into()
    })
}
