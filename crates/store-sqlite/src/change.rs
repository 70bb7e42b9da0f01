//! The stream of changes. There is one writer, so an event's id is its place in the order of commits, and the cursor.

use crate::error::Fault;
use crate::request::event;
use crate::session::Session;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::ErrorKind;
use leasehold_store::change::{ChangeCursor, ChangePage, ChangeStart};
use rusqlite::params;

const LAST: &str = include_str!("../sql/change/last.sql");
const LIST: &str = include_str!("../sql/change/list.sql");

pub(crate) fn list(
    session: &Session<'_>,
    start: &ChangeStart,
    limit: u32,
) -> Result<ChangePage, Fault> {
    let after = match start {
        ChangeStart::Oldest => 0,
        ChangeStart::After(cursor) => place(cursor)?,
        ChangeStart::Now => {
            let last: i64 = session.one(LAST, [], |row| Ok(row.get(0)?))?;
            return Ok(page(Vec::new(), last));
        }
    };
    let found = session.all(LIST, params![after, limit.clamp(1, PAGE_MAX)], |row| {
        Ok((row.get::<_, i64>("id")?, event::event(row)?))
    })?;
    let last = found.last().map_or(after, |(id, _)| *id);
    Ok(page(found, last))
}

fn page(found: Vec<(i64, leasehold_store::change::Event)>, last: i64) -> ChangePage {
    ChangePage {
        events: found.into_iter().map(|(_, event)| event).collect(),
        cursor: ChangeCursor(last.to_string()),
    }
}

fn place(cursor: &ChangeCursor) -> Result<i64, ErrorKind> {
    let malformed = || ErrorKind::Value(format!("`{}` is no cursor of this stream", cursor.0));
    match cursor.0.parse::<i64>() {
        // Only the text that was handed out: neither a sign nor leading zeros.
        Ok(place) if place >= 0 && place.to_string() == cursor.0 => Ok(place),
        _ => Err(malformed()),
    }
}
