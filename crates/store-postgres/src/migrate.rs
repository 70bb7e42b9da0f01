//! Applies the numbered migrations and the SQL functions under a lock. Rejects a schema that another build or a newer version created.

use crate::error::{postgres, schema_record, unreadable};
use crate::function::{self, FUNCTIONS, Functions};
use crate::pool;
use crate::store::PostgresStore;
use async_trait::async_trait;
use leasehold_store::sql;
use leasehold_store::{
    Error, ErrorKind, Migration, MigrationState, MigrationStatus, Result, SchemaStore, Script,
    StepKind,
};
use tokio_postgres::GenericClient;

/// Every migration, in order.
pub const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

const CONTEXT: &str = "migrating";
const LOCK: &str = sql!("migration/lock");
const PREPARE: &str = sql!("migration/prepare");
const PREPARE_FUNCTION: &str = sql!("migration/prepare_function");
const SEARCH_PATH: &str = sql!("migration/search_path");
const RECORD: &str = sql!("migration/record");

const SCRIPT: Script<'static> = Script {
    before: &[LOCK, PREPARE, PREPARE_FUNCTION, SEARCH_PATH],
    record: RECORD,
    mark: '$',
};

#[async_trait]
impl SchemaStore for PostgresStore {
    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        up_with(self, FUNCTIONS).await
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        let client = pool::take(&self.pool, CONTEXT).await?;
        let tables = client
            .query_one(sql!("migration/exists"), &[])
            .await
            .map_err(postgres(CONTEXT))?;
        let applied = match tables.get("migrations") {
            true => applied(&***client).await?,
            false => Vec::new(),
        };
        let applied_functions = match tables.get("functions") {
            true => function::applied(&***client, FUNCTIONS, CONTEXT).await?,
            false => Vec::new(),
        };
        let mut status = compare(&applied);
        status.extend(FUNCTIONS.compare(&applied_functions));
        Ok(status)
    }
}

/// Returns the SQL that migrates a database with this status, for review or for `psql`; empty if everything is applied. An empty status
/// stands for an empty database.
pub fn migration_script(status: &[MigrationStatus]) -> String {
    let migrations = SCRIPT.steps(MIGRATIONS, status);
    SCRIPT.transaction(&FUNCTIONS.steps(&SCRIPT, status, migrations))
}

/// Returns a checksum of this program's migrations and functions.
pub fn schema_checksum() -> i64 {
    let migrations = MIGRATIONS.iter().map(Migration::checksum);
    let functions = function::functions().map(|function| function.checksum());
    migrations
        .chain(functions)
        .fold(0, |hash, one| hash.rotate_left(7) ^ one)
}

struct Applied {
    number: i32,
    name: String,
    checksum: i64,
}

/// Applies all pending migrations and these functions.
pub(crate) async fn up_with(
    store: &PostgresStore,
    functions: Functions<'_>,
) -> Result<Vec<MigrationStatus>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = client.transaction().await.map_err(postgres(CONTEXT))?;
    for statement in SCRIPT.before {
        run(&*transaction, statement).await?;
    }
    let applied = applied(&*transaction).await?;
    let applied_functions = function::applied(&*transaction, functions, CONTEXT).await?;
    let mut status = compare(&applied);
    status.extend(functions.compare(&applied_functions));
    let mut done = Vec::new();
    for status in status {
        match status.state {
            MigrationState::Applied | MigrationState::Newer => {}
            MigrationState::Pending => done.push(status),
            MigrationState::Changed | MigrationState::Unknown => return Err(schema_error(&status)),
        }
    }
    run(&*transaction, &function::check_bodies(&SCRIPT, "off")).await?;
    function::apply(&*transaction, &SCRIPT, functions.before_migrations, &done).await?;
    run(&*transaction, &function::check_bodies(&SCRIPT, "on")).await?;
    for status in &done {
        apply(&*transaction, status).await?;
    }
    function::apply(&*transaction, &SCRIPT, functions.after_migrations, &done).await?;
    transaction.commit().await.map_err(postgres(CONTEXT))?;
    for status in &mut done {
        status.state = MigrationState::Applied;
    }
    Ok(done)
}

async fn run(client: &impl GenericClient, sql: &str) -> Result<()> {
    client.batch_execute(sql).await.map_err(postgres(CONTEXT))
}

async fn apply(client: &impl GenericClient, status: &MigrationStatus) -> Result<()> {
    let mut known = MIGRATIONS.iter();
    let migration = match status.kind {
        StepKind::Migration => known.find(|m| m.number == status.number),
        StepKind::Function => None,
    };
    let Some(migration) = migration else {
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
    Ok(())
}

async fn applied(client: &impl GenericClient) -> Result<Vec<Applied>> {
    let rows = client
        .query(sql!("migration/list"), &[])
        .await
        .map_err(schema_record(CONTEXT))?;
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
            kind: StepKind::Migration,
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
            kind: StepKind::Migration,
            number: a.number.unsigned_abs(),
            name: a.name.clone(),
            state: MigrationState::Unknown,
        });
    known.chain(unknown).collect()
}

fn schema_error(status: &MigrationStatus) -> Error {
    let text = if status.state == MigrationState::Unknown {
        format!(
            "the database was migrated by a newer Leasehold ({status} is unknown to this version); use that version or a newer one"
        )
    } else {
        format!(
            "{status} was applied with a different text (checksum mismatch); the database was migrated by another build"
        )
    };
    Error::new(CONTEXT, ErrorKind::Schema(text))
}
