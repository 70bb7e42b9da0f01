//! Definitions in PostgreSQL.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::{DefinitionId, WorkspaceId};
use leasehold_store::definition::{Definition, DefinitionCreated, NewDefinition};
use leasehold_store::{Page, Result};
use uuid::Uuid;

pub(crate) async fn create(
    store: &PostgresStore,
    new: &NewDefinition,
) -> Result<DefinitionCreated> {
    let row = store
        .one(
            "definition_create",
            sql!("definition/create"),
            &[&store.given_now(), &new.id.0, &new.workspace.0, &new.name],
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

pub(crate) async fn get(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<Option<Definition>> {
    let row = store
        .maybe(
            "definition_get",
            sql!("definition/get"),
            &[&workspace.0, &id.0],
        )
        .await?;
    row.as_ref().map(row::definition).transpose()
}

pub(crate) async fn find(
    store: &PostgresStore,
    workspace: WorkspaceId,
    name: &str,
) -> Result<Option<Definition>> {
    let row = store
        .maybe(
            "definition_find",
            sql!("definition/find"),
            &[&workspace.0, &name],
        )
        .await?;
    row.as_ref().map(row::definition).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    workspace: WorkspaceId,
    page: Page<DefinitionId>,
) -> Result<Vec<Definition>> {
    let after = page.after.map(Uuid::from);
    let rows = store
        .many(
            "definition_list",
            sql!("definition/list"),
            &[&workspace.0, &after, &page.rows()],
        )
        .await?;
    rows.iter().map(row::definition).collect()
}

pub(crate) async fn delete(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: DefinitionId,
) -> Result<bool> {
    let row = store
        .maybe(
            "definition_delete",
            sql!("definition/delete"),
            &[&store.given_now(), &workspace.0, &id.0],
        )
        .await?;
    Ok(row.is_some())
}
