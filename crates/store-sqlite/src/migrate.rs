//! Applies the numbered migrations, each once, and rejects a file with changed or unknown migrations.

use crate::SqliteStore;
use crate::error::Fault;
use crate::session::Session;
use async_trait::async_trait;
use leasehold_store::sql;
use leasehold_store::{
    AppliedMigration, ErrorKind, Migration, MigrationState, MigrationStatus, Result, SchemaStore,
    Script, compare_migrations, schema_refusal,
};

/// The version of this program, which the record of a migration names.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CREATE: &str = sql!("migration/create");
const OPEN_EPOCH: &str = sql!("epoch/open");
const EXISTS: &str = sql!("migration/exists");
const LIST: &str = sql!("migration/list");
const RECORD: &str = sql!("migration/record");
const RECORD_NOW: &str = sql!("migration/record_now");

/// All migrations of this version of Leasehold, in order.
pub const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

#[async_trait]
impl SchemaStore for SqliteStore {
    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        self.write("schema_migrate", migrate).await
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        self.read("schema_status", status).await
    }
}

/// Returns the SQL script that migrates a file with this status, for `sqlite3` or for review; empty if the schema is up to
/// date. An empty status gives the script for an empty file.
pub fn migration_script(status: &[MigrationStatus]) -> String {
    let script = Script {
        before: &[CREATE],
        record: RECORD_NOW,
        version: VERSION,
        mark: '?',
    };
    script.text(MIGRATIONS, status)
}

/// Applies the pending migrations and returns them. Begins an epoch of the file.
fn migrate(session: &Session<'_>) -> Result<Vec<MigrationStatus>, Fault> {
    session.run(CREATE, [])?;
    let before = status(session)?;
    if let Some(reason) = schema_refusal(&before) {
        return Err(ErrorKind::Schema(reason).into());
    }
    let is_pending = |migration: &&Migration| {
        let mut of = before.iter().filter(|one| one.number == migration.number);
        of.any(|one| one.state == MigrationState::Pending)
    };
    let mut applied = Vec::new();
    for migration in MIGRATIONS.iter().filter(is_pending) {
        session.run_batch(migration.sql)?;
        let row = (
            migration.number,
            migration.name,
            migration.checksum(),
            migration.compatible_from,
            VERSION,
            session.now,
        );
        session.run(RECORD, row)?;
        applied.push(migration.status(MigrationState::Applied, Some(VERSION)));
    }
    // Every process that may write migrates first.
    session.run(OPEN_EPOCH, [session.now])?;
    Ok(applied)
}

/// Returns every migration that this version or the file knows, by number.
pub(crate) fn status(session: &Session<'_>) -> Result<Vec<MigrationStatus>, Fault> {
    let mut found = Vec::new();
    if session.one(EXISTS, [], |row| Ok(row.get::<_, bool>(0)?))? {
        found = session.all(LIST, [], |row| {
            Ok(AppliedMigration {
                number: row.get("number")?,
                name: row.get("name")?,
                checksum: row.get("checksum")?,
                compatible_from: row.get("compatible_from")?,
                applied_by: row.get("applied_by")?,
            })
        })?;
    }
    Ok(compare_migrations(MIGRATIONS, &found))
}
