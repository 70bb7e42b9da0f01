//! The database: its clock, and the facts about SQLite and its file that `doctor` judges.

use crate::SqliteStore;
use crate::error::Fault;
use crate::reader::Readers;
use crate::row::{Columns, timestamp};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_store::diagnosis::{Diagnosis, SqliteFacts};
use leasehold_store::sql;
use leasehold_store::{Capabilities, DatabaseStore, EpochId, Result};
use rusqlite::Row;
use std::path::Path;

const JOURNAL_MODE: &str = sql!("diagnosis/journal_mode");
const SYNCHRONOUS: &str = sql!("diagnosis/synchronous");
const SIZE: &str = sql!("diagnosis/size");
const CHECK: &str = sql!("diagnosis/check");
/// `quick_check` reads the whole file; larger files are not checked, because it would take too long.
const QUICK_CHECK_MAX_BYTES: u64 = 256 * 1024 * 1024;

#[async_trait]
impl DatabaseStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "sqlite",
            shared: false,
            connections: self.readers.as_ref().map_or(1, Readers::count),
            changes_use_connections: false,
        }
    }

    /// One process owns the file from its opening on, so the epoch never changes.
    fn epoch(&self) -> Option<EpochId> {
        Some(EpochId(1))
    }

    async fn now(&self) -> Result<Timestamp> {
        self.read("now", |s| timestamp(s.now)).await
    }

    async fn diagnose(&self) -> Result<Diagnosis> {
        if self.readers.is_none() {
            return Ok(Diagnosis::Memory);
        }
        // These two settings are those of the writer's connection.
        let (journal_mode, synchronous) = self.write("diagnose", settings).await?;
        let mut facts = self.read("diagnose", file).await?;
        facts.journal_mode = journal_mode;
        facts.synchronous = synchronous;
        Ok(Diagnosis::Sqlite(facts))
    }
}

fn settings(session: &Session<'_>) -> Result<(String, u32), Fault> {
    let mode = session.one(JOURNAL_MODE, [], |row| Ok(row.get(0)?))?;
    let synchronous = session.one(SYNCHRONOUS, [], |row| Ok(row.get(0)?))?;
    Ok((mode, synchronous))
}

fn file(session: &Session<'_>) -> Result<SqliteFacts, Fault> {
    let mut facts = session.one(SIZE, [], size)?;
    facts.unchecked = facts.bytes > QUICK_CHECK_MAX_BYTES;
    if !facts.unchecked {
        let result: String = session.one(CHECK, [], |row| Ok(row.get(0)?))?;
        facts.damage = (result != "ok").then_some(result);
    }
    Ok(facts)
}

fn size(row: &Row<'_>) -> Result<SqliteFacts, Fault> {
    let file: String = row.get("file")?;
    let log = std::fs::metadata(Path::new(&format!("{file}-wal")));
    Ok(SqliteFacts {
        version: row.get("version")?,
        journal_mode: String::new(),
        synchronous: 0,
        bytes: row.count("bytes")?,
        free_bytes: row.count("free_bytes")?,
        log_bytes: log.map_or(0, |log| log.len()),
        damage: None,
        unchecked: false,
    })
}
