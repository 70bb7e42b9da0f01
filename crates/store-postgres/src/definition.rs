//! Definitions and their versions in PostgreSQL.

use crate::error::{postgres, unreadable};
use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use leasehold_core::duration::millis;
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use leasehold_store::definition::{
    CachedVersion, Definition, DefinitionCreated, DefinitionStore, NewDefinition, NewVersion,
    Version,
};
use leasehold_store::{Page, Result};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl DefinitionStore for PostgresStore {
    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated> {
        let row = self
            .one(
                "definition_create",
                sql!("definition/create"),
                &[&self.given_now(), &new.id.0, &new.workspace.0, &new.name],
            )
            .await?;
        Ok(
            match (
                row.get::<_, bool>("owned"),
                row.get::<_, Option<Uuid>>("id"),
            ) {
                (_, Some(_)) => DefinitionCreated::Created(row::definition(&row)?),
                (true, None) => DefinitionCreated::NameTaken,
                (false, None) => DefinitionCreated::WorkspaceNotFound,
            },
        )
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

    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool> {
        let row = self
            .maybe(
                "definition_delete",
                sql!("definition/delete"),
                &[&self.given_now(), &workspace.0, &id.0],
            )
            .await?;
        Ok(row.is_some())
    }

    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>> {
        let body = serde_json::to_value(&new.body)
            .map_err(|error| unreadable("version_publish", error))?;
        let timeout = new
            .execution_timeout
            .map(|timeout| millis(timeout).cast_signed());
        let row = self
            .maybe(
                "version_publish",
                sql!("version/publish"),
                &[
                    &self.given_now(),
                    &new.id.0,
                    &new.workspace.0,
                    &new.definition.0,
                    &body,
                    &new.params_schema,
                    &timeout,
                ],
            )
            .await?;
        row.map(|row| row::version(&row)).transpose()
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
    ) -> Result<Vec<Version>> {
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
        rows.iter().map(row::version).collect()
    }
}

impl PostgresStore {
    /// Returns a version from the cache, or reads it on a connection from the pool.
    pub(crate) async fn version(
        &self,
        context: &'static str,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<CachedVersion>>> {
        if let Some(cached) = self.versions.get(workspace, id) {
            return Ok(Some(cached));
        }
        let sql = sql!("version/get");
        let row = self.maybe(context, sql, &[&workspace.0, &id.0]).await?;
        self.cache(row)
    }

    /// Returns a version like [`PostgresStore::version`], reading on `client`: a caller that holds a connection must not wait for a second.
    pub(crate) async fn version_by(
        &self,
        client: &impl GenericClient,
        context: &'static str,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<CachedVersion>>> {
        if let Some(cached) = self.versions.get(workspace, id) {
            return Ok(Some(cached));
        }
        let row = client
            .query_opt(sql!("version/get"), &[&workspace.0, &id.0])
            .await
            .map_err(postgres(context))?;
        self.cache(row)
    }

    fn cache(&self, row: Option<Row>) -> Result<Option<Arc<CachedVersion>>> {
        let version = row.map(|row| row::version(&row)).transpose()?;
        Ok(version.map(|version| self.versions.insert(version)))
    }
}
