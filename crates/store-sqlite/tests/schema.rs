//! The schema and the statements on it: the dump is true, everything prepares, nothing hot scans, foreign schemas are refused.
#![allow(clippy::unwrap_used)]

use leasehold_core::Plan;
use leasehold_store::sql::expand;
use leasehold_store::workspace::WorkspaceStore;
use leasehold_store::{ErrorKind, MigrationState, SchemaStore};
use leasehold_store_sqlite::{INCLUDES, MIGRATIONS, SqliteOptions, SqliteStore, migration_script};
use leasehold_testkit::TempDir;
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};

const DUMP: &str = include_str!("../sql/schema/dump.sql");
const EXPLAIN: &str = include_str!("sql/explain.sql");
const MIGRATION_CHANGE: &str = include_str!("sql/migration_change.sql");
const MIGRATION_ADD: &str = include_str!("sql/migration_add.sql");
const LIMIT_OF_PLAN: &str = include_str!("sql/limit_of_plan.sql");

async fn migrated() -> (TempDir, SqliteStore, Connection) {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    let store = SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let connection = Connection::open(&file).unwrap();
    (folder, store, connection)
}

fn statements() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                walk(&entry.path(), found);
            } else {
                found.push(entry.path());
            }
        }
    }
    let mut found = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("sql"),
        &mut found,
    );
    let included = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        INCLUDES.iter().any(|include| include.text == text)
    };
    found.retain(|file| !included(file));
    found.sort();
    assert!(found.len() > 50);
    found
}

#[tokio::test]
async fn the_dump_is_the_schema() {
    let (_folder, _store, connection) = migrated().await;
    let mut statement = connection.prepare(DUMP).unwrap();
    let parts: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let dump = format!(
        "-- The schema that the migrations make. Written by tests/schema.rs; LEASEHOLD_BLESS=1 rewrites it.\n\n{};\n",
        parts.join(";\n\n")
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.sql");
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        fs::write(&path, &dump).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept.replace('\r', "") == dump,
        "schema.sql is not what the migrations make; set LEASEHOLD_BLESS=1 and run this test again"
    );
}

#[tokio::test]
async fn every_statement_is_one_statement_with_a_comment_and_prepares() {
    let (_folder, _store, connection) = migrated().await;
    for file in statements() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("-- "), "{}", file.display());
        let text = expand(&text, INCLUDES);
        connection
            .prepare(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// Lists and counts of everything walk everything, and those that ask for something walk what they ask for; pages of
/// leases are as few as what runs, and one row is enough to know whether there are any; the schema itself is small; a place is
/// looked for among no more than are to be counted; spent nodes are all to be settled, and what was found of one execution is few;
/// what is repaired is one workspace; how large the file is, is four numbers.
const MAY_SCAN: [&str; 19] = [
    "capacity/recount.sql",
    "change/last.sql",
    "diagnosis/size.sql",
    "execution/list_running.sql",
    "instance/list.sql",
    "job/count_running.sql",
    "job/lease_list.sql",
    "job/list_fresh.sql",
    "job/said.sql",
    "lock/list.sql",
    "migration/exists.sql",
    "migration/list.sql",
    "node/list.sql",
    "node/spent.sql",
    "queue/count_ended.sql",
    "queue/count_ready.sql",
    "request/place.sql",
    "schema/dump.sql",
    "workspace/total.sql",
];
/// Sorts at most twice its limit, two sorted halves of it; or runs of a line, which are few where queues are not enqueued to
/// in turns; or all workspaces or queues, of which it keeps as many as it shows; or what runs in one workspace.
const MAY_SORT: [&str; 9] = [
    "capacity/number.sql",
    "capacity/number_high.sql",
    "job/list_fresh.sql",
    "job/prune.sql",
    "prune/finished.sql",
    "queue/overview.sql",
    "request/oldest_pending.sql",
    "schema/dump.sql",
    "workspace/overview.sql",
];

#[tokio::test]
async fn no_statement_scans_a_table_or_sorts_a_backlog() {
    let (_folder, _store, connection) = migrated().await;
    for file in statements() {
        let name = file.display().to_string().replace('\\', "/");
        let ends = |names: &[&str]| names.iter().any(|end| name.ends_with(end));
        if name.contains("/transaction/") || name.ends_with("migration/create.sql") {
            continue;
        }
        let text = format!(
            "{EXPLAIN} {}",
            expand(&fs::read_to_string(&file).unwrap(), INCLUDES)
        );
        let mut statement = connection.prepare(&text).unwrap();
        for number in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(number, 1).unwrap();
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let plan: String = row.get("detail").unwrap();
            let scans = plan.starts_with("SCAN") && !plan.contains("CONSTANT ROW");
            assert!(
                !scans || ends(&MAY_SCAN) || ends(&MAY_SORT),
                "{name}: {plan}"
            );
            let sorts = plan.contains("TEMP B-TREE");
            assert!(!sorts || ends(&MAY_SORT), "{name}: {plan}");
        }
    }
}

