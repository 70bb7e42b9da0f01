//! Programs of different versions on one database: which functions each applies, keeps and rejects.

use super::{FUNCTIONS, Functions, SqlFunction, applied};
use crate::migrate::up_with;
use crate::pool;
use crate::{PostgresOptions, PostgresStore, migration_script};
use leasehold_store::{MigrationState, MigrationStatus, SchemaStore, StepKind};
use leasehold_testkit::{TestDatabase, TestPostgres};
use tokio_postgres::{Client, NoTls};

/// The key is held until the job has ended.
const NO_WINDOW: Option<&str> = None;

/// Returns an empty database, and a store and a client on it.
async fn fresh() -> (TestDatabase, PostgresStore, Client) {
    let database = TestPostgres::shared().fresh_database(None).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let (client, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    (database, store, client)
}

/// A function with another body, in the next release.
fn next_release(function: &SqlFunction) -> SqlFunction {
    SqlFunction {
        release: function.release + 1,
        ..edited(function)
    }
}

/// A function with another body, in the same release.
fn edited(function: &SqlFunction) -> SqlFunction {
    let text = function.text.replace("AS $$", "AS $$ -- another body");
    SqlFunction {
        text: text.leak(),
        ..*function
    }
}

/// Returns `leasehold_job_enqueue` with one more argument and a new name.
fn job_enqueue_with_note() -> SqlFunction {
    let old = FUNCTIONS.all().find(|f| f.name == "leasehold_job_enqueue");
    let text = old.unwrap().text.replace(
        "    options jsonb DEFAULT NULL",
        "    note text DEFAULT NULL,\n    options jsonb DEFAULT NULL",
    );
    let name = "leasehold_job_enqueue_with_note";
    SqlFunction::from_file(name, text.replace("leasehold_job_enqueue", name).leak())
}

/// A newer program: every function in a higher release, and one with a new name.
fn newer_program() -> Functions<'static> {
    let next = |functions: &[SqlFunction]| functions.iter().map(next_release).collect::<Vec<_>>();
    let mut after = next(FUNCTIONS.after_migrations);
    after.push(job_enqueue_with_note());
    Functions {
        before_migrations: next(FUNCTIONS.before_migrations).leak(),
        after_migrations: after.leak(),
    }
}

/// The release of a function in the newer program.
fn newer_release(name: &str) -> Option<i32> {
    let mut functions = newer_program().all();
    let found = functions.find(|function| function.name == name)?;
    i32::try_from(found.release).ok()
}

/// Name, body, grants and release of every function that exists.
async fn state(client: &Client) -> Vec<(String, String, String, Option<i32>)> {
    let rows = client
        .query(include_str!("../../tests/sql/function_state.sql"), &[])
        .await
        .unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect()
}

async fn grants(client: &Client) -> Vec<(String, String)> {
    let state = state(client).await.into_iter();
    state.map(|(name, _, grants, _)| (name, grants)).collect()
}

async fn is_callable(client: &Client, function: &str) -> bool {
    let sql = include_str!("../../tests/sql/function_callable.sql");
    client.query_one(sql, &[&function]).await.unwrap().get(0)
}

fn functions_in(status: &[MigrationStatus], state: MigrationState) -> usize {
    let functions = status.iter().filter(|s| s.kind == StepKind::Function);
    functions.filter(|s| s.state == state).count()
}

#[tokio::test]
async fn older_program_that_restarts_keeps_functions_of_newer_program() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    let old = state(&client).await;
    let applied_now = up_with(&store, newer_program()).await.unwrap();
    assert_eq!(
        functions_in(&applied_now, MigrationState::Applied),
        old.len() + 1
    );
    let new = state(&client).await;
    assert!(new.iter().all(|(name, body, _, release)| {
        let added = name == "leasehold_job_enqueue_with_note";
        *release == newer_release(name) && (added || body.starts_with(" -- another body"))
    }));

    assert_eq!(store.schema_migrate().await.unwrap(), []);
    assert_eq!(state(&client).await, new);
    let status = store.schema_status().await.unwrap();
    assert_eq!(functions_in(&status, MigrationState::Newer), new.len());
    assert_eq!(migration_script("leasehold", &status).unwrap(), "");
}

#[tokio::test]
async fn late_run_of_an_old_script_does_not_replace_newer_functions() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    let mut status = store.schema_status().await.unwrap();
    let functions = status.iter_mut().filter(|s| s.kind == StepKind::Function);
    functions.for_each(|s| s.state = MigrationState::Pending);
    let script = migration_script("leasehold", &status).unwrap();
    up_with(&store, newer_program()).await.unwrap();
    let new = state(&client).await;
    let error = client.batch_execute(&script).await.unwrap_err();
    let error = error.as_db_error().unwrap().message().to_owned();
    assert_eq!(
        error,
        "function leasehold_refuse has a newer release than 1: a newer program applied it"
    );
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(state(&client).await, new);
}

#[tokio::test]
async fn function_with_new_argument_leaves_callers_of_old_function_working() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    let enqueue = include_str!("../../tests/sql/job_enqueue_key.sql");
    let old = client.prepare(enqueue).await.unwrap();
    let call = async |key: &str| -> i64 {
        let row = client.query_one(&old, &[&key, &NO_WINDOW]).await.unwrap();
        row.get("id")
    };
    let first = call("a").await;
    up_with(&store, newer_program()).await.unwrap();
    assert_eq!(call("a").await, first);
    let second = call("b").await;
    assert_ne!(second, first);
    let with_note = include_str!("../../tests/sql/job_enqueue_with_note.sql");
    let third: i64 = client.query_one(with_note, &[]).await.unwrap().get("id");
    assert_ne!(third, second);

    store.schema_migrate().await.unwrap();
    client.query_one(with_note, &[]).await.unwrap();
}

