//! The stream of changes. One thread writes, so event ids follow the order of commits and, with the epoch of the file, serve as cursors. One call scans a
//! bounded number of events.

use crate::SqliteStore;
use crate::error::Fault;
use crate::request::event;
use crate::row::blob;
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::{CHANGE_SCAN_MAX, PAGE_MAX};
use leasehold_store::change::{Change, ChangeCursor, ChangePage, ChangeStart, ChangeStore};
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Result};
use rusqlite::{Row, params};

const LAST: &str = sql!("change/last");
const END: &str = sql!("epoch/end");
const SCAN_END: &str = sql!("change/scan_end");
const LIST: &str = sql!("change/list");
const LIST_OF_WORKSPACE: &str = sql!("change/list_of_workspace");

const GONE: &str = "the file was restored from an older copy since this cursor was issued, or the cursor is of another file; read the current state, then \
    start again without a cursor";

#[async_trait]
impl ChangeStore for SqliteStore {
    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        let start = start.clone();
        self.read("change_list", move |s| list(s, &start, workspace, limit))
            .await
    }
}

fn list(
    session: &Session<'_>,
    start: &ChangeStart,
    workspace: Option<WorkspaceId>,
    limit: u32,
) -> Result<ChangePage, Fault> {
    // One snapshot: a page that is not full ends at the snapshot's last event, and the cursor continues from there.
    session.in_snapshot(|session| {
        let (last, epoch): (i64, i64) =
            session.one(LAST, [], |row| Ok((row.get("last")?, row.get("epoch")?)))?;
        let after = match start {
            ChangeStart::Oldest => 0,
            ChangeStart::Now => last,
            ChangeStart::After(cursor) => position(session, cursor, last)?,
        };
        let cursor = |id| cursor(epoch, id);
        let change = |row: &Row<'_>| change(epoch, row);
        let limit = limit.clamp(1, PAGE_MAX);
        let (changes, scanned) = match workspace {
            None => (session.all(LIST, params![after, limit], change)?, last),
            Some(id) => {
                let end = params![after, CHANGE_SCAN_MAX];
                let end = session.optional(SCAN_END, end, |row| Ok(row.get(0)?))?;
                let end: i64 = end.unwrap_or(last);
                let range = params![after, limit, blob(id), end];
                (session.all(LIST_OF_WORKSPACE, range, change)?, end)
            }
        };
        let full = changes.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let end = match changes.last() {
            Some(change) if full => change.cursor.clone(),
            _ => cursor(scanned),
        };
        let more = end != cursor(last);
        Ok(ChangePage {
            changes,
            cursor: end,
            more,
        })
    })
}

fn change(epoch: i64, row: &Row<'_>) -> Result<Change, Fault> {
    let id: i64 = row.get("id")?;
    Ok(Change {
        event: event::event(row)?,
        cursor: cursor(epoch, id),
    })
}

/// Returns the cursor after this event: the epoch of the file and its id.
fn cursor(epoch: i64, id: i64) -> ChangeCursor {
    ChangeCursor([epoch.to_be_bytes(), id.to_be_bytes()].concat())
}

/// Returns the event of a cursor. One that is not in the epoch of the cursor belongs to another file, or to a later state of the one that this file was
/// copied from.
fn position(session: &Session<'_>, cursor: &ChangeCursor, last: i64) -> Result<i64, Fault> {
    let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).ok();
    let numbers = cursor.0.split_at_checked(8);
    let numbers = numbers.and_then(|(epoch, id)| Some((number(epoch)?, number(id)?)));
    let Some((epoch, id)) = numbers.filter(|(_, id)| *id >= 0) else {
        let problem = "the cursor does not belong to this stream";
        return Err(ErrorKind::Value(problem.to_owned()).into());
    };
    let end = session.optional(END, [epoch, last], |row| Ok(row.get::<_, i64>("last")?))?;
    match end {
        Some(end) if id <= end => Ok(id),
        _ => Err(ErrorKind::Gone(GONE.to_owned()).into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Cost, SqliteOptions};
    use leasehold_store::SchemaStore;
    use uuid::Uuid;

    const FILL: &str = include_str!("../tests/sql/change_fill.sql");

    /// Returns the first page of an empty workspace in a store with so many events of others, and what it cost.
    async fn first_page(events: u32, start: ChangeStart) -> (ChangePage, Cost) {
        let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        let fill = move |s: &Session<'_>| s.run(FILL, params![events]);
        store.write("test", fill).await.unwrap();
        let empty = WorkspaceId(Uuid::from_u128(1));
        let read = move |s: &Session<'_>| {
            let page = list(s, &start, Some(empty), 100)?;
            Ok((page, s.cost()))
        };
        store.read("test", read).await.unwrap()
    }

    #[tokio::test]
    async fn page_of_an_empty_workspace_scans_a_bounded_number_of_events() {
        let (few, few_cost) = first_page(CHANGE_SCAN_MAX, ChangeStart::Oldest).await;
        let (many, many_cost) = first_page(10 * CHANGE_SCAN_MAX, ChangeStart::Oldest).await;
        assert!(few.changes.is_empty() && !few.more);
        assert!(many.changes.is_empty() && many.more);
        let scanned = i64::from(CHANGE_SCAN_MAX).to_be_bytes();
        assert_eq!(many.cursor.0[8..], scanned);
        let most = few_cost.steps + few_cost.steps / 100 + 100;
        assert!(many_cost.steps <= most, "{few_cost:?}, {many_cost:?}");
        let (_, now) = first_page(10 * CHANGE_SCAN_MAX, ChangeStart::Now).await;
        assert!(now.steps < 200, "{now:?}");
    }
}
