//! `leasehold doctor`, by the real program: what it finds in healthy and in sick installations, and the code it ends with.

use crate::program::{Ended, Folder, PATIENCE};
use leasehold_core::Plan;
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Store, fresh_id};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TestDatabase, TestPostgres, TestTemporal};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio_postgres::{Client, NoTls};

/// What it found, by check: the verdict and what was said.
fn findings(ended: &Ended) -> BTreeMap<String, (String, String)> {
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let each = all["findings"].as_array().unwrap().iter();
    each.inspect(|one| assert_eq!(one["todo"].is_null(), one["verdict"] == "ok", "{one}"))
        .map(|one| {
            (
                text(one, "check"),
                (text(one, "verdict"), text(one, "says")),
            )
        })
        .collect()
}

/// Runs it, and asserts that all is well but for these.
fn examined(folder: &Folder, flags: &[&str], sick: &[(&str, &str)]) -> BTreeMap<String, String> {
    let ended = folder.run(&[&["doctor", "-o", "json"], flags].concat());
    let found = findings(&ended);
    for (check, verdict) in sick {
        assert_eq!(found[*check].0, *verdict, "{check}: {found:#?}");
    }
    for (check, (verdict, says)) in &found {
        let expected = sick.iter().any(|(name, _)| name == check);
        assert!(expected || verdict == "ok", "{check} {verdict}: {says}");
    }
    let problem = sick.iter().any(|(_, verdict)| *verdict == "problem");
    assert_eq!(ended.code, i32::from(problem), "{ended:?}");
    found
        .into_iter()
        .map(|(check, (_, says))| (check, says))
        .collect()
}

const ALONE: (&str, &str) = ("instances", "warning");

async fn postgres(folder: &Folder) -> (TestDatabase, Client) {
    let database = TestPostgres::shared().fresh_database(None).await;
    folder
        .run(&["migrate", "up", "--store", database.url()])
        .well();
    let client = connected(&database).await;
    (database, client)
}

