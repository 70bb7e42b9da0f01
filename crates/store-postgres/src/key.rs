//! API keys in PostgreSQL. The core decides what a key may do.

use crate::error::{postgres, unreadable};
use crate::pool;
use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::key::KeyScope;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_store::key::{Key, KeyCreated, KeyStore, NewKey};
use leasehold_store::{Error, ErrorKind, Page, Result};
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl KeyStore for PostgresStore {
    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        let (workspace, queues) = match &new.scope {
            KeyScope::Admin => (None, None),
            KeyScope::Workspace(id) => (Some(id.0), None),
            KeyScope::Worker { queues } => (None, Some(queues)),
        };
        let row = self
            .maybe(
                "key_create",
                sql!("key/create"),
                &[
                    &self.given_now(),
                    &new.id.0,
                    &new.name,
                    &new.scope.kind(),
                    &workspace,
                    &queues,
                    &new.hash.as_slice(),
                ],
            )
            .await?;
        match row {
            Some(row) => Ok(KeyCreated::Created(key(&row)?)),
            None => Ok(KeyCreated::WorkspaceNotFound),
        }
    }

    /// Reads after it holds the lock, so it sees a key that another process just created.
    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        const CONTEXT: &str = "key_create_first";
        if new.scope != KeyScope::Admin {
            let problem = "the first key must be an administrator key";
            return Err(Error::new(CONTEXT, ErrorKind::Value(problem.to_owned())));
        }
        let mut client = pool::take(&self.pool, CONTEXT).await?;
        let transaction = client.transaction().await.map_err(postgres(CONTEXT))?;
        transaction
            .batch_execute(sql!("key/lock_first"))
            .await
            .map_err(postgres(CONTEXT))?;
        let row = transaction
            .query_opt(
                sql!("key/create_first"),
                &[
                    &self.given_now(),
                    &new.id.0,
                    &new.name,
                    &new.hash.as_slice(),
                ],
            )
            .await
            .map_err(postgres(CONTEXT))?;
        transaction.commit().await.map_err(postgres(CONTEXT))?;
        row.map(|row| key(&row)).transpose()
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let row = self
            .maybe("key_find", sql!("key/find"), &[&hash.as_slice()])
            .await?;
        row.map(|row| key(&row)).transpose()
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        let row = self.maybe("key_get", sql!("key/get"), &[&id.0]).await?;
        row.map(|row| key(&row)).transpose()
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        const CONTEXT: &str = "key_list";
        let after = page.after.map(Uuid::from);
        let rows = match workspace {
            None => {
                self.many(CONTEXT, sql!("key/list"), &[&after, &page.rows()])
                    .await?
            }
            Some(id) => {
                self.many(
                    CONTEXT,
                    sql!("key/list_of_workspace"),
                    &[&after, &page.rows(), &id.0],
                )
                .await?
            }
        };
        rows.iter().map(key).collect()
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        let row = self
            .maybe(
                "key_revoke",
                sql!("key/revoke"),
                &[&self.given_now(), &id.0],
            )
            .await?;
        row.map(|row| key(&row)).transpose()
    }
}

fn key(row: &Row) -> Result<Key> {
    let scope = match row.get("kind") {
        "admin" => KeyScope::Admin,
        "workspace" => KeyScope::Workspace(row::id(row, "workspace_id")),
        "worker" => KeyScope::Worker {
            queues: row.get("queues"),
        },
        other => {
            let kind = ErrorKind::Broken(format!("unknown kind of key: `{other}`"));
            return Err(Error::new("reading a key", kind));
        }
    };
    Ok(Key {
        id: row::id(row, "id"),
        name: row.get("name"),
        scope,
        hash: row
            .get::<_, &[u8]>("hash")
            .try_into()
            .map_err(|error| unreadable("reading a key", error))?,
        created_at: row::time(row, "created_at")?,
        revoked_at: row::time(row, "revoked_at")?,
    })
}
