//! API keys: statements and rows. The core decides what a key may do.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob, json_text};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::key::{Key, KeyCreated, KeyStore, NewKey};
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Page, Result};
use rusqlite::{Row, params};
use serde_json::Value;

const CREATE: &str = sql!("key/create");
const HAS_ADMIN: &str = sql!("key/has_admin");
const FIND: &str = sql!("key/find");
const GET: &str = sql!("key/get");
const LIST: &str = sql!("key/list");
const LIST_OF_WORKSPACE: &str = sql!("key/list_of_workspace");
const REVOKE: &str = sql!("key/revoke");

#[async_trait]
impl KeyStore for SqliteStore {
    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        let new = new.clone();
        self.write("key_create", move |s| {
            Ok(match insert(s, &new)? {
                Some(created) => KeyCreated::Created(created),
                None => KeyCreated::WorkspaceNotFound,
            })
        })
        .await
    }

    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        let new = new.clone();
        self.write("key_create_first", move |s| {
            if new.scope != KeyScope::Admin {
                let problem = "the first key must be an administrator key";
                return Err(ErrorKind::Value(problem.to_owned()).into());
            }
            if s.one(HAS_ADMIN, [], |row| Ok(row.get(0)?))? {
                return Ok(None);
            }
            insert(s, &new)
        })
        .await
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let hash = *hash;
        self.read("key_find", move |s| s.optional(FIND, [&hash], key))
            .await
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        self.read("key_get", move |s| s.optional(GET, [blob(id)], key))
            .await
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        self.read("key_list", move |s| {
            let (after, rows) = (after_id(page.after), page.rows());
            match workspace {
                None => s.all(LIST, params![after, rows], key),
                Some(id) => s.all(LIST_OF_WORKSPACE, params![after, rows, blob(id)], key),
            }
        })
        .await
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        self.write("key_revoke", move |s| {
            s.optional(REVOKE, params![blob(id), s.now], key)
        })
        .await
    }
}

/// Inserts a key; none if its workspace is not found.
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
    session.optional(CREATE, row, key)
}

fn key(row: &Row<'_>) -> Result<Key, Fault> {
    let kind: String = row.get("kind")?;
    let scope = match kind.as_str() {
        "admin" => KeyScope::Admin,
        "workspace" => KeyScope::Workspace(row.id("workspace_id")?),
        "worker" => KeyScope::Worker {
            queues: names(&row.json("queues")?)?,
        },
        other => {
            return Err(ErrorKind::Broken(format!(
                "api_key.kind in the database is invalid: `{other}`"
            ))
            .into());
        }
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
    let invalid = || {
        ErrorKind::Broken(format!(
            "api_key.queues in the database is not a list of names: {queues}"
        ))
    };
    Ok(names.ok_or_else(invalid)?)
}
