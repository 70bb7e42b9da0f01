//! Opens connections with the settings every one of them needs. Knows no table.

use crate::error::Fault;
use crate::options::SqliteOptions;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// More than there are statements, so that each is compiled once a connection.
const STATEMENTS: usize = 256;
/// A log that a burst made large is cut back to this many bytes when it begins anew.
const LOG_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// The one connection that writes.
pub(crate) fn open_writer(file: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What was answered survives a power loss: every commit is fsynced.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    settle(&connection, options.cache_kib)?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn open_reader(file: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(options.busy_timeout)?;
    settle(&connection, options.cache_kib / 4)?;
    Ok(connection)
}

/// A database that lives in memory, with the one connection that sees it.
pub(crate) fn open_memory(options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = Connection::open_in_memory()?;
    settle(&connection, options.cache_kib)?;
    Ok(connection)
}

fn settle(connection: &Connection, cache_kib: u32) -> Result<(), Fault> {
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A negative number counts KiB, a positive one pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_logged_and_synced_at_every_commit_and_readers_only_read() {
        let folder = leasehold_testkit::temp_dir();
        let file = folder.path().join("leasehold.db");
        let options = SqliteOptions::default();
        let writer = open_writer(&file, &options).unwrap();
        let mode: String = writer
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "wal");
        for (name, value) in [("synchronous", 2), ("foreign_keys", 1)] {
            let found: i64 = writer
                .pragma_query_value(None, name, |row| row.get(0))
                .unwrap();
            assert_eq!(found, value, "{name}");
        }
        let reader = open_reader(&file, &options).unwrap();
        assert!(reader.pragma_update(None, "user_version", 7).is_err());
    }
}
