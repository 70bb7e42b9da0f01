//! `schema.sql` must match what the migrations and functions create; `cargo xtask schema` rewrites it.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store::instance::{HeartbeatRecorded, InstanceHeartbeat, InstanceStore};
use leasehold_store::request::{Claim, ClaimOutcome, RequestStore};
use leasehold_store::{MigrationState, SchemaStore};
use leasehold_store_postgres::{
    MIGRATIONS, PostgresOptions, PostgresStore, functions, migration_script,
};
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::TestPostgres;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio_postgres::NoTls;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");

/// Describes the schema of a database for a comparison, with or without privileges: in `pg_dump`'s words if the server's version has it. An older
/// `pg_dump` refuses a newer server, and the npm packages have none; then the catalogs describe it.
async fn description(url: &str, privileges: bool) -> String {
    match pg_dump() {
        Some(program) => dump(&program, url, privileges),
        None => objects(url, privileges).await.join("\n"),
    }
}

/// The `pg_dump` of the server's version.
fn pg_dump() -> Option<PathBuf> {
    let programs = leasehold_testkit::postgres_programs().expect("run `cargo xtask setup`");
    let program = programs.join("pg_dump");
    program.is_file().then_some(program)
}

fn dump(program: &Path, url: &str, privileges: bool) -> String {
    let output = Command::new(program)
        .args(["--schema-only", "--no-owner", url])
        .args((!privileges).then_some("--no-privileges"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let noise = ["--", "SET ", "\\restrict", "\\unrestrict"];
    let lines = text.lines().filter(|line| {
        let sets_path = line.contains("pg_catalog.set_config('search_path'");
        !sets_path && !noise.iter().any(|n| line.starts_with(n))
    });
    let mut kept: Vec<&str> = lines.collect();
    kept.dedup_by(|a, b| a.is_empty() && b.is_empty());
    format!("{}\n", kept.join("\n").trim())
}

/// One sorted line per object.
async fn objects(url: &str, privileges: bool) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = include_str!("sql/schema_objects.sql");
    let rows = client.query(sql, &[&privileges]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Runs a script as users do.
fn psql(url: &str, script: &str) {
    let program = leasehold_testkit::postgres_client("psql").expect("run `cargo xtask setup`");
    let mut psql = Command::new(program)
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = psql.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let output = psql.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn schema_sql_matches_the_database() {
    let database = support::database().await;
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    let Some(program) = pg_dump() else {
        let loaded = TestPostgres::shared().fresh_database(None).await;
        let script = format!("{}{kept}", include_str!("sql/schema_load.sql"));
        psql(loaded.url(), &script);
        let loaded = objects(loaded.url(), false).await;
        let migrated = objects(database.url(), false).await;
        let missing = |from: &[String], all: &[String]| -> Vec<String> {
            let missing = from.iter().filter(|line| !all.contains(line));
            missing.cloned().collect()
        };
        assert_eq!(missing(&migrated, &loaded), [""; 0], "not in schema.sql");
        assert_eq!(missing(&loaded, &migrated), [""; 0], "only in schema.sql");
        return;
    };
    let dumped = dump(&program, database.url(), false);
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(FILE, &dumped).unwrap();
        return;
    }
    assert_eq!(
        kept, dumped,
        "schema.sql is out of date: run `cargo xtask schema`"
    );
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = support::database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let before = description(database.url(), true).await;
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    assert_eq!(description(database.url(), true).await, before);
    let status = store.schema_status().await.unwrap();
    assert_eq!(status.len(), MIGRATIONS.len() + functions().count());
    assert!(status.iter().all(|m| m.state == MigrationState::Applied));
}

#[tokio::test]
async fn empty_database_is_all_pending_and_concurrent_migrations_are_safe() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|m| m.state == MigrationState::Pending));
    let many = (0..5).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.schema_migrate().await.unwrap().len() })
    });
    let mut applied = Vec::new();
    for one in many {
        applied.push(one.await.unwrap());
    }
    applied.sort_unstable();
    let steps = MIGRATIONS.len() + functions().count();
    assert_eq!(applied, [0, 0, 0, 0, steps]);
}

#[tokio::test]
async fn migration_script_has_the_same_result_as_migrating() {
    let database = TestPostgres::shared().fresh_database(None).await;
    psql(database.url(), &migration_script("leasehold", &[]).unwrap());
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|m| m.state == MigrationState::Applied));
    assert_eq!(migration_script("leasehold", &status).unwrap(), "");
    let migrated = support::database().await;
    let by_hand = description(database.url(), true).await;
    assert_eq!(by_hand, description(migrated.url(), true).await);
    let mut behind = status;
    let functions = behind.split_off(MIGRATIONS.len());
    behind[4].state = MigrationState::Pending;
    behind.truncate(5);
    behind.extend(functions);
    let script = migration_script("leasehold", &behind).unwrap();
    assert!(!script.contains("0004_locks"), "{script}");
    assert!(script.contains("-- 0005_jobs") && script.contains("-- 0006_graphs"));
    assert!(!script.contains("leasehold_fold"), "{script}");
    let fold = behind.iter_mut().find(|one| one.name == "leasehold_fold");
    fold.unwrap().state = MigrationState::Pending;
    let script = migration_script("leasehold", &behind).unwrap();
    assert!(script.contains("-- leasehold_fold release 1"), "{script}");
    assert!(!script.contains("leasehold_prune"), "{script}");
}

