//! API keys in PostgreSQL. The core decides what a key may do.

use crate::audit;
use crate::error::unreadable;
use crate::row::{self, micros};
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::{self, OpenTransaction};
use async_trait::async_trait;
use leasehold_core::key::{KeyRights, KeyScope};
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::key::{
    Key, KeyCreated, KeyRevoked, KeyRotated, KeyRotation, KeyStore, NewKey, RotationStep,
};
use leasehold_store::{Actor, Error, ErrorKind, Page, Result};
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl KeyStore for PostgresStore {
    async fn key_create(&self, new: &NewKey, by: &Actor) -> Result<KeyCreated> {
        let mut client = transaction::connection(self, "key_create").await?;
        let open = OpenTransaction::begin(&mut client).await?;
        let created = self.insert_key(&open, new).await?;
        if let Some(created) = &created {
            self.record(&open, by, &AuditRecord::key_create(created))
                .await?;
        }
        open.commit().await?;
        Ok(created.map_or(KeyCreated::WorkspaceNotFound, KeyCreated::Created))
    }

    /// Reads after it holds the lock, so it sees a key that another process just created.
    async fn key_create_first(&self, new: &NewKey, by: &Actor) -> Result<Option<Key>> {
        const CONTEXT: &str = "key_create_first";
        if new.rights != KeyRights::full(KeyScope::Admin) {
            let problem = "the first key must be an administrator key with all rights";
            return Err(Error::new(CONTEXT, ErrorKind::Value(problem.to_owned())));
        }
        let mut client = transaction::connection(self, CONTEXT).await?;
        let open = OpenTransaction::begin(&mut client).await?;
        open.many(sql!("key/lock_first"), &[]).await?;
        let now = self.given_now();
        let found = open.one(sql!("key/has_admin"), &[&now]).await?;
        if found.get("found") {
            return Ok(None);
        }
        let created = self.insert_key(&open, new).await?;
        if let Some(created) = &created {
            self.record(&open, by, &AuditRecord::key_create(created))
                .await?;
        }
        open.commit().await?;
        Ok(created)
    }

    async fn key_rotate(&self, rotation: &KeyRotation, by: &Actor) -> Result<KeyRotated> {
        let mut client = transaction::connection(self, "key_rotate").await?;
        let open = OpenTransaction::begin(&mut client).await?;
        // The row first: other rotations must not wait while this one waits for the row.
        let old = self.lock_key(&open, rotation.id).await?;
        open.many(sql!("key/lock_first"), &[]).await?;
        let admin = old.clone().filter(Key::is_valid_admin);
        let new = match rotation.check(old) {
            RotationStep::Create(new) => new,
            RotationStep::Refuse(refused) => return Ok(refused),
        };
        let Some(successor) = self.insert_key(&open, &new).await? else {
            return Ok(KeyRotated::Invalid);
        };
        // The successor counts, if it is valid for as long.
        if let Some(admin) = admin
            && !self.has_other_admin(&open, &admin).await?
        {
            return Ok(KeyRotated::LastAdmin);
        }
        let (now, overlap) = (self.given_now(), micros(rotation.overlap));
        let params: &Params<'_> = &[&now, &rotation.id.0, &successor.id.0, &overlap];
        let old = key(&open.one(sql!("key/rotate"), params).await?)?;
        let rotated = AuditRecord::key_rotate(&old, &successor);
        self.record(&open, by, &rotated).await?;
        open.commit().await?;
        Ok(KeyRotated::Rotated { old, successor })
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let row = self
            .maybe(
                "key_find",
                sql!("key/find"),
                &[&self.given_now(), &hash.as_slice()],
            )
            .await?;
        row.map(|row| key(&row)).transpose()
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        let params: &Params<'_> = &[&self.given_now(), &id.0];
        let row = self.maybe("key_get", sql!("key/get"), params).await?;
        row.map(|row| key(&row)).transpose()
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        const CONTEXT: &str = "key_list";
        let (now, after) = (self.given_now(), page.after.map(Uuid::from));
        let rows = match workspace {
            None => {
                self.many(CONTEXT, sql!("key/list"), &[&now, &after, &page.rows()])
                    .await?
            }
            Some(id) => {
                self.many(
                    CONTEXT,
                    sql!("key/list_of_workspace"),
                    &[&now, &after, &page.rows(), &id.0],
                )
                .await?
            }
        };
        rows.iter().map(key).collect()
    }

    async fn key_revoke(&self, id: KeyId, by: &Actor) -> Result<Option<Key>> {
        let mut client = transaction::connection(self, "key_revoke").await?;
        let open = OpenTransaction::begin(&mut client).await?;
        let Some(found) = self.lock_key(&open, id).await? else {
            return Ok(None);
        };
        let revoked = self.revoke_key(&open, found, by).await?;
        open.commit().await?;
        Ok(Some(revoked))
    }

    /// Holds the lock of the first key, so that two revocations cannot each count on the other's key.
    async fn key_revoke_unless_last(&self, id: KeyId, by: &Actor) -> Result<KeyRevoked> {
        const CONTEXT: &str = "key_revoke_unless_last";
        let mut client = transaction::connection(self, CONTEXT).await?;
        let open = OpenTransaction::begin(&mut client).await?;
        let Some(found) = self.lock_key(&open, id).await? else {
            return Ok(KeyRevoked::NotFound);
        };
        open.many(sql!("key/lock_first"), &[]).await?;
        if found.is_valid_admin() && !self.has_other_admin(&open, &found).await? {
            return Ok(KeyRevoked::LastAdmin);
        }
        let revoked = self.revoke_key(&open, found, by).await?;
        open.commit().await?;
        Ok(KeyRevoked::Revoked(revoked))
    }

    async fn key_used(&self, ids: &[KeyId]) -> Result<()> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let params: &Params<'_> = &[&self.given_now(), &ids];
        self.execute("key_used", sql!("key/used"), params)
            .await
            .map(drop)
    }
}

