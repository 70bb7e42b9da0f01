//! Instances: the heartbeats of the processes that use this store.

use crate::SqliteStore;
use crate::error::Fault;
use crate::migrate::MIGRATIONS;
use crate::row::{Columns, Text, micros};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_store::instance::{HeartbeatRecorded, Instance, InstanceHeartbeat, InstanceStore};
use leasehold_store::sql;
use leasehold_store::{Result, last_number};
use rusqlite::params;
use std::time::Duration;

const HEARTBEAT: &str = sql!("instance/heartbeat");
const COMPATIBLE_FROM: &str = sql!("migration/compatible_from");
const DELETE_STALE: &str = sql!("instance/delete_stale");
const DEREGISTER: &str = sql!("instance/deregister");
const LIST: &str = sql!("instance/list");

#[async_trait]
impl InstanceStore for SqliteStore {
    async fn instance_heartbeat(
        &self,
        heartbeat: &InstanceHeartbeat,
        forget_after: Duration,
    ) -> Result<HeartbeatRecorded> {
        let heartbeat = heartbeat.clone();
        self.write("instance_heartbeat", move |s| {
            let row = params![
                Text(&heartbeat.id),
                Text(&heartbeat.version),
                heartbeat.dispatches,
                heartbeat.listens.as_deref().map(Text),
                s.now
            ];
            s.run(HEARTBEAT, row)?;
            let oldest = s.now.saturating_sub(micros(forget_after));
            s.run(DELETE_STALE, params![Text(&heartbeat.id), oldest])?;
            let needed = s.one(COMPATIBLE_FROM, [], |row| Ok(row.get::<_, Option<u32>>(0)?))?;
            let last = last_number(MIGRATIONS);
            Ok(HeartbeatRecorded::by(last, needed.unwrap_or_default()))
        })
        .await
    }

    async fn instance_deregister(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write("instance_deregister", move |s| {
            s.run(DEREGISTER, [Text(&id)]).map(drop)
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
