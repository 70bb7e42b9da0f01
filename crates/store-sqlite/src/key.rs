//! API keys: statements and rows. The core decides what a key may do.

use crate::error::Fault;
use crate::row::{Columns, Text, after_id, blob, json_text, later};
use crate::session::Session;
use crate::writer::Effect;
use crate::{SqliteStore, audit};
use async_trait::async_trait;
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::key::{
    Key, KeyCreated, KeyRevoked, KeyRotated, KeyRotation, KeyStore, NewKey, RotationStep,
};
use leasehold_store::sql;
use leasehold_store::{Actor, ErrorKind, Page, Result};
use rusqlite::{Row, params};
use serde_json::Value;

const CREATE: &str = sql!("key/create");
const HAS_ADMIN: &str = sql!("key/has_admin");
const HAS_OTHER_ADMIN: &str = sql!("key/has_other_admin");
const FIND: &str = sql!("key/find");
const GET: &str = sql!("key/get");
const LIST: &str = sql!("key/list");
const LIST_OF_WORKSPACE: &str = sql!("key/list_of_workspace");
const REVOKE: &str = sql!("key/revoke");
const ROTATE: &str = sql!("key/rotate");
const USED: &str = sql!("key/used");

#[async_trait]
impl KeyStore for SqliteStore {
    async fn key_create(&self, new: &NewKey, by: &Actor) -> Result<KeyCreated> {
        let (new, by) = (new.clone(), by.clone());
        self.write("key_create", move |s| {
            Ok(match create(s, &new, &by)? {
                Some(created) => KeyCreated::Created(created),
                None => KeyCreated::WorkspaceNotFound,
            })
        })
        .await
    }

    async fn key_create_first(&self, new: &NewKey, by: &Actor) -> Result<Option<Key>> {
        let (new, by) = (new.clone(), by.clone());
        self.write("key_create_first", move |s| {
            if new.rights != KeyRights::full(KeyScope::Admin) {
                let problem = "the first key must be an administrator key with all rights";
                return Err(ErrorKind::Value(problem.to_owned()).into());
            }
            if s.one(HAS_ADMIN, [s.now], |row| Ok(row.get(0)?))? {
                return Ok(None);
            }
            create(s, &new, &by)
        })
        .await
    }

    async fn key_rotate(&self, rotation: &KeyRotation, by: &Actor) -> Result<KeyRotated> {
        let (rotation, by) = (rotation.clone(), by.clone());
        self.writer
            .write_or_rollback("key_rotate", move |s| rotate(s, &rotation, &by))
            .await
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let hash = *hash;
        self.read("key_find", move |s| {
            s.optional(FIND, params![s.now, hash], key)
        })
        .await
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        self.read("key_get", move |s| get(s, id)).await
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        self.read("key_list", move |s| {
            let (after, rows) = (after_id(page.after), page.rows());
            match workspace {
                None => s.all(LIST, params![s.now, after, rows], key),
                Some(id) => {
                    let row = params![s.now, after, rows, blob(id)];
                    s.all(LIST_OF_WORKSPACE, row, key)
                }
            }
        })
        .await
    }

    async fn key_revoke(&self, id: KeyId, by: &Actor) -> Result<Option<Key>> {
        let by = by.clone();
        self.write("key_revoke", move |s| {
            let found = get(s, id)?;
            found.map(|found| revoke(s, found, &by)).transpose()
        })
        .await
    }

    async fn key_revoke_unless_last(&self, id: KeyId, by: &Actor) -> Result<KeyRevoked> {
        let by = by.clone();
        self.write("key_revoke_unless_last", move |s| {
            let Some(found) = get(s, id)? else {
                return Ok(KeyRevoked::NotFound);
            };
            if found.is_valid_admin() && !has_other_admin(s, &found)? {
                return Ok(KeyRevoked::LastAdmin);
            }
            revoke(s, found, &by).map(KeyRevoked::Revoked)
        })
        .await
    }

    async fn key_used(&self, ids: &[KeyId]) -> Result<()> {
        let ids = ids.to_vec();
        self.write("key_used", move |s| {
            for id in ids {
                s.run(USED, params![s.now, blob(id)])?;
            }
            Ok(())
        })
        .await
    }
}

