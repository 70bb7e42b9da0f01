//! Instances in PostgreSQL: what the processes that serve this store last said of themselves.

use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::instance::{Instance, InstanceBeat, InstanceStore};
use std::time::Duration;

/// The longest that is remembered, a thousand years: what is longer would reach before the times that PostgreSQL knows.
const REMEMBERED_AT_MOST: Duration = Duration::from_secs(1_000 * 365 * 86_400);

#[async_trait]
impl InstanceStore for PostgresStore {
    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()> {
        let forget_after = forget_after.min(REMEMBERED_AT_MOST);
        self.execute(
            "instance_beat",
            sql!("instance/beat"),
            &[
                &self.given_now(),
                &beat.id,
                &beat.version,
                &beat.dispatches,
                &beat.listens,
                &row::micros(forget_after),
            ],
        )
        .await
        .map(drop)
    }

    async fn instance_leave(&self, id: &str) -> Result<()> {
        self.execute("instance_leave", sql!("instance/leave"), &[&id])
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
