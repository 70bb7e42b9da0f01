//! Server instances in PostgreSQL, as of their last heartbeat.

use crate::migrate::MIGRATIONS;
use crate::param::Params;
use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::instance::{HeartbeatRecorded, Instance, InstanceHeartbeat, InstanceStore};
use leasehold_store::{Result, last_number};
use std::time::Duration;

/// Upper bound of the retention, 1,000 years: more would exceed the range of PostgreSQL's timestamps.
const MAX_RETENTION: Duration = Duration::from_secs(1_000 * 365 * 86_400);

#[async_trait]
impl InstanceStore for PostgresStore {
    async fn instance_heartbeat(
        &self,
        beat: &InstanceHeartbeat,
        forget_after: Duration,
    ) -> Result<HeartbeatRecorded> {
        let forget_after = forget_after.min(MAX_RETENTION);
        let params: &Params<'_> = &[
            &self.given_now(),
            &beat.id,
            &beat.version,
            &beat.dispatches,
            &beat.listens,
            &row::micros(forget_after),
        ];
        let client = self.heartbeat_connection("instance_heartbeat").await?;
        let statement = sql!("instance/heartbeat");
        let rows = client.session().many(statement, params).await?;
        // None if the list of migrations was emptied by hand.
        let needed = rows.first().and_then(|row| row.get("compatible_from"));
        let needed: i32 = needed.unwrap_or_default();
        if let Some(row) = rows.first() {
            let end = row.get("snapshot_end");
            self.epochs.saw_snapshot(client.epoch, end);
        }
        let last = last_number(MIGRATIONS);
        Ok(HeartbeatRecorded::by(last, needed.unsigned_abs()))
    }

    async fn instance_deregister(&self, id: &str) -> Result<()> {
        self.execute("instance_deregister", sql!("instance/deregister"), &[&id])
            .await
            .map(drop)
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        let rows = self
            .many("instance_list", sql!("instance/list"), &[])
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Instance {
                    id: row.get("id"),
                    version: row.get("version"),
                    dispatches: row.get("dispatches"),
                    listens: row.get("listens"),
                    started_at: row::time(row, "started_at")?,
                    seen_at: row::time(row, "seen_at")?,
                })
            })
            .collect()
    }
}
