//! The installation's secret and its recorded engine in SQLite.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, micros};
use async_trait::async_trait;
use leasehold_core::EngineIdentity;
use leasehold_store::installation::{ENGINE_REPLACEMENT_GRACE, InstallationStore, RecordedEngine};
use leasehold_store::{Result, sql};
use rusqlite::{Row, params};

const SECRET: &str = sql!("installation/secret");
const CREATE_SECRET: &str = sql!("installation/create_secret");
const ENGINE_RECORD: &str = sql!("installation/engine_record");
const ENGINE_RECORDED: &str = sql!("installation/engine_recorded");

#[async_trait]
impl InstallationStore for SqliteStore {
    async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]> {
        let fresh = *fresh;
        self.write("installation_secret", move |s| {
            s.run(CREATE_SECRET, params![fresh])?;
            s.one(SECRET, [], |row| Ok(row.get(0)?))
        })
        .await
    }

    async fn engine_record(&self, engine: &EngineIdentity) -> Result<RecordedEngine> {
        let engine = engine.clone();
        self.write("engine_record", move |s| {
            let row = params![
                s.now,
                Text(&engine.kind),
                Text(&engine.namespace),
                Text(&engine.namespace_id),
                Text(&engine.cluster_id),
                micros(ENGINE_REPLACEMENT_GRACE)
            ];
            s.run(ENGINE_RECORD, row)?;
            s.one(ENGINE_RECORDED, [], engine_recorded)
        })
        .await
    }

    async fn engine_recorded(&self) -> Result<Option<RecordedEngine>> {
        self.read("engine_recorded", |s| {
            s.optional(ENGINE_RECORDED, [], engine_recorded)
        })
        .await
    }
}

fn engine_recorded(row: &Row<'_>) -> Result<RecordedEngine, Fault> {
    Ok(RecordedEngine {
        identity: EngineIdentity {
            kind: row.get("kind")?,
            namespace: row.get("namespace")?,
            namespace_id: row.get("namespace_id")?,
            cluster_id: row.get("cluster_id")?,
        },
        recorded_at: row.time("recorded_at")?,
        certain_from: row.time("certain_from")?,
    })
}
