//! Applies the numbered migrations and the SQL functions under a lock. Rejects a schema that another build or a newer version created.

use crate::error::{schema_record, shared_sessions, unreadable};
use crate::function::{self, FUNCTIONS, Functions};
use crate::param::Params;
use crate::pool;
use crate::schema::Schema;
use crate::session::Session;
use crate::store::PostgresStore;
use crate::transaction::OpenTransaction;
use async_trait::async_trait;
use leasehold_store::sql;
use leasehold_store::{
    AppliedMigration, Error, ErrorKind, Migration, MigrationState, MigrationStatus, Result,
    SchemaStore, Script, StepKind, compare_migrations, schema_refusal,
};
use tokio_postgres::Row;

/// Every migration, in order.
pub const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// The version of this program, which the record of a migration names.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CONTEXT: &str = "migrating";
/// How often two connections are compared.
const SESSION_CHECKS: usize = 3;
const LOCK: &str = sql!("migration/lock");
const PREPARE_SCHEMA: &str = sql!("migration/prepare_schema");
const PREPARE: &str = sql!("migration/prepare");
const PREPARE_FUNCTION: &str = sql!("migration/prepare_function");
const SEARCH_PATH: &str = sql!("migration/search_path");
const RECORD: &str = sql!("migration/record");

const SCRIPT: Script<'static> = Script {
    before: &[LOCK, PREPARE_SCHEMA, PREPARE, PREPARE_FUNCTION, SEARCH_PATH],
    record: RECORD,
    version: VERSION,
    mark: '$',
};

#[async_trait]
impl SchemaStore for PostgresStore {
    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        refuse_shared_sessions(self).await?;
        up_with(self, FUNCTIONS).await
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        refuse_shared_sessions(self).await?;
        let client = pool::take(&self.pool, CONTEXT).await?;
        let session = client.session();
        let tables = session.one(sql!("migration/exists"), &[]).await;
        let tables = tables.map_err(schema_record)?;
        let applied = match tables.get("migrations") {
            true => applied(session).await?,
            false => Vec::new(),
        };
        let applied_functions = match tables.get("functions") {
            true => function::applied(session, FUNCTIONS).await?,
            false => Vec::new(),
        };
        let mut status = compare_migrations(MIGRATIONS, &applied);
        status.extend(FUNCTIONS.compare(&applied_functions));
        Ok(status)
    }
}

/// Fails if statements of two open connections run in one session, which only a pooler in transaction mode causes, but the options do not name one: such
/// a session may run the prepared statement of another process. Every program reads or migrates the schema first. A busy pooler may hide it.
async fn refuse_shared_sessions(store: &PostgresStore) -> Result<()> {
    if store.pool.is_pooled() {
        return Ok(());
    }
    let first = pool::take(&store.pool, CONTEXT).await?;
    let Some(second) = pool::take_if_free(&store.pool, CONTEXT).await else {
        return Ok(());
    };
    for _ in 0..SESSION_CHECKS {
        if first.session().backend().await? == second.session().backend().await? {
            let seen = "two open connections used one session";
            return Err(Error::new(CONTEXT, shared_sessions(seen)));
        }
    }
    Ok(())
}

/// Returns the SQL that migrates a database with this status, for review or for `psql`; empty if everything is applied. An empty status
/// stands for an empty database. Fails if `schema` is no valid name of a schema.
pub fn migration_script(schema: &str, status: &[MigrationStatus]) -> Result<String> {
    let migrations = SCRIPT.steps(MIGRATIONS, status);
    let script = SCRIPT.transaction(&FUNCTIONS.steps(&SCRIPT, status, migrations));
    Ok(Schema::new(schema)?.script(&script))
}

/// Returns a checksum of this program's migrations and functions.
pub fn schema_checksum() -> i64 {
    let migrations = MIGRATIONS.iter().map(Migration::checksum);
    let functions = function::functions().map(|function| function.checksum());
    migrations
        .chain(functions)
        .fold(0, |hash, one| hash.rotate_left(7) ^ one)
}

/// Applies all pending migrations and these functions.
pub(crate) async fn up_with(
    store: &PostgresStore,
    functions: Functions<'_>,
) -> Result<Vec<MigrationStatus>> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    for statement in SCRIPT.before {
        transaction.script(CONTEXT, statement).await?;
    }
    let applied = applied(transaction.session()).await?;
    let applied_functions = function::applied(transaction.session(), functions).await?;
    let mut status = compare_migrations(MIGRATIONS, &applied);
    status.extend(functions.compare(&applied_functions));
    if let Some(reason) = schema_refusal(&status) {
        return Err(Error::new(CONTEXT, ErrorKind::Schema(reason)));
    }
    status.retain(|one| one.state == MigrationState::Pending);
    let mut done = status;
    let check_bodies = |switch| function::check_bodies(&SCRIPT, switch);
    transaction.script(CONTEXT, &check_bodies("off")).await?;
    function::apply(&transaction, &SCRIPT, functions.before_migrations, &done).await?;
    transaction.script(CONTEXT, &check_bodies("on")).await?;
    for status in &done {
        apply(&transaction, status).await?;
    }
    function::apply(&transaction, &SCRIPT, functions.after_migrations, &done).await?;
    transaction.commit().await?;
    for status in &mut done {
        status.state = MigrationState::Applied;
        status.applied_by = (status.kind == StepKind::Migration).then(|| VERSION.to_owned());
    }
    Ok(done)
}

async fn apply(transaction: &OpenTransaction<'_>, status: &MigrationStatus) -> Result<()> {
    let mut known = MIGRATIONS.iter();
    let migration = match status.kind {
        StepKind::Migration => known.find(|m| m.number == status.number),
        StepKind::Function => None,
    };
    let Some(migration) = migration else {
        return Ok(());
    };
    transaction.script(migration.name, migration.sql).await?;
    let signed = |number| i32::try_from(number).map_err(|error| unreadable(CONTEXT, error));
    let (number, compatible_from) = (
        signed(migration.number)?,
        signed(migration.compatible_from)?,
    );
    let checksum = migration.checksum();
    let params: &Params<'_> = &[
        &number,
        &migration.name,
        &checksum,
        &compatible_from,
        &VERSION,
    ];
    transaction.execute(RECORD, params).await.map(drop)
}

async fn applied(session: Session<'_>) -> Result<Vec<AppliedMigration>> {
    let number = |row: &Row, column| {
        let stored: i32 = row.get(column);
        u32::try_from(stored).map_err(|error| unreadable(CONTEXT, error))
    };
    let rows = session.many(sql!("migration/list"), &[]).await;
    let rows = rows.map_err(schema_record)?;
    rows.iter()
        .map(|row| {
            Ok(AppliedMigration {
                number: number(row, "number")?,
                name: row.get("name"),
                checksum: row.get("checksum"),
                compatible_from: number(row, "compatible_from")?,
                applied_by: row.get("applied_by"),
            })
        })
        .collect()
}
