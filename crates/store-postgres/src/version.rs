//! Versions in PostgreSQL.

use crate::error::unreadable;
use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::duration::millis;
use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use leasehold_store::definition::{NewVersion, Version};
use leasehold_store::{Page, Result};

pub(crate) async fn publish(store: &PostgresStore, new: &NewVersion) -> Result<Option<Version>> {
    let body =
        serde_json::to_value(&new.body).map_err(|error| unreadable("version_publish", error))?;
    let timeout = new
        .execution_timeout
        .map(|timeout| millis(timeout).cast_signed());
    let row = store
        .maybe(
            "version_publish",
            sql!("version/publish"),
            &[
                &store.given_now(),
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

pub(crate) async fn get(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: VersionId,
) -> Result<Option<Version>> {
    let row = store
        .maybe("version_get", sql!("version/get"), &[&workspace.0, &id.0])
        .await?;
    row.map(|row| row::version(&row)).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    workspace: WorkspaceId,
    definition: DefinitionId,
    page: Page<u32>,
) -> Result<Vec<Version>> {
    let after = page
        .after
        .map(|number| i32::try_from(number).unwrap_or(i32::MAX));
    let rows = store
        .many(
            "version_list",
            sql!("version/list"),
            &[&workspace.0, &definition.0, &after, &page.rows()],
        )
        .await?;
    rows.iter().map(row::version).collect()
}