#[tokio::test]
async fn the_schema_gives_each_plan_the_limit_the_core_gives_it() {
    let (_folder, store, connection) = migrated().await;
    for plan in Plan::ALL {
        let new = leasehold_store::workspace::NewWorkspace {
            id: leasehold_store::fresh_id(),
            name: plan.to_string(),
            plan,
            limit_override: None,
        };
        store.workspace_create(&new).await.unwrap();
        let limit: u32 = connection
            .query_row(LIMIT_OF_PLAN, [plan.as_str()], |row| row.get(0))
            .unwrap();
        assert_eq!(limit, plan.max_concurrent_executions());
    }
}

#[tokio::test]
async fn migrating_again_changes_nothing_and_the_status_says_so() {
    let (_folder, store, _connection) = migrated().await;
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    let status = store.schema_status().await.unwrap();
    assert_eq!(status.len(), MIGRATIONS.len());
    assert!(status.iter().all(|s| s.state == MigrationState::Applied));
}

#[tokio::test]
async fn an_empty_file_has_everything_pending_and_says_what_to_do() {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    let store = SqliteStore::open(file, &SqliteOptions::default()).unwrap();
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|s| s.state == MigrationState::Pending));
    let id = leasehold_store::fresh_id();
    for error in [
        store.workspace_get(id).await.err(),
        store.workspace_delete(id).await.err(),
    ] {
        let ErrorKind::Schema(text) = error.unwrap().kind else {
            panic!("a missing schema is not told apart");
        };
        assert!(text.contains("run the migrations"), "{text}");
    }
}

#[tokio::test]
async fn the_script_does_by_hand_what_migrating_does() {
    let folder = leasehold_testkit::temp_dir();
    let file = folder.path().join("leasehold.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(&migration_script(&[])).unwrap();
    drop(connection);
    let store = SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    assert_eq!(store.schema_migrate().await.unwrap(), []);
    let status = store.schema_status().await.unwrap();
    assert!(status.iter().all(|s| s.state == MigrationState::Applied));
    assert_eq!(migration_script(&status), "");
    let mut behind = status;
    behind[11].state = MigrationState::Pending;
    behind.truncate(12);
    let script = migration_script(&behind);
    assert!(!script.contains("0011_instances"), "{script}");
    assert!(script.contains("-- 0012_execution_list") && script.contains("-- 0013_graphs"));
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let (_folder, store, connection) = migrated().await;
    connection.execute_batch(MIGRATION_CHANGE).unwrap();
    let error = store.schema_migrate().await.unwrap_err();
    let ErrorKind::Schema(text) = error.kind else {
        panic!("{error}");
    };
    assert!(text.contains("0003_requests") && text.contains("another text"));
    let status = store.schema_status().await.unwrap();
    assert_eq!(status[2].state, MigrationState::Changed);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (_folder, store, connection) = migrated().await;
    connection.execute_batch(MIGRATION_ADD).unwrap();
    let error = store.schema_migrate().await.unwrap_err();
    let ErrorKind::Schema(text) = error.kind else {
        panic!("{error}");
    };
    assert!(text.contains("0999_future") && text.contains("newer program"));
    let status = store.schema_status().await.unwrap();
    assert_eq!(status.last().unwrap().state, MigrationState::Unknown);
}
