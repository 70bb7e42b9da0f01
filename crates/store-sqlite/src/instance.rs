//! Instances: what the processes that serve this store last said of themselves.

use crate::error::Fault;
use crate::row::{Columns, Text, length};
use crate::session::Session;
use leasehold_store::instance::{Instance, InstanceBeat};
use rusqlite::params;
use std::time::Duration;

const BEAT: &str = include_str!("../sql/instance/beat.sql");
const FORGET: &str = include_str!("../sql/instance/forget.sql");
const LEAVE: &str = include_str!("../sql/instance/leave.sql");
const LIST: &str = include_str!("../sql/instance/list.sql");

pub(crate) fn beat(
    session: &Session<'_>,
    beat: &InstanceBeat,
    forget_after: Duration,
) -> Result<(), Fault> {
    let row = params![
        Text(&beat.id),
        Text(&beat.version),
        beat.dispatches,
        beat.listens.as_deref().map(Text),
        session.now
    ];
    session.run(BEAT, row)?;
    let forgotten = session.now.saturating_sub(length(forget_after));
    session.run(FORGET, params![Text(&beat.id), forgotten])?;
    Ok(())
}

pub(crate) fn leave(session: &Session<'_>, id: &str) -> Result<(), Fault> {
    session.run(LEAVE, [Text(id)]).map(drop)
}

pub(crate) fn list(session: &Session<'_>) -> Result<Vec<Instance>, Fault> {
    session.all(LIST, [], |row| {
        Ok(Instance {
            id: row.get("id")?,
            version: row.get("version")?,
            dispatches: row.get("dispatches")?,
            listens: row.get("listens")?,
            started_at: row.time("started_at")?,
            seen_at: row.time("seen_at")?,
        })
    })
}
