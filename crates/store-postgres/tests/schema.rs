//! `schema.sql` must match what the migrations and functions create; `cargo xtask schema` rewrites it.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store::MigrationState;
use leasehold_store::SchemaStore;
use leasehold_store_postgres::{
    MIGRATIONS, PostgresOptions, PostgresStore, functions, migration_script,
};
use leasehold_testkit::TestPostgres;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");

fn program(name: &str) -> PathBuf {
    let programs = leasehold_testkit::postgres_programs().expect("run `cargo xtask setup`");
    programs.join(name)
}

fn dump(url: &str) -> String {
    dump_with(url, &["--no-privileges"])
}

fn dump_with(url: &str, flags: &[&str]) -> String {
    let output = Command::new(program("pg_dump"))
        .args(["--schema-only", "--no-owner", url])
        .args(flags)
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
        !line.contains("pg_catalog.set_config") && !noise.iter().any(|n| line.starts_with(n))
    });
    let mut kept: Vec<&str> = lines.collect();
    kept.dedup_by(|a, b| a.is_empty() && b.is_empty());
    format!("{}\n", kept.join("\n").trim())
}

fn psql(url: &str, script: &str) {
    let mut psql = Command::new(program("psql"))
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
    let dumped = dump(database.url());
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(FILE, &dumped).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    assert_eq!(
        kept, dumped,
        "schema.sql is out of date: run `cargo xtask schema`"
    );
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    let database = support::database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let before = dump(database.url());
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    assert_eq!(dump(database.url()), before);
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
    psql(database.url(), &migration_script(&[]));
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|m| m.state == MigrationState::Applied));
    assert_eq!(migration_script(&status), "");
    let migrated = support::database().await;
    let (by_hand, by_program) = (database.url(), migrated.url());
    assert_eq!(dump_with(by_hand, &[]), dump_with(by_program, &[]));
    let mut behind = status;
    let functions = behind.split_off(MIGRATIONS.len());
    behind[11].state = MigrationState::Pending;
    behind.truncate(12);
    behind.extend(functions);
    let script = migration_script(&behind);
    assert!(!script.contains("0011_instances"), "{script}");
    assert!(script.contains("-- 0012_execution_list") && script.contains("-- 0013_graphs"));
    assert!(!script.contains("leasehold_fold"), "{script}");
    let fold = behind.iter_mut().find(|one| one.name == "leasehold_fold");
    fold.unwrap().state = MigrationState::Pending;
    let script = migration_script(&behind);
    assert!(script.contains("-- leasehold_fold release 4"), "{script}");
    assert!(!script.contains("leasehold_prune"), "{script}");
}

#[tokio::test]
async fn newer_or_changed_schema_is_rejected_with_advice() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    client
        .batch_execute(include_str!("sql/migration_newer.sql"))
        .await
        .unwrap();
    let error = store.schema_migrate().await.unwrap_err().to_string();
    assert!(
        error.contains("newer Leasehold (migration 0999_future"),
        "{error}"
    );
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
    let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
    let grant = "GRANT SELECT ON leasehold_migration, leasehold_function TO";
    for sql in [
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
