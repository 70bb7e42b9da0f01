//! The stream of changes. One thread writes, so event ids follow the order of commits and serve as cursors.

use crate::SqliteStore;
use crate::error::Fault;
use crate::request::event;
use crate::row::blob;
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::change::{Change, ChangeCursor, ChangePage, ChangeStart, ChangeStore};
use leasehold_store::sql;
use leasehold_store::{ErrorKind, Result};
use rusqlite::{Row, params};

const LAST: &str = sql!("change/last");
const LIST: &str = sql!("change/list");
const LIST_OF_WORKSPACE: &str = sql!("change/list_of_workspace");

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
        let last: i64 = session.one(LAST, [], |row| Ok(row.get(0)?))?;
        let after = match start {
            ChangeStart::Oldest => 0,
            ChangeStart::Now => last,
            ChangeStart::After(cursor) => parse_cursor(cursor, last)?,
        };
        let limit = limit.clamp(1, PAGE_MAX);
        let changes = match workspace {
            None => session.all(LIST, params![after, limit], change)?,
            Some(id) => session.all(LIST_OF_WORKSPACE, params![after, limit, blob(id)], change)?,
        };
        let full = changes.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let cursor = match changes.last() {
            Some(change) if full => change.cursor.clone(),
            _ => ChangeCursor(last.to_string()),
        };
        Ok(ChangePage { changes, cursor })
    })
}

fn change(row: &Row<'_>) -> Result<Change, Fault> {
    let id: i64 = row.get("id")?;
    Ok(Change {
        event: event::event(row)?,
        cursor: ChangeCursor(id.to_string()),
    })
}

/// Parses a cursor. A value beyond the last event comes from another file, or from a later state of this one.
fn parse_cursor(cursor: &ChangeCursor, last: i64) -> Result<i64, ErrorKind> {
    match cursor.0.parse::<i64>() {
        // Only the canonical text: no sign, no leading zeros.
        Ok(id) if (0..=last).contains(&id) && id.to_string() == cursor.0 => Ok(id),
        _ => Err(ErrorKind::Value(
            "the cursor does not belong to this stream".to_owned(),
        )),
    }
}
