//! Definitions and their versions in PostgreSQL.

use crate::audit;
use crate::error::unreadable;
use crate::job::row::JsonbIn;
use crate::queue_access::{self, QueuesPrepared};
use crate::row;
use crate::session::Session;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::{OpenTransaction, connection};
use async_trait::async_trait;
use leasehold_core::duration::millis;
use leasehold_core::limits::CATALOG_ROW_BYTES;
use leasehold_core::{DefinitionId, JsonText, VersionId, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::definition::{
    CachedVersion, Definition, DefinitionCreated, DefinitionStore, NewDefinition, NewVersion,
    QueueGrants, Version, VersionCache, VersionPublished, VersionRecord,
};
use leasehold_store::{Actor, Page, Result};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl DefinitionStore for PostgresStore {
    async fn definition_create(
        &self,
        new: &NewDefinition,
        by: &Actor,
    ) -> Result<DefinitionCreated> {
        let context = "definition_create";
        let mut client = connection(self, context).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        let params: &Params<'_> = &[&self.given_now(), &new.id.0, &new.workspace.0, &new.name];
        let row = transaction.one(sql!("definition/create"), params).await?;
        if row.get::<_, Option<Uuid>>("id").is_none() {
            return Ok(match row.get("owned") {
                true => DefinitionCreated::NameTaken,
                false => DefinitionCreated::WorkspaceNotFound,
            });
        }
        if !charge(&transaction, new.workspace, CATALOG_ROW_BYTES).await? {
            return Ok(DefinitionCreated::QuotaExceeded);
        }
        let created = row::definition(&row)?;
        let now = self.given_now();
        let change = AuditRecord::definition_create(&created);
        audit::record(&transaction, now, by, &change).await?;
        transaction.commit().await?;
        Ok(DefinitionCreated::Created(created))
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        let row = self
            .maybe(
                "definition_get",
                sql!("definition/get"),
                &[&workspace.0, &id.0],
            )
            .await?;
        row.as_ref().map(row::definition).transpose()
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        let row = self
            .maybe(
                "definition_find",
                sql!("definition/find"),
                &[&workspace.0, &name],
            )
            .await?;
        row.as_ref().map(row::definition).transpose()
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        let after = page.after.map(Uuid::from);
        let rows = self
            .many(
                "definition_list",
                sql!("definition/list"),
                &[&workspace.0, &after, &page.rows()],
            )
            .await?;
        rows.iter().map(row::definition).collect()
    }

    async fn definition_delete(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
        by: &Actor,
    ) -> Result<bool> {
        self.audited(
            "definition_delete",
            by,
            sql!("definition/delete"),
            &[&self.given_now(), &workspace.0, &id.0],
            |row| {
                let name = row.map(|row| row.get("name"));
                let record = |name| AuditRecord::definition_delete(workspace, id, name);
                Ok((name.is_some(), name.map(record)))
            },
        )
        .await
    }

    async fn version_publish(&self, new: &NewVersion, by: &Actor) -> Result<VersionPublished> {
        let context = "version_publish";
        let mut client = connection(self, context).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        let mut grants = QueueGrants::default();
        if !new.body.task_queues().is_empty() {
            match queue_access::prepare(self, &transaction, new).await? {
                QueuesPrepared::Ready(prepared) => grants = prepared,
                QueuesPrepared::DefinitionNotFound => {
                    return Ok(VersionPublished::DefinitionNotFound);
                }
                QueuesPrepared::Refused(refusal) => {
                    return Ok(VersionPublished::QueueRefused(refusal));
                }
            }
        }
        let published = publish(self, &transaction, new).await?;
        if published.is_some() && !charge(&transaction, new.workspace, new.bytes()).await? {
            return Ok(VersionPublished::QuotaExceeded);
        }
        if let Some(version) = &published {
            let now = self.given_now();
            let change = AuditRecord::version_publish(version, &grants);
            audit::record(&transaction, now, by, &change).await?;
            transaction.commit().await?;
        }
        Ok(VersionPublished::of(published))
    }

    async fn version_get(
        &self,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<Version>>> {
        let found = self.version("version_get", workspace, id).await?;
        Ok(found.map(|cached| Arc::clone(cached.version())))
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<VersionRecord>> {
        let after = page
            .after
            .map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        let rows = self
            .many(
                "version_list",
                sql!("version/list"),
                &[&workspace.0, &definition.0, &after, &page.rows()],
            )
            .await?;
        rows.iter().map(row::version_record).collect()
    }
}

/// Counts bytes of definitions and versions; false, and nothing is counted, if the workspace would exceed its limit.
async fn charge(
    transaction: &OpenTransaction<'_>,
    workspace: WorkspaceId,
    bytes: u64,
) -> Result<bool> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let sql = sql!("workspace/charge_catalog");
    let charged = transaction.many(sql, &[&workspace.0, &bytes]).await?;
    Ok(!charged.is_empty())
}

/// Inserts the next version; none if its definition does not exist.
async fn publish(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    new: &NewVersion,
) -> Result<Option<Version>> {
    let body = JsonText::of(&new.body).map_err(|error| unreadable(transaction.context, error))?;
    let timeout = new
        .execution_timeout
        .map(|timeout| millis(timeout).cast_signed());
    let rows = transaction
        .many(
            sql!("version/publish"),
            &[
                &store.given_now(),
                &new.id.0,
                &new.workspace.0,
                &new.definition.0,
                &JsonbIn(&body),
                &new.params_schema,
                &timeout,
            ],
        )
        .await?;
    rows.first().map(row::version).transpose()
}

impl PostgresStore {
    /// Returns a version from the cache, or reads it on a connection from the pool.
    pub(crate) async fn version(
        &self,
        context: &'static str,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<CachedVersion>>> {
        if let Some(cached) = self.versions().get(workspace, id) {
            return Ok(Some(cached));
        }
        let sql = sql!("version/get");
        let row = self.maybe(context, sql, &[&workspace.0, &id.0]).await?;
        self.cache(row)
    }

    /// Returns a version like [`PostgresStore::version`], reading on `client`: a caller that holds a connection must not wait for a second.
    pub(crate) async fn version_by(
        &self,
        session: Session<'_>,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<CachedVersion>>> {
        if let Some(cached) = self.versions().get(workspace, id) {
            return Ok(Some(cached));
        }
        let sql = sql!("version/get");
        let row = session.maybe(sql, &[&workspace.0, &id.0]).await?;
        self.cache(row)
    }

    /// Returns the versions that were read in the epoch that this process met last.
    fn versions(&self) -> Arc<VersionCache> {
        self.versions.of(self.epochs.current())
    }

    fn cache(&self, row: Option<Row>) -> Result<Option<Arc<CachedVersion>>> {
        let version = row.map(|row| row::version(&row)).transpose()?;
        Ok(version.map(|version| self.versions().insert(version)))
    }
}
