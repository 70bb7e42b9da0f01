//! What SQLite says of itself and of its file. Judges nothing.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::Columns;
use crate::session::Session;
use leasehold_store::Result;
use leasehold_store::diagnosis::{Diagnosis, SqliteFacts};
use rusqlite::Row;
use std::path::Path;

const JOURNAL_MODE: &str = include_str!("../sql/diagnosis/journal_mode.sql");
const SYNCHRONOUS: &str = include_str!("../sql/diagnosis/synchronous.sql");
const SIZE: &str = include_str!("../sql/diagnosis/size.sql");
const CHECK: &str = include_str!("../sql/diagnosis/check.sql");
/// Checking a file reads all of it: a larger one takes longer than whoever asks would wait.
const CHECKED_MAX_BYTES: u64 = 256 * 1024 * 1024;

pub(crate) async fn diagnose(store: &SqliteStore) -> Result<Diagnosis> {
    if store.readers.is_none() {
        return Ok(Diagnosis::Memory);
    }
    // These two are the writer's own.
    let (journal_mode, synchronous) = store.write("diagnose", settings).await?;
    let mut facts = store.read("diagnose", file).await?;
    facts.journal_mode = journal_mode;
    facts.synchronous = synchronous;
    Ok(Diagnosis::Sqlite(facts))
}

fn settings(session: &Session<'_>) -> std::result::Result<(String, u32), Fault> {
    let mode = session.one(JOURNAL_MODE, [], |row| Ok(row.get(0)?))?;
    let synchronous = session.one(SYNCHRONOUS, [], |row| Ok(row.get(0)?))?;
    Ok((mode, synchronous))
}

fn file(session: &Session<'_>) -> std::result::Result<SqliteFacts, Fault> {
    let mut facts = session.one(SIZE, [], size)?;
    facts.unchecked = facts.bytes > CHECKED_MAX_BYTES;
    if !facts.unchecked {
        let said: String = session.one(CHECK, [], |row| Ok(row.get(0)?))?;
        facts.damage = (said != "ok").then_some(said);
    }
    Ok(facts)
}

fn size(row: &Row<'_>) -> std::result::Result<SqliteFacts, Fault> {
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