#[tokio::test]
async fn grants_of_users_survive_higher_release() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    assert!(!is_callable(&client, "leasehold_enqueue").await);
    assert!(!is_callable(&client, "leasehold_job_enqueue").await);
    client
        .batch_execute(include_str!("../../tests/sql/function_grant.sql"))
        .await
        .unwrap();
    let before = grants(&client).await;
    up_with(&store, newer_program()).await.unwrap();
    let mut after = grants(&client).await;
    let added = "leasehold_job_enqueue_with_note";
    after.retain(|(name, _)| name != added);
    assert_eq!(after, before);
    for granted in [
        "leasehold_enqueue",
        "leasehold_job_enqueue",
        "leasehold_fold",
    ] {
        assert!(is_callable(&client, granted).await, "{granted}");
    }
    assert!(
        !is_callable(&client, added).await,
        "a new public function has no grants"
    );
}

#[tokio::test]
async fn same_release_with_another_body_is_rejected() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    let before = state(&client).await;
    let other_build = Functions {
        before_migrations: FUNCTIONS.before_migrations,
        after_migrations: &[edited(&FUNCTIONS.after_migrations[0])],
    };
    let error = up_with(&store, other_build).await.unwrap_err().to_string();
    let says = "release 1 of function leasehold_count_running was applied with a different text";
    assert!(error.contains(says), "{error}");
    assert_eq!(state(&client).await, before);
}

#[tokio::test]
async fn older_functions_are_pending_for_newer_program() {
    let (_database, store, _client) = fresh().await;
    store.schema_migrate().await.unwrap();
    let connection = pool::take(&store.pool, "testing").await.unwrap();
    let found = applied(connection.session(), FUNCTIONS).await.unwrap();
    let status = newer_program().compare(&found);
    assert_eq!(functions_in(&status, MigrationState::Pending), status.len());
    let first = &status[0];
    assert_eq!(first.to_string(), "release 2 of function leasehold_refuse");
}

#[tokio::test]
async fn dropped_function_is_pending_and_created_again_without_grants() {
    let (_database, store, client) = fresh().await;
    store.schema_migrate().await.unwrap();
    client
        .batch_execute(include_str!("../../tests/sql/function_drop.sql"))
        .await
        .unwrap();
    let status = store.schema_status().await.unwrap();
    assert_eq!(functions_in(&status, MigrationState::Pending), 1);
    assert!(
        migration_script("leasehold", &status)
            .unwrap()
            .contains("-- leasehold_enqueue release ")
    );
    let created = store.schema_migrate().await.unwrap();
    assert_eq!(created.len(), 1, "{created:?}");
    assert!(!is_callable(&client, "leasehold_enqueue").await);
}

#[tokio::test]
async fn two_versions_can_migrate_concurrently() {
    let (_database, store, client) = fresh().await;
    let both = [FUNCTIONS, newer_program()];
    let many = (0..6).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { up_with(&store, both[n % 2]).await.unwrap() })
    });
    for one in many.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    let releases = state(&client).await;
    assert_eq!(releases.len(), newer_program().all().count());
    for (name, _, _, release) in releases {
        assert_eq!(release, newer_release(&name), "{name}");
    }
}

#[test]
fn signature_contains_the_argument_types() {
    let signature = |name| {
        let mut all = FUNCTIONS.all();
        all.find(|f| f.name == name).map(SqlFunction::signature)
    };
    let notify = signature("leasehold_notify");
    assert_eq!(notify.as_deref(), Some("leasehold_notify()"));
    let enqueue = signature("leasehold_job_enqueue");
    let types =
        "text, text, json, integer, timestamptz, text, interval, integer, interval, text, jsonb";
    assert_eq!(enqueue, Some(format!("leasehold_job_enqueue({types})")));
}

/// Another role created functions with Leasehold's names before the migration.
#[tokio::test]
async fn overload_of_another_role_is_not_taken_for_an_applied_function() {
    let (_database, store, client) = fresh().await;
    let overload = include_str!("../../tests/sql/function_overload_public.sql");
    client.batch_execute(overload).await.unwrap();
    store.schema_migrate().await.unwrap();
    let callable = async || {
        let sql = include_str!("../../tests/sql/function_callable_both.sql");
        let row = client.query_one(sql, &[]).await.unwrap();
        (row.get::<_, bool>("ours"), row.get::<_, bool>("other"))
    };
    assert_eq!(callable().await, (false, true));
    client
        .batch_execute(include_str!("../../tests/sql/function_drop_own.sql"))
        .await
        .unwrap();
    let status = store.schema_status().await.unwrap();
    assert_eq!(functions_in(&status, MigrationState::Pending), 1);
    let created = store.schema_migrate().await.unwrap();
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(callable().await, (false, true));
}

/// `enable_seqscan = off` makes a plan with a sequential scan look expensive, so PostgreSQL would compile it: 170 ms for each call.
#[test]
fn functions_that_run_in_connections_of_users_are_not_compiled_by_jit() {
    let public: Vec<_> = FUNCTIONS
        .all()
        .filter(|function| function.statement().contains("SECURITY DEFINER"))
        .collect();
    assert!(public.iter().any(|f| f.name == "leasehold_enqueue"));
    for function in public {
        let sets = function.statement().contains("SET jit = off");
        assert!(sets, "{} does not set jit = off", function.name);
    }
}