fn get(session: &Session<'_>, id: KeyId) -> Result<Option<Key>, Fault> {
    session.optional(GET, params![session.now, blob(id)], key)
}

/// Inserts a key and records it; none if its workspace is not found.
fn create(session: &Session<'_>, new: &NewKey, by: &Actor) -> Result<Option<Key>, Fault> {
    let created = insert(session, new)?;
    if let Some(created) = &created {
        audit::record(session, by, &AuditRecord::key_create(created))?;
    }
    Ok(created)
}

fn insert(session: &Session<'_>, new: &NewKey) -> Result<Option<Key>, Fault> {
    let KeyRights {
        scope,
        access,
        payloads,
    } = &new.rights;
    let queues = match scope {
        KeyScope::Worker { queues } => Some(json_text(&Value::from(queues.as_slice()))?),
        KeyScope::Admin | KeyScope::Workspace(_) | KeyScope::Metrics => None,
    };
    let row = params![
        session.now,
        blob(new.id),
        Text(&new.name),
        scope.kind(),
        scope.workspace().map(blob),
        queues,
        access.as_str(),
        payloads.as_str(),
        new.hash,
        new.expires_in.map(|wait| later(session.now, wait))
    ];
    session.optional(CREATE, row, key)
}

/// Whether another administrator's key with all rights is valid for at least as long.
fn has_other_admin(session: &Session<'_>, key: &Key) -> Result<bool, Fault> {
    let expires_at = key.expires_at.map(|at| at.as_microsecond());
    let row = params![session.now, blob(key.id), expires_at];
    session.one(HAS_OTHER_ADMIN, row, |row| Ok(row.get(0)?))
}

fn rotate(
    session: &Session<'_>,
    rotation: &KeyRotation,
    by: &Actor,
) -> Result<Effect<KeyRotated>, Fault> {
    let old = get(session, rotation.id)?;
    let admin = old.clone().filter(Key::is_valid_admin);
    let new = match rotation.check(old) {
        RotationStep::Create(new) => new,
        RotationStep::Refuse(refused) => return Ok(Effect::Rollback(refused)),
    };
    let Some(successor) = insert(session, &new)? else {
        return Ok(Effect::Rollback(KeyRotated::Invalid));
    };
    // The successor counts, if it is valid for as long.
    if let Some(admin) = admin
        && !has_other_admin(session, &admin)?
    {
        return Ok(Effect::Rollback(KeyRotated::LastAdmin));
    }
    let row = params![
        session.now,
        blob(rotation.id),
        blob(successor.id),
        later(session.now, rotation.overlap)
    ];
    let old = session.one(ROTATE, row, key)?;
    audit::record(session, by, &AuditRecord::key_rotate(&old, &successor))?;
    Ok(Effect::Commit(KeyRotated::Rotated { old, successor }))
}

/// Revokes a key; a revoked key keeps its time.
fn revoke(session: &Session<'_>, found: Key, by: &Actor) -> Result<Key, Fault> {
    if found.revoked_at.is_some() {
        return Ok(found);
    }
    let revoked = session.one(REVOKE, params![session.now, blob(found.id)], key)?;
    audit::record(session, by, &AuditRecord::key_revoke(&revoked))?;
    Ok(revoked)
}

fn key(row: &Row<'_>) -> Result<Key, Fault> {
    let kind: String = row.get("kind")?;
    let scope = match kind.as_str() {
        "admin" => KeyScope::Admin,
        "workspace" => KeyScope::Workspace(row.id("workspace_id")?),
        "worker" => KeyScope::Worker {
            queues: names(&row.json("queues")?)?,
        },
        "metrics" => KeyScope::Metrics,
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
        rights: KeyRights {
            scope,
            access: row.parsed("access")?,
            payloads: row.parsed("payloads")?,
        },
        hash: row.get("hash")?,
        created_at: row.time("created_at")?,
        revoked_at: row.time_or_none("revoked_at")?,
        expires_at: row.time_or_none("expires_at")?,
        is_expired: row.get("is_expired")?,
        last_used_at: row.time_or_none("last_used_at")?,
        successor: row.id_or_none("successor_id")?,
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
