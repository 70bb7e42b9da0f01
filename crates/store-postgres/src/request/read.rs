//! Looking at requests.

use super::claim::RIPEN_AT_MOST;
use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::request::{Counts, Request, RequestFilter};
use leasehold_store::{ErrorKind, Page, Result};
use uuid::Uuid;

pub(crate) async fn get(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Option<Request>> {
    let row = store
        .maybe("request_get", sql!("request/get"), &[&workspace.0, &id.0])
        .await?;
    row.map(|row| row::request(&row)).transpose()
}

pub(crate) async fn find(store: &PostgresStore, id: RequestId) -> Result<Option<Request>> {
    let row = store
        .maybe("request_find", sql!("request/find"), &[&id.0])
        .await?;
    row.map(|row| row::request(&row)).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    filter: &RequestFilter,
    page: Page<RequestId>,
) -> Result<Vec<Request>> {
    const CONTEXT: &str = "request_list";
    let before = page.after.map(Uuid::from);
    let status = filter.status.map(RequestStatus::as_str);
    let definition = filter.definition.map(Uuid::from);
    let reason = filter.reason.map(|reason| reason.as_str());
    let rows = match filter.workspace {
        None => {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&before, &status, &definition, &reason, &page.rows()];
            store
                .many(CONTEXT, sql!("request/list_all"), &params)
                .await?
        }
        Some(workspace) => {
            let failed = filter.status == Some(RequestStatus::Failed) || reason.is_some();
            let statement = if failed {
                sql!("request/list_failed")
            } else {
                sql!("request/list")
            };
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
                &workspace.0,
                &before,
                &status,
                &definition,
                &reason,
                &page.rows(),
            ];
            store.many(CONTEXT, statement, &params).await?
        }
    };
    rows.iter().map(row::request).collect()
}

pub(crate) async fn counts(store: &PostgresStore, workspace: WorkspaceId) -> Result<Counts> {
    // Folding first keeps what must be added to the folded counts small; without it the answer is as exact.
    match super::claim::settle(store).await {
        Err(error) if !matches!(error.kind, ErrorKind::Contended(_)) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let row = store
        .maybe("request_counts", sql!("request/counts"), &[&workspace.0])
        .await?;
    let Some(row) = row else {
        return Ok(Counts::default());
    };
    Ok(Counts {
        pending: row::count(&row, "pending")?,
        claimed: row::count(&row, "claimed")?,
        dispatched: row::count(&row, "dispatched")?,
        completed: row::count(&row, "completed")?,
        failed: row::count(&row, "failed")?,
    })
}

pub(crate) async fn timeline(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Vec<Event>> {
    let rows = store
        .many(
            "request_timeline",
            sql!("request/timeline"),
            &[&workspace.0, &id.0],
        )
        .await?;
    rows.iter().map(row::event).collect()
}

pub(crate) async fn place(
    store: &PostgresStore,
    workspace: WorkspaceId,
    id: RequestId,
    up_to: u32,
) -> Result<Option<u32>> {
    let row = store
        .maybe(
            "request_place",
            sql!("request/place"),
            &[
                &store.given_now(),
                &workspace.0,
                &id.0,
                &i64::from(up_to),
                &i64::from(RIPEN_AT_MOST),
            ],
        )
        .await?;
    row.map(|row| row::count(&row, "place")).transpose()
}