async fn connected(database: &TestDatabase) -> Client {
    let connected = tokio_postgres::connect(database.url(), NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    client
}

async fn workspace(store: &dyn Store) {
    let new = NewWorkspace {
        id: fresh_id(),
        name: "acme".to_owned(),
        plan: Plan::Pro,
        limit_override: None,
    };
    store.workspace_create(&new).await.unwrap();
}

#[test]
fn a_healthy_file_and_no_file_yet() {
    let folder = Folder::new();
    let found = examined(&folder, &[], &[("store", "warning")]);
    assert!(
        found["store"].starts_with("there is none yet: "),
        "{found:?}"
    );
    assert!(!folder.path("leasehold-data").exists());
    folder.run(&["migrate", "up"]).well();
    let found = examined(&folder, &[], &[ALONE]);
    for check in [
        "settings",
        "schema",
        "clock",
        "durability",
        "file",
        "drift",
        "engine",
        "waiting",
    ] {
        assert!(found.contains_key(check), "{check}: {found:?}");
    }
    let shown = folder.run(&["doctor"]).well().stdout;
    assert!(shown.starts_with("ok      settings"), "{shown}");
    assert!(shown.contains("warning instances"), "{shown}");
    assert!(shown.contains("→ start `leasehold serve`"), "{shown}");
}

#[test]
fn settings_that_are_wrong_are_told_all_at_once() {
    let folder = Folder::new();
    folder.write("bad.toml", "nonsense = 1\n[drift]\ninterval = \"soon\"\n");
    let ended = folder.run(&["doctor", "--config", "bad.toml"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(
        ended.stdout.matches("problem settings").count(),
        2,
        "{ended:?}"
    );
    assert!(ended.error().contains("2 problems"), "{ended:?}");
}

#[test]
fn a_schema_that_is_not_there_yet_is_told_and_nothing_more_is_asked() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("leasehold-data")).unwrap();
    folder.write("leasehold-data/leasehold.db", "");
    let found = examined(&folder, &[], &[("schema", "warning")]);
    assert!(found["schema"].contains("0001_workspaces"), "{found:?}");
    assert!(!found.contains_key("drift"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_healthy_and_sick() {
    let folder = Folder::new();
    let (database, client) = postgres(&folder).await;
    let flags = ["--store", database.url()];
    let found = examined(&folder, &flags, &[ALONE]);
    assert!(found["database"].starts_with("PostgreSQL "), "{found:?}");
    assert!(found.contains_key("connections"), "{found:?}");

    client
        .batch_execute(include_str!("sql/doctor_snapshot.sql"))
        .await
        .unwrap();
    let row = client
        .query_one(include_str!("sql/doctor_look.sql"), &[])
        .await
        .unwrap();
    let pid: i32 = row.get(0);
    let found = examined(&folder, &flags, &[ALONE]);
    assert!(
        found["snapshots"].contains(&format!("session {pid} ")),
        "{found:?}"
    );
    // Another role does not see how old it is, and must not take that for well.
    let other = connected(&database).await;
    let role = include_str!("sql/doctor_plain_role.sql");
    other.batch_execute(role).await.unwrap();
    let plain = database.url().replace("postgres@", "leasehold_plain@");
    assert_ne!(plain, database.url());
    let unseen = [ALONE, ("snapshots", "warning")];
    let found = examined(&folder, &["--store", &plain], &unseen);
    assert!(found["snapshots"].contains("other roles"), "{found:?}");
    client.batch_execute("ROLLBACK").await.unwrap();

    let off = include_str!("sql/doctor_no_sync.sql").replace("{database}", database.name());
    client.batch_execute(&off).await.unwrap();
    examined(&folder, &flags, &[ALONE, ("durability", "warning")]);

    client
        .batch_execute(include_str!("sql/doctor_no_vacuum.sql"))
        .await
        .unwrap();
    let sick = [ALONE, ("durability", "warning"), ("autovacuum", "problem")];
    let found = examined(&folder, &flags, &sick);
    assert!(found["autovacuum"].contains("request_event"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_that_somebody_planted_is_a_problem_and_stays() {
    let folder = Folder::new();
    let (database, client) = postgres(&folder).await;
    workspace(&PostgresStore::new(&PostgresOptions::new(database.url())).unwrap()).await;
    client
        .batch_execute(include_str!("sql/doctor_full_postgres.sql"))
        .await
        .unwrap();
    let flags = ["--store", database.url()];
    for _ in 0..2 {
        let found = examined(&folder, &flags, &[ALONE, ("drift", "problem")]);
        assert!(
            found["drift"].starts_with("1 slot_without_execution"),
            "{found:?}"
        );
    }

    folder.run(&["migrate", "up"]).well();
    let file = folder.path("leasehold-data/leasehold.db");
    workspace(&SqliteStore::open(&file, &SqliteOptions::default()).unwrap()).await;
    let hand = rusqlite::Connection::open(&file).unwrap();
    hand.execute(include_str!("sql/doctor_full_sqlite.sql"), [])
        .unwrap();
    drop(hand);
    let found = examined(&folder, &[], &[ALONE, ("drift", "problem")]);
    assert!(
        found["drift"].starts_with("1 slot_without_execution"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn temporal_up_and_down() {
    let address = TestTemporal::shared().address().to_owned();
    for (address, sick) in [
        (address.as_str(), vec![ALONE]),
        ("127.0.0.1:1", vec![ALONE, ("engine", "problem")]),
    ] {
        let folder = Folder::new()
            .variable("LEASEHOLD__ENGINE__KIND", "temporal")
            .variable("LEASEHOLD__TEMPORAL__ADDRESS", address);
        folder.run(&["migrate", "up"]).well();
        let found = examined(&folder, &[], &sick);
        assert!(found["engine"].starts_with("temporal "), "{found:?}");
    }
}

#[test]
fn a_database_that_is_not_there_is_a_problem() {
    let folder = Folder::new();
    let flags = ["--store", "postgres://nobody@127.0.0.1:1/nothing"];
    let found = examined(&folder, &flags, &[("store", "problem")]);
    assert!(found["store"].contains("does not answer"), "{found:?}");
}

#[test]
fn a_server_that_owns_the_file_is_asked() {
    let folder = Folder::new();
    let mut serve = folder.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for_line(PATIENCE, |line| line.contains("leasehold is running"));
    let found = examined(&folder, &[], &[]);
    assert!(
        found["store"].contains("in use by a running server"),
        "{found:?}"
    );
    assert!(found["instances"].starts_with("1 alive: "), "{found:?}");
    assert!(found["engine"].contains("embedded"), "{found:?}");
    std::fs::remove_file(folder.path("leasehold-data/admin.key")).unwrap();
    let found = examined(&folder, &[], &[("server", "problem")]);
    assert!(
        found["server"].contains("no administrator's key"),
        "{found:?}"
    );
    serve.terminate();
    assert!(serve.wait(PATIENCE).success(), "{}", serve.log());
}
