//! `leasehold migrate`, and what a start does with a schema that is not its own.

use crate::program::{Ended, Folder};
use leasehold_testkit::{TestDatabase, TestPostgres};
use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

/// The last that this program knows; the same on every store.
fn last() -> &'static leasehold_store::Migration {
    leasehold_store_sqlite::MIGRATIONS.last().unwrap()
}

fn states(ended: &Ended) -> Vec<String> {
    let all: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let state = |one: &Value| one["state"].as_str().unwrap().to_owned();
    all.iter().map(state).collect()
}

/// A place to migrate, by the flag that names it.
async fn walk_through(folder: &Folder, store: &str) {
    let run = |verb: &[&str]| {
        let arguments = [&["migrate"], verb, &["--store", store]].concat();
        folder.run(&arguments)
    };
    let status = run(&["status", "-o", "json"]).well();
    let pending = states(&status);
    assert!(
        pending.len() >= 13 && pending.iter().all(|state| state == "pending"),
        "{status:?}"
    );
    let printed = run(&["print"]).well().stdout;
    assert!(
        printed.contains(last().name) && printed.contains("CREATE"),
        "{printed}"
    );
    let refused = folder.run(&["admin-key", "--store", store, "--config", "by_hand.toml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.error().contains("lacks migration 0001_workspaces"),
        "{refused:?}"
    );
    assert!(
        refused
            .error()
            .ends_with("run `leasehold migrate up` first"),
        "{refused:?}"
    );

    let up = run(&["up"]).well().stdout;
    assert!(up.starts_with("applied  0001_workspaces\n"), "{up}");
    assert_eq!(up.lines().count(), pending.len(), "{up}");
    let up = run(&["up"]).well().stdout;
    assert!(up.contains("is up to date; nothing to apply"), "{up}");
    assert_eq!(run(&["up", "-o", "json"]).well().stdout, "[]\n");
    let status = run(&["status"]).well().stdout;
    assert!(
        status.lines().all(|line| line.starts_with("applied  ")),
        "{status}"
    );
    let printed = run(&["print"]).well().stdout;
    assert!(
        printed.starts_with("-- ") && !printed.contains("CREATE"),
        "{printed}"
    );
    folder
        .run(&["admin-key", "--store", store, "--config", "by_hand.toml"])
        .well();
}

fn refuses_what_is_newer(folder: &Folder, store: &str) {
    for arguments in [
        ["migrate", "up", "--store", store, "--config", "quick.toml"],
        [
            "serve",
            "--listen=127.0.0.1:0",
            "--store",
            store,
            "--config",
            "quick.toml",
        ],
        [
            "serve",
            "--listen=127.0.0.1:0",
            "--store",
            store,
            "--config",
            "by_hand.toml",
        ],
    ] {
        let ended = folder.run(&arguments);
        assert_eq!(ended.code, 9, "{ended:?}");
        assert_eq!(
            ended.error(),
            format!(
                "the store's schema is newer than this program: it has migration 999, this knows {}; run the newer leasehold, or restore a backup from before",
                last().number
            )
        );
    }
    let status = folder
        .run(&["migrate", "status", "--store", store, "-o", "json"])
        .well();
    let newer = states(&status).into_iter().filter(|state| state == "newer");
    assert_eq!(newer.count(), 1, "{status:?}");
}

fn place() -> Folder {
    let folder = Folder::new();
    folder.write("by_hand.toml", "[store]\nmigrate = false\n");
    folder.write("quick.toml", "[store]\npatience = \"0s\"\n");
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_is_migrated_by_hand_and_a_newer_one_is_refused() {
    let folder = place();
    let store = "sqlite:some/where.db";
    let status = folder.run(&["migrate", "status", "--store", store]).well();
    assert!(
        status.stdout.starts_with("pending  0001_workspaces\n"),
        "{status:?}"
    );
    assert!(!folder.path("some").exists(), "asking makes nothing");
    walk_through(&folder, store).await;
    let file = rusqlite::Connection::open(folder.path("some/where.db")).unwrap();
    file.execute_batch(include_str!("sql/newer_sqlite.sql"))
        .unwrap();
    drop(file);
    refuses_what_is_newer(&folder, store);
}

/// Runs SQL as a person would, and returns the first column of what it gives.
async fn by_hand(database: &TestDatabase, sql: &str) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let answer = client.simple_query(sql).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    let rows = answer.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap().to_owned()),
        _ => None,
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_database_is_migrated_by_hand_and_a_newer_one_is_refused() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let folder = place();
    walk_through(&folder, database.url()).await;
    by_hand(&database, include_str!("sql/newer_postgres.sql")).await;
    refuses_what_is_newer(&folder, database.url());
}

/// The release that a function's file says.
fn release_of(file: &str) -> &str {
    let mut lines = file.lines();
    lines
        .find_map(|line| line.strip_prefix("-- release: "))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_newer_program_are_kept_and_lost_ones_are_named() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let folder = place();
    let store = database.url();
    let run = |arguments: &[&str]| folder.run(&[arguments, &["--store", store]].concat());
    run(&["migrate", "up"]).well();

    by_hand(&database, include_str!("sql/function_newer.sql")).await;
    let body = include_str!("sql/function_body.sql");
    let newer = by_hand(&database, body).await;
    let up = run(&["migrate", "up"]).well().stdout;
    assert!(up.contains("is up to date; nothing to apply"), "{up}");
    assert_eq!(by_hand(&database, body).await, newer);
    let status = run(&["migrate", "status"]).well().stdout;
    let has = |line: &str| status.lines().any(|one| one == line);
    assert!(has("newer    leasehold_uuid7 release 999"), "{status}");
    assert!(has("newer    leasehold_uuid8 release 1"), "{status}");
    run(&["admin-key", "--config", "by_hand.toml"]).well();

    by_hand(&database, include_str!("sql/function_lost.sql")).await;
    let release = release_of(include_str!(
        "../../../store-postgres/sql/functions/leasehold_uuid7.sql"
    ));
    let status = run(&["migrate", "status"]).well().stdout;
    let pending = format!("pending  leasehold_uuid7 release {release}\n");
    assert!(status.contains(&pending), "{status}");
    let doctor = run(&["doctor"]).well().stdout;
    let lacks = format!("lacks release {release} of function leasehold_uuid7");
    assert!(doctor.contains(&lacks), "{doctor}");
    let refused = run(&["admin-key", "--config", "by_hand.toml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let lacks = format!("{lacks}, and store.migrate is false: run `leasehold migrate up` first");
    assert!(refused.error().ends_with(&lacks), "{refused:?}");
    let up = run(&["migrate", "up"]).well().stdout;
    assert_eq!(up, format!("applied  leasehold_uuid7 release {release}\n"));
    run(&["admin-key", "--config", "by_hand.toml"]).well();
}