#[tokio::test]
async fn newer_schema_is_used_until_it_needs_a_newer_program() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let last = i32::try_from(MIGRATIONS.last().unwrap().number).unwrap();
    let heartbeat = InstanceHeartbeat {
        id: "old".to_owned(),
        version: "0.2.0".to_owned(),
        dispatches: true,
        listens: None,
    };
    let newer = include_str!("sql/migration_newer.sql");
    for (needs, state, outcome) in [
        (last, MigrationState::Newer, HeartbeatRecorded::Compatible),
        (
            last + 1,
            MigrationState::Incompatible,
            HeartbeatRecorded::SchemaTooNew,
        ),
    ] {
        client.execute(newer, &[&needs]).await.unwrap();
        let status = store.schema_status().await.unwrap();
        assert_eq!(status[MIGRATIONS.len()].state, state);
        let recorded = store.instance_heartbeat(&heartbeat, Duration::from_secs(60));
        assert_eq!(recorded.await.unwrap(), outcome);
        let migrated = store.schema_migrate().await;
        if state == MigrationState::Newer {
            assert_eq!(migrated.unwrap(), []);
            continue;
        }
        let error = migrated.unwrap_err().to_string();
        let expected = format!(
            "migration 0999_future was applied by Leasehold 9.9.9 and needs a program with migration {needs} or a later one, this program's last one is {last}"
        );
        assert!(error.contains(&expected), "{error}");
    }
}

#[tokio::test]
async fn changed_schema_is_rejected_with_advice() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    client
        .batch_execute(include_str!("sql/migration_changed.sql"))
        .await
        .unwrap();
    let error = store.schema_migrate().await.unwrap_err().to_string();
    assert!(
        error.contains("0001_workspaces was applied with a different text"),
        "{error}"
    );
}

/// A role that uses the schema and does not own it.
#[tokio::test]
async fn role_without_privilege_gets_error_with_the_missing_grant() {
    let database = support::database().await;
    let owner = support::raw::connect(&database).await;
    let url = database.url();
    let mark = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{mark}options=-c%20role%3Dpg_read_all_stats");
    // Like `leasehold migrate status`.
    let options = PostgresOptions {
        opens_epochs: false,
        ..PostgresOptions::new(url)
    };
    let store = PostgresStore::new(&options).unwrap();
    let grant = "GRANT SELECT ON ….leasehold_migration, ….leasehold_function TO";
    for sql in [
        include_str!("sql/schema_grant.sql"),
        include_str!("sql/migration_grant.sql"),
        include_str!("sql/function_grant_record.sql"),
    ] {
        let error = store.schema_status().await.unwrap_err().to_string();
        assert!(error.contains(grant), "{error}");
        owner.batch_execute(sql).await.unwrap();
    }
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|s| s.state == MigrationState::Applied));
}

/// A store whose objects are in this schema.
fn in_schema(url: &str, schema: &str) -> PostgresStore {
    let options = PostgresOptions {
        schema: schema.to_owned(),
        ..PostgresOptions::new(url)
    };
    PostgresStore::new(&options).unwrap()
}

#[tokio::test]
async fn installation_in_another_schema_has_everything_there_and_works() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let store = in_schema(database.url(), "tenant_2");
    store.schema_migrate().await.unwrap();
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|m| m.state == MigrationState::Applied));
    let workspace = TestWorkspace::new(&store, 1).await;
    let ids = workspace.enqueue(&store, vec![workspace.request()]).await;
    let claim = Claim {
        owner: "a dispatcher".to_owned(),
        batch: 1,
        kept_max: None,
        lease: Duration::from_secs(60),
        lock: None,
    };
    let ClaimOutcome::Claimed(claimed) = store.request_claim(&claim).await.unwrap() else {
        panic!("no lock was asked for");
    };
    assert_eq!(claimed.requests[0].id, ids[0]);
    let by_hand = migration_script("tenant_2", &[]).unwrap();
    let other = TestPostgres::shared().fresh_database(None).await;
    psql(other.url(), &by_hand);
    let default = support::database().await;
    let expected = description(default.url(), false).await;
    for renamed in [database.url(), other.url()] {
        psql(renamed, include_str!("sql/schema_rename.sql"));
        let found = description(renamed, false).await;
        assert_eq!(found.replace("tenant_2", "leasehold"), expected);
    }
}

#[tokio::test]
async fn schema_in_which_every_role_may_create_is_rejected() {
    let database = TestPostgres::shared().fresh_database(None).await;
    psql(database.url(), include_str!("sql/schema_open.sql"));
    let store = in_schema(database.url(), "leasehold");
    let error = store.schema_migrate().await.unwrap_err().to_string();
    assert!(error.contains("REVOKE CREATE ON SCHEMA"), "{error}");
}
