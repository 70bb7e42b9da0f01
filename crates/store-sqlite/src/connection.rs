//! Opens and configures connections. Knows no table.

use crate::error::Fault;
use crate::options::SqliteOptions;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// More than the number of statements, so that each connection compiles each statement once.
const STATEMENT_CACHE_SIZE: usize = 256;
/// SQLite truncates a larger WAL to this size when it resets it.
const WAL_SIZE_LIMIT_BYTES: i64 = 64 * 1024 * 1024;

/// Opens the connection of the writer.
pub(crate) fn open_writer(file: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Every commit is fsynced, so answered writes survive a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS fsync leaves data in the drive's cache; elsewhere these have no effect.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_SIZE_LIMIT_BYTES)?;
    configure(&connection, options.cache_kib)?;
    Ok(connection)
}

/// Opens a read-only connection.
pub(crate) fn open_reader(file: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(options.busy_timeout)?;
    configure(&connection, options.cache_kib / 4)?;
    Ok(connection)
}

/// Opens an in-memory database, visible to this connection only.
pub(crate) fn open_memory(options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_in_memory()?;
    configure(&connection, options.cache_kib)?;
    Ok(connection)
}

fn configure(connection: &Connection, cache_kib: u32) -> Result<(), Fault> {
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A negative value is in KiB, a positive one in pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    // Without it, SQLite compiles a statement again for each new value that could make a partial index usable.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_uses_wal_with_full_sync_and_readers_are_read_only() {
        let dir = leasehold_testkit::temp_dir();
        let file = dir.path().join("leasehold.db");
        let options = SqliteOptions::default();
        let writer = open_writer(&file, &options).unwrap();
        let mode: String = writer
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
        for (name, value) in [
            ("synchronous", 2),
            ("fullfsync", 1),
            ("checkpoint_fullfsync", 1),
            ("foreign_keys", 1),
        ] {
            let found: i64 = writer
                .pragma_query_value(None, name, |row| row.get(0))
                .unwrap();
            assert_eq!(found, value, "{name}");
        }
        let reader = open_reader(&file, &options).unwrap();
        assert!(reader.pragma_update(None, "user_version", 7).is_err());
    }
}
