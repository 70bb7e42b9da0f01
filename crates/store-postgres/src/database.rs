//! Reads the database's clock and the facts that `doctor` checks. Does not judge them.

use crate::row;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_store::diagnosis::{Diagnosis, PostgresFacts, TableFacts};
use leasehold_store::{Capabilities, DatabaseStore, EpochId, Result};
use std::time::Duration;
use tokio_postgres::Row;

const CONTEXT: &str = "diagnose";

#[async_trait]
impl DatabaseStore for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            shared: true,
            connections: self.pool.max_size(),
            changes_use_connections: true,
        }
    }

    fn epoch(&self) -> Option<EpochId> {
        self.epochs.current()
    }

    async fn now(&self) -> Result<Timestamp> {
        let row = self
            .one("now", sql!("clock/now"), &[&self.given_now()])
            .await?;
        row::time(&row, "now")
    }

    async fn diagnose(&self) -> Result<Diagnosis> {
        let server = self.one(CONTEXT, sql!("diagnosis/server"), &[]).await?;
        let tables = self.many(CONTEXT, sql!("diagnosis/tables"), &[]).await?;
        let held: Option<i64> = server.get("snapshot_us");
        let oldest_snapshot = held.map(|micros| {
            let since = Duration::from_micros(micros.max(0).unsigned_abs());
            (since, server.get("snapshot_of"))
        });
        Ok(Diagnosis::Postgres(PostgresFacts {
            version: server.get("version"),
            version_number: row::count(&server, "version_number")?,
            in_recovery: server.get("in_recovery"),
            now: row::time(&server, "now")?,
            synchronous_commit: server.get("synchronous_commit"),
            fsync: server.get("fsync"),
            full_page_writes: server.get("full_page_writes"),
            autovacuum: server.get("autovacuum"),
            connections: row::count(&server, "connections")?,
            max_connections: row::count(&server, "max_connections")?,
            ours: row::count(&server, "ours")?,
            oldest_snapshot,
            unseen_snapshots: row::count(&server, "unseen_snapshots")?,
            lock_waits: row::count(&server, "lock_waits")?,
            wraparound_age: row::count(&server, "wraparound_age")?,
            advances_event_log: server.get("advances_event_log"),
            tables: tables.iter().map(table).collect::<Result<_>>()?,
        }))
    }
}

fn table(row: &Row) -> Result<TableFacts> {
    Ok(TableFacts {
        name: row.get("name"),
        bytes: row::count(row, "bytes")?,
        rows: row::count(row, "rows")?,
        dead: row::count(row, "dead")?,
        autovacuum: row.get("autovacuum"),
        last_autovacuum: row::time(row, "last_autovacuum")?,
    })
}
