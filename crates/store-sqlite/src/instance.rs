//! Instances: what the processes that serve this store last said of themselves.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, length};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::instance::{Instance, InstanceBeat, InstanceStore};
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const BEAT: &str = sql!("instance/beat");
const FORGET: &str = sql!("instance/forget");
const LEAVE: &str = sql!("instance/leave");
const LIST: &str = sql!("instance/list");

#[async_trait]
impl InstanceStore for SqliteStore {
    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()> {
        let beat = beat.clone();
        self.write("instance_beat", move |s| {
            let row = params![
                Text(&beat.id),
                Text(&beat.version),
                beat.dispatches,
                beat.listens.as_deref().map(Text),
                s.now
            ];
            s.run(BEAT, row)?;
            let forgotten = s.now.saturating_sub(length(forget_after));
            s.run(FORGET, params![Text(&beat.id), forgotten])?;
            Ok(())
        })
        .await
    }

    async fn instance_leave(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write("instance_leave", move |s| {
            s.run(LEAVE, [Text(&id)]).map(drop)
        })
        .await
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        self.read("instance_list", list).await
    }
}

fn list(session: &Session<'_>) -> Result<Vec<Instance>, Fault> {
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
