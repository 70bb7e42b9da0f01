//! Applies the numbered migrations, each once, and rejects a file with changed or unknown migrations.

use crate::SqliteStore;
use crate::error::Fault;
use crate::session::Session;
use async_trait::async_trait;
use leasehold_store::sql;
use leasehold_store::{
    ErrorKind, Migration, MigrationState, MigrationStatus, Result, SchemaStore, Script, StepKind,
};

const CREATE: &str = sql!("migration/create");
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
        mark: '?',
    };
    script.text(MIGRATIONS, status)
}

/// Applies the pending migrations and returns them.
fn migrate(session: &Session<'_>) -> Result<Vec<MigrationStatus>, Fault> {
    session.run(CREATE, [])?;
    let before = status(session)?;
    refuse_incompatible(&before)?;
    let mut applied = Vec::new();
    for migration in pending(&before) {
        session.run_batch(migration.sql)?;
        let row = (
            migration.number,
            migration.name,
            migration.checksum(),
            session.now,
        );
        session.run(RECORD, row)?;
        applied.push(status_of(migration, MigrationState::Applied));
    }
    Ok(applied)
}

/// Returns every migration that this version or the file knows, by number.
pub(crate) fn status(session: &Session<'_>) -> Result<Vec<MigrationStatus>, Fault> {
    let mut found = Vec::new();
    if session.one(EXISTS, [], |row| Ok(row.get::<_, bool>(0)?))? {
        found = session.all(LIST, [], |row| {
            Ok((
                row.get::<_, u32>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, i64>(2)?,
            ))
        })?;
    }
    let mut all: Vec<MigrationStatus> = MIGRATIONS
        .iter()
        .map(|known| {
            let state = match found.iter().find(|(number, ..)| *number == known.number) {
                None => MigrationState::Pending,
                Some((_, _, sum)) if *sum == known.checksum() => MigrationState::Applied,
                Some(_) => MigrationState::Changed,
            };
            status_of(known, state)
        })
        .collect();
    let unknown = found
        .into_iter()
        .filter(|(number, ..)| MIGRATIONS.iter().all(|known| known.number != *number));
    all.extend(unknown.map(|(number, name, _)| MigrationStatus {
        kind: StepKind::Migration,
        number,
        name,
        state: MigrationState::Unknown,
    }));
    all.sort_by_key(|status| status.number);
    Ok(all)
}

fn status_of(migration: &Migration, state: MigrationState) -> MigrationStatus {
    MigrationStatus {
        kind: StepKind::Migration,
        number: migration.number,
        name: migration.name.to_owned(),
        state,
    }
}

fn pending(before: &[MigrationStatus]) -> impl Iterator<Item = &'static Migration> {
    MIGRATIONS.iter().filter(|migration| {
        before.iter().any(|status| {
            status.number == migration.number && status.state == MigrationState::Pending
        })
    })
}

fn refuse_incompatible(before: &[MigrationStatus]) -> Result<(), Fault> {
    for status in before {
        let name = &status.name;
        let text = match status.state {
            MigrationState::Applied | MigrationState::Pending | MigrationState::Newer => continue,
            MigrationState::Changed => format!(
                "migration {name} was applied to this file with a different text than in this version: \
                 run the version that applied it, or restore a backup made before it"
            ),
            MigrationState::Unknown => format!(
                "migration {name} was applied to this file by a newer version and is unknown here: \
                 run that version or a newer one, or restore a backup made before the upgrade"
            ),
        };
        return Err(ErrorKind::Schema(text).into());
    }
    Ok(())
}
