//! Reads requests: pages and the oldest ages. Writes nothing.

use crate::definition;
use crate::error::Fault;
use crate::row::{Columns, SqliteRecord, before_id, blob, timestamp};
use crate::session::Session;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_store::Page;
use leasehold_store::request::{Oldest, Request, RequestFilter};
use leasehold_store::sql;
use rusqlite::{Row, params};

const LIST: &str = sql!("request/list");
const LIST_OF_WORKSPACE: &str = sql!("request/list_of_workspace");
const LIST_OF_WORKSPACE_STATUS: &str = sql!("request/list_of_workspace_status");
const LIST_OF_STATUS: &str = sql!("request/list_of_status");
const LIST_OF_DEFINITION: &str = sql!("request/list_of_definition");
const OLDEST_PENDING: &str = sql!("request/oldest_pending");
const OLDEST_STARTABLE: &str = sql!("request/oldest_startable");
const OLDEST_CLAIMED: &str = sql!("request/oldest_claimed");
const OLDEST_DISPATCHED: &str = sql!("request/oldest_dispatched");

pub(super) fn list(
    session: &Session<'_>,
    filter: &RequestFilter,
    page: Page<RequestId>,
) -> Result<Vec<Request>, Fault> {
    // A failure reason implies FAILED, and the index on status narrows the search.
    let status = filter
        .status
        .or(filter.reason.map(|_| RequestStatus::Failed));
    // One statement for each index, so that each reads little more than the page.
    let sql = match (filter.definition, filter.workspace, status) {
        (None, Some(_), Some(_)) => LIST_OF_WORKSPACE_STATUS,
        (None, Some(_), None) => LIST_OF_WORKSPACE,
        (None, None, Some(_)) => LIST_OF_STATUS,
        (Some(_), _, _) => LIST_OF_DEFINITION,
        (None, None, None) => LIST,
    };
    // The index of definitions would lead through the requests of another workspace.
    if let (Some(definition), Some(workspace)) = (filter.definition, filter.workspace)
        && !definition::is_of(session, workspace, definition)?
    {
        return Ok(Vec::new());
    }
    let row = params![
        filter.workspace.map(blob),
        status.map(RequestStatus::as_str),
        filter.definition.map(blob),
        filter.reason.map(FailureReason::as_str),
        before_id(page.after),
        page.rows()
    ];
    session.all(sql, row, request)
}

pub(super) fn oldest(session: &Session<'_>) -> Result<Oldest, Fault> {
    session.in_snapshot(|session| {
        let since = |row: &Row<'_>| row.time_or_none("since");
        Ok(Oldest {
            at: timestamp(session.now)?,
            pending: session.one(OLDEST_PENDING, [session.now], since)?,
            startable: session.one(OLDEST_STARTABLE, [], since)?,
            claimed: session.one(OLDEST_CLAIMED, [], since)?,
            dispatched: session.one(OLDEST_DISPATCHED, [], since)?,
        })
    })
}

pub(super) fn request(row: &Row<'_>) -> Result<Request, Fault> {
    Request::read(&SqliteRecord(row))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{SqliteOptions, SqliteStore};
    use leasehold_store::{Clock, SchemaStore};
    use leasehold_store_conformance::{Fixture, clock};
    use std::sync::Arc;

    #[tokio::test]
    async fn list_of_a_foreign_definition_reads_no_requests() {
        let clock = clock();
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = Arc::new(SqliteStore::open_in_memory(&options).unwrap());
        store.schema_migrate().await.unwrap();
        let f = Fixture::new(Arc::clone(&store) as Arc<_>, clock);
        let (one, other) = (f.workspace(1).await, f.workspace(1).await);
        f.enqueue(&one, 10).await;
        f.enqueue(&other, 5_000).await;
        let page = |definition| {
            let filter = RequestFilter {
                workspace: Some(one.workspace),
                definition: Some(definition),
                ..RequestFilter::default()
            };
            store.read("test", move |s| {
                let found = list(s, &filter, Page::first(100))?;
                Ok((found.len(), s.cost().steps))
            })
        };
        let (found, steps) = page(other.definition).await.unwrap();
        assert!(found == 0 && steps < 100, "{found} requests, {steps} steps");
        assert_eq!(page(one.definition).await.unwrap().0, 10);
    }
}
