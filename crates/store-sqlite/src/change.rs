//! The stream of changes. There is one writer, so an event's id is its place in the order of commits, and the cursor.

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
    // As of one moment: a page that is not full was looked for up to the last event that moment knows, and goes on there.
    session.at_once(|session| {
        let last: i64 = session.one(LAST, [], |row| Ok(row.get(0)?))?;
        let after = match start {
            ChangeStart::Oldest => 0,
            ChangeStart::Now => last,
            ChangeStart::After(cursor) => place(cursor, last)?,
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

/// A place beyond the last was never handed out for this file: it is of another, or of a later state of this one.
fn place(cursor: &ChangeCursor, last: i64) -> Result<i64, ErrorKind> {
    match cursor.0.parse::<i64>() {
        // Only the text that was handed out: neither a sign nor leading zeros.
        Ok(place) if (0..=last).contains(&place) && place.to_string() == cursor.0 => Ok(place),
        _ => Err(ErrorKind::Value(
            "the cursor is not one of this stream".to_owned(),
        )),
    }
}
