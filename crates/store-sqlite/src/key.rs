//! Keys that open the API: statements and rows. What a key may do is the core's to say.

use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob, json_text};
use crate::session::Session;
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::key::{Key, KeyCreated, NewKey};
use leasehold_store::{ErrorKind, Page};
use rusqlite::{Row, params};
use serde_json::Value;

const CREATE: &str = include_str!("../sql/key/create.sql");
const HAS_ADMIN: &str = include_str!("../sql/key/has_admin.sql");
const FIND: &str = include_str!("../sql/key/find.sql");
const GET: &str = include_str!("../sql/key/get.sql");
const LIST: &str = include_str!("../sql/key/list.sql");
const LIST_OF_WORKSPACE: &str = include_str!("../sql/key/list_of_workspace.sql");
const REVOKE: &str = include_str!("../sql/key/revoke.sql");

pub(crate) fn create(session: &Session<'_>, new: &NewKey) -> Result<KeyCreated, Fault> {
    Ok(match insert(session, new)? {
        Some(made) => KeyCreated::Created(made),
        None => KeyCreated::WorkspaceNotFound,
    })
}

pub(crate) fn create_first(session: &Session<'_>, new: &NewKey) -> Result<Option<Key>, Fault> {
    if new.scope != KeyScope::Admin {
        let problem = "the first key must be an administrator's";
        return Err(ErrorKind::Value(problem.to_owned()).into());
    }
    if session.one(HAS_ADMIN, [], |row| Ok(row.get(0)?))? {
        return Ok(None);
    }
    insert(session, new)
}

pub(crate) fn find(session: &Session<'_>, hash: &[u8; 32]) -> Result<Option<Key>, Fault> {
    session.maybe(FIND, [hash], key)
}

pub(crate) fn get(session: &Session<'_>, id: KeyId) -> Result<Option<Key>, Fault> {
    session.maybe(GET, [blob(id)], key)
}

pub(crate) fn list(
    session: &Session<'_>,
    workspace: Option<WorkspaceId>,
    page: Page<KeyId>,
) -> Result<Vec<Key>, Fault> {
    let (after, rows) = (after_id(page.after), page.rows());
    match workspace {
        None => session.all(LIST, params![after, rows], key),
        Some(id) => session.all(LIST_OF_WORKSPACE, params![after, rows, blob(id)], key),
    }
}

pub(crate) fn revoke(session: &Session<'_>, id: KeyId) -> Result<Option<Key>, Fault> {
    session.maybe(REVOKE, params![blob(id), session.now], key)
}

/// Nothing is made of a key whose workspace is not there.
fn insert(session: &Session<'_>, new: &NewKey) -> Result<Option<Key>, Fault> {
    let (workspace, queues) = match &new.scope {
        KeyScope::Admin => (None, None),
        KeyScope::Workspace(id) => (Some(blob(*id)), None),
        KeyScope::Worker { queues } => (None, Some(json_text(&Value::from(queues.as_slice()))?)),
    };
    let row = params![
        blob(new.id),
        Text(&new.name),
        new.scope.kind(),
        workspace,
        queues,
        new.hash,
        session.now
    ];
    session.maybe(CREATE, row, key)
}

fn key(row: &Row<'_>) -> Result<Key, Fault> {
    let kind: String = row.get("kind")?;
    let scope = match kind.as_str() {
        "admin" => KeyScope::Admin,
        "workspace" => KeyScope::Workspace(row.id("workspace_id")?),
        "worker" => KeyScope::Worker {
            queues: names(&row.json("queues")?)?,
        },
        other => return Err(ErrorKind::Broken(format!("a key of the kind `{other}`")).into()),
    };
    Ok(Key {
        id: row.id("id")?,
        name: row.get("name")?,
        scope,
        hash: row.get("hash")?,
        created_at: row.time("created_at")?,
        revoked_at: row.time_or_none("revoked_at")?,
    })
}

fn names(queues: &Value) -> Result<Vec<String>, Fault> {
    let name = |value: &Value| value.as_str().map(str::to_owned);
    let names = queues
        .as_array()
        .and_then(|all| all.iter().map(name).collect());
    let broken = || ErrorKind::Broken(format!("a key's queues are no names: {queues}"));
    Ok(names.ok_or_else(broken)?)
}