impl PostgresStore {
    /// Inserts a key; none if its workspace is not found.
    async fn insert_key(&self, open: &OpenTransaction<'_>, new: &NewKey) -> Result<Option<Key>> {
        let KeyRights {
            scope,
            access,
            payloads,
        } = &new.rights;
        let queues = match scope {
            KeyScope::Worker { queues } => Some(queues),
            KeyScope::Admin | KeyScope::Workspace(_) | KeyScope::Metrics => None,
        };
        let params: &Params<'_> = &[
            &self.given_now(),
            &new.id.0,
            &new.name,
            &scope.kind(),
            &scope.workspace().map(Uuid::from),
            &queues,
            &access.as_str(),
            &payloads.as_str(),
            &new.hash.as_slice(),
            &new.expires_in.map(micros),
        ];
        let rows = open.many(sql!("key/create"), params).await?;
        rows.first().map(key).transpose()
    }

    /// Whether another administrator's key with all rights is valid for at least as long.
    async fn has_other_admin(&self, open: &OpenTransaction<'_>, key: &Key) -> Result<bool> {
        let params: &Params<'_> = &[&self.given_now(), &key.id.0, &key.expires_at];
        let other = open.one(sql!("key/has_other_admin"), params).await?;
        Ok(other.get("found"))
    }

    async fn lock_key(&self, open: &OpenTransaction<'_>, id: KeyId) -> Result<Option<Key>> {
        let params: &Params<'_> = &[&self.given_now(), &id.0];
        let rows = open.many(sql!("key/lock"), params).await?;
        rows.first().map(key).transpose()
    }

    /// Revokes a key whose row is locked; a revoked key keeps its time.
    async fn revoke_key(&self, open: &OpenTransaction<'_>, found: Key, by: &Actor) -> Result<Key> {
        if found.revoked_at.is_some() {
            return Ok(found);
        }
        let params: &Params<'_> = &[&self.given_now(), &found.id.0];
        let revoked = key(&open.one(sql!("key/revoke"), params).await?)?;
        self.record(open, by, &AuditRecord::key_revoke(&revoked))
            .await?;
        Ok(revoked)
    }

    async fn record(
        &self,
        open: &OpenTransaction<'_>,
        by: &Actor,
        change: &AuditRecord,
    ) -> Result<()> {
        audit::record(open, self.given_now(), by, change).await
    }
}

fn key(row: &Row) -> Result<Key> {
    let scope = match row.get("kind") {
        "admin" => KeyScope::Admin,
        "workspace" => KeyScope::Workspace(row::id(row, "workspace_id")),
        "worker" => KeyScope::Worker {
            queues: row.get("queues"),
        },
        "metrics" => KeyScope::Metrics,
        other => {
            let kind = ErrorKind::Broken(format!("unknown kind of key: `{other}`"));
            return Err(Error::new("reading a key", kind));
        }
    };
    Ok(Key {
        id: row::id(row, "id"),
        name: row.get("name"),
        rights: KeyRights {
            scope,
            access: row::named(row, "access")?,
            payloads: row::named(row, "payloads")?,
        },
        hash: row
            .get::<_, &[u8]>("hash")
            .try_into()
            .map_err(|error| unreadable("reading a key", error))?,
        created_at: row::time(row, "created_at")?,
        revoked_at: row::time(row, "revoked_at")?,
        expires_at: row::time(row, "expires_at")?,
        is_expired: row.get("is_expired"),
        last_used_at: row::time(row, "last_used_at")?,
        successor: row::maybe_id(row, "successor_id"),
    })
}
