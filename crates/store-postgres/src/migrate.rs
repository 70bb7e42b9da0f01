//! Applies the numbered migrations, one process at a time, and refuses a schema that is not this program's.

use crate::error::{postgres, unreadable};
use crate::pool;
use crate::store::PostgresStore;
use leasehold_store::{
    Error, ErrorKind, Migration, MigrationState, MigrationStatus, Result, Script,
};
use tokio_postgres::GenericClient;

/// Every migration, in order.
pub const MIGRATIONS: &[Migration] = leasehold_store::migrations! {
    1 => "0001_workspaces",
    2 => "0002_definitions",
    3 => "0003_requests",
    4 => "0004_locks",
    5 => "0005_folding",
    6 => "0006_transactional_enqueue",
    7 => "0007_cancellation",
    8 => "0008_wakeups",
    9 => "0009_jobs",
    10 => "0010_keys",
    11 => "0011_instances",
    12 => "0012_execution_list",
    13 => "0013_graphs",
};

const CONTEXT: &str = "migrating";
const LOCK: &str = include_str!("../sql/migration/lock.sql");
const PREPARE: &str = include_str!("../sql/migration/prepare.sql");
const RECORD: &str = include_str!("../sql/migration/record.sql");

/// What migrating a database with this status would run, for `psql` or for a look; empty if there is nothing to do. Of a database that nothing
/// is known of the status is empty, and the script is all of it.
pub fn migration_script(status: &[MigrationStatus]) -> String {
    let script = Script {
        before: &[LOCK, PREPARE],
        record: RECORD,
        mark: '$',
    };
    script.text(MIGRATIONS, status)
}

struct Applied {
    number: i32,
    name: String,
    checksum: i64,
}

pub(crate) async fn up(store: &PostgresStore) -> Result<Vec<MigrationStatus>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = client.transaction().await.map_err(postgres(CONTEXT))?;
    transaction
        .batch_execute(LOCK)
        .await
        .map_err(postgres(CONTEXT))?;
    transaction
        .batch_execute(PREPARE)
        .await
        .map_err(postgres(CONTEXT))?;
    let applied = applied(&*transaction).await?;
    let mut done = Vec::new();
    for status in compare(&applied) {
        match status.state {
            MigrationState::Applied => {}
            MigrationState::Pending => done.push(status),
            MigrationState::Changed | MigrationState::Unknown => return Err(refusal(&status)),
        }
    }
    for status in &mut done {
        apply(&*transaction, status).await?;
    }
    transaction.commit().await.map_err(postgres(CONTEXT))?;
    Ok(done)
}

async fn apply(client: &impl GenericClient, status: &mut MigrationStatus) -> Result<()> {
    let Some(migration) = MIGRATIONS.iter().find(|m| m.number == status.number) else {
        return Ok(());
    };
    client
        .batch_execute(migration.sql)
        .await
        .map_err(postgres(migration.name))?;
    let number = i32::try_from(migration.number).map_err(|error| unreadable(CONTEXT, error))?;
    client
        .execute(RECORD, &[&number, &migration.name, &migration.checksum()])
        .await
        .map_err(postgres(CONTEXT))?;
    status.state = MigrationState::Applied;
    Ok(())
}

pub(crate) async fn status(store: &PostgresStore) -> Result<Vec<MigrationStatus>> {
    let client = pool::take(&store.pool, CONTEXT).await?;
    let present: bool = client
        .query_one(include_str!("../sql/migration/exists.sql"), &[])
        .await
        .map_err(postgres(CONTEXT))?
        .get("present");
    let applied = if present {
        applied(&**client).await?
    } else {
        Vec::new()
    };
    Ok(compare(&applied))
}

async fn applied(client: &impl GenericClient) -> Result<Vec<Applied>> {
    let rows = client
        .query(include_str!("../sql/migration/list.sql"), &[])
        .await
        .map_err(postgres(CONTEXT))?;
    Ok(rows
        .iter()
        .map(|row| Applied {
            number: row.get("number"),
            name: row.get("name"),
            checksum: row.get("checksum"),
        })
        .collect())
}

fn compare(applied: &[Applied]) -> Vec<MigrationStatus> {
    let known = MIGRATIONS.iter().map(|migration| {
        let state = match applied
            .iter()
            .find(|a| i64::from(a.number) == i64::from(migration.number))
        {
            None => MigrationState::Pending,
            Some(a) if a.checksum == migration.checksum() => MigrationState::Applied,
            Some(_) => MigrationState::Changed,
        };
        MigrationStatus {
            number: migration.number,
            name: migration.name.to_owned(),
            state,
        }
    });
    let unknown = applied
        .iter()
        .filter(|a| {
            !MIGRATIONS
                .iter()
                .any(|m| i64::from(m.number) == i64::from(a.number))
        })
        .map(|a| MigrationStatus {
            number: a.number.unsigned_abs(),
            name: a.name.clone(),
            state: MigrationState::Unknown,
        });
    known.chain(unknown).collect()
}

fn refusal(status: &MigrationStatus) -> Error {
    let text = if status.state == MigrationState::Unknown {
        format!(
            "the database was migrated by a newer Leasehold (migration {} is unknown here); use that version or newer",
            status.name
        )
    } else {
        format!(
            "migration {} was applied with another text than this program has; this database belongs to another build",
            status.name
        )
    };
    Error::new(CONTEXT, ErrorKind::Schema(text))
}
