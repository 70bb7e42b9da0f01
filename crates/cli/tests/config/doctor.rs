//! `leasehold doctor` as a process: findings and exit codes for healthy and faulty installations.

use crate::program::{CommandEnv, CommandOutput, TIMEOUT};
use leasehold_core::Plan;
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Store, fresh_id};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{TestDatabase, TestPostgres, TestTemporal};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio_postgres::{Client, NoTls};

/// The findings by check: verdict and text.
fn findings(output: &CommandOutput) -> BTreeMap<String, (String, String)> {
    let all: Value = serde_json::from_str(&output.stdout).unwrap();
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

/// Runs doctor and asserts that every check is ok except `faults`.
fn assert_findings(
    env: &CommandEnv,
    flags: &[&str],
    faults: &[(&str, &str)],
) -> BTreeMap<String, String> {
    let output = env.run(&[&["doctor", "-o", "json"], flags].concat());
    let found = findings(&output);
    for (check, verdict) in faults {
        assert_eq!(found[*check].0, *verdict, "{check}: {found:#?}");
    }
    for (check, (verdict, says)) in &found {
        let expected = faults.iter().any(|(name, _)| name == check);
        assert!(expected || verdict == "ok", "{check} {verdict}: {says}");
    }
    let problem = faults.iter().any(|(_, verdict)| *verdict == "problem");
    assert_eq!(output.code, i32::from(problem), "{output:?}");
    found
        .into_iter()
        .map(|(check, (_, says))| (check, says))
        .collect()
}

const NO_INSTANCE: (&str, &str) = ("instances", "warning");

async fn postgres(env: &CommandEnv) -> (TestDatabase, Client) {
    let database = TestPostgres::shared().fresh_database(None).await;
    env.run(&["migrate", "up", "--store", database.url()])
        .success();
    let client = connected(&database).await;
    (database, client)
}

async fn connected(database: &TestDatabase) -> Client {
    let connected = tokio_postgres::connect(&database.url_in("leasehold"), NoTls).await;
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
    store
        .workspace_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
}

#[test]
fn sqlite_file_missing_and_healthy() {
    let env = CommandEnv::new();
    let found = assert_findings(&env, &[], &[("store", "warning")]);
    assert!(
        found["store"].starts_with("sqlite:") && found["store"].ends_with("does not exist yet"),
        "{found:?}"
    );
    assert!(!env.path("leasehold-data").exists());
    env.run(&["migrate", "up"]).success();
    let found = assert_findings(&env, &[], &[NO_INSTANCE]);
    for check in [
        "settings",
        "schema",
        "clock",
        "durability",
        "file",
        "drift",
        "engine",
        "recorded engine",
        "waiting",
    ] {
        assert!(found.contains_key(check), "{check}: {found:?}");
    }
    let shown = env.run(&["doctor"]).success().stdout;
    assert!(shown.starts_with("ok      settings"), "{shown}");
    assert!(shown.contains("warning instances"), "{shown}");
    assert!(shown.contains("→ start `leasehold serve`"), "{shown}");
}

#[test]
fn all_invalid_settings_are_reported() {
    let env = CommandEnv::new();
    env.write("bad.toml", "nonsense = 1\n[drift]\ninterval = \"soon\"\n");
    let output = env.run(&["doctor", "--config", "bad.toml"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(
        output.stdout.matches("problem settings").count(),
        2,
        "{output:?}"
    );
    assert!(output.error().contains("2 problems"), "{output:?}");
}

#[test]
fn missing_schema_skips_the_remaining_checks() {
    let env = CommandEnv::new();
    std::fs::create_dir(env.path("leasehold-data")).unwrap();
    env.write("leasehold-data/leasehold.db", "");
    let found = assert_findings(&env, &[], &[("schema", "warning")]);
    assert!(found["schema"].contains("0001_workspaces"), "{found:?}");
    assert!(!found.contains_key("drift"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_healthy_and_faulty() {
    let env = CommandEnv::new();
    let (database, client) = postgres(&env).await;
    let flags = ["--store", database.url()];
    let found = assert_findings(&env, &flags, &[NO_INSTANCE]);
    assert!(found["database"].starts_with("PostgreSQL "), "{found:?}");
    assert!(found.contains_key("connections"), "{found:?}");

    client
        .batch_execute(include_str!("sql/doctor_snapshot.sql"))
        .await
        .unwrap();
    let row = client
        .query_one(include_str!("sql/doctor_read.sql"), &[])
        .await
        .unwrap();
    let pid: i32 = row.get(0);
    let found = assert_findings(&env, &flags, &[NO_INSTANCE]);
    assert!(
        found["snapshots"].contains(&format!("session {pid} ")),
        "{found:?}"
    );
    // Another role cannot see the age and may not drop old events, and must warn.
    let other = connected(&database).await;
    let role = include_str!("sql/doctor_plain_role.sql");
    other.batch_execute(role).await.unwrap();
    let plain = database.url().replace("postgres@", "leasehold_plain@");
    assert_ne!(plain, database.url());
    let unseen = [
        NO_INSTANCE,
        ("snapshots", "warning"),
        ("event log", "warning"),
    ];
    let found = assert_findings(&env, &["--store", &plain], &unseen);
    assert!(found["snapshots"].contains("other roles"), "{found:?}");
    client.batch_execute("ROLLBACK").await.unwrap();

    let off = include_str!("sql/doctor_no_sync.sql").replace("{database}", database.name());
    client.batch_execute(&off).await.unwrap();
    assert_findings(&env, &flags, &[NO_INSTANCE, ("durability", "warning")]);

    client
        .batch_execute(include_str!("sql/doctor_no_vacuum.sql"))
        .await
        .unwrap();
    let faults = [
        NO_INSTANCE,
        ("durability", "warning"),
        ("autovacuum", "problem"),
    ];
    let found = assert_findings(&env, &flags, &faults);
    assert!(found["autovacuum"].contains("request_event"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_reported_and_not_repaired() {
    let env = CommandEnv::new();
    let (database, client) = postgres(&env).await;
    workspace(&PostgresStore::new(&PostgresOptions::new(database.url())).unwrap()).await;
    client
        .batch_execute(include_str!("sql/doctor_full_postgres.sql"))
        .await
        .unwrap();
    let flags = ["--store", database.url()];
    for _ in 0..2 {
        let found = assert_findings(&env, &flags, &[NO_INSTANCE, ("drift", "problem")]);
        assert!(
            found["drift"].starts_with("1 slot_without_execution"),
            "{found:?}"
        );
    }

    env.run(&["migrate", "up"]).success();
    let file = env.path("leasehold-data/leasehold.db");
    workspace(&SqliteStore::open(&file, &SqliteOptions::default()).unwrap()).await;
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute(include_str!("sql/doctor_full_sqlite.sql"), [])
        .unwrap();
    drop(sql);
    let found = assert_findings(&env, &[], &[NO_INSTANCE, ("drift", "problem")]);
    assert!(
        found["drift"].starts_with("1 slot_without_execution"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn temporal_up_and_down() {
    let address = TestTemporal::shared().address().to_owned();
    for (address, faults) in [
        (address.as_str(), vec![NO_INSTANCE]),
        ("127.0.0.1:1", vec![NO_INSTANCE, ("engine", "problem")]),
    ] {
        let env = CommandEnv::new()
            .variable("LEASEHOLD__ENGINE__KIND", "temporal")
            .variable("LEASEHOLD__TEMPORAL__ADDRESS", address);
        env.run(&["migrate", "up"]).success();
        let found = assert_findings(&env, &[], &faults);
        assert!(found["engine"].starts_with("temporal "), "{found:?}");
    }
}

#[test]
fn unreachable_database_is_a_problem() {
    let env = CommandEnv::new();
    let flags = ["--store", "postgres://nobody@127.0.0.1:1/nothing"];
    let found = assert_findings(&env, &flags, &[("store", "problem")]);
    assert!(found["store"].starts_with("cannot reach "), "{found:?}");
}

#[test]
fn running_server_that_owns_the_file_is_queried() {
    let env = CommandEnv::new();
    let mut serve = env.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for_line(TIMEOUT, |line| line.contains("leasehold is running"));
    let found = assert_findings(&env, &[], &[]);
    assert!(
        found["store"].contains("in use by a running server"),
        "{found:?}"
    );
    assert!(found["instances"].starts_with("1 alive: "), "{found:?}");
    assert!(found["engine"].contains("embedded"), "{found:?}");
    std::fs::remove_file(env.path("leasehold-data/admin.key")).unwrap();
    let found = assert_findings(&env, &[], &[("server", "problem")]);
    assert!(
        found["server"].contains("no administrator key"),
        "{found:?}"
    );
    serve.terminate();
    assert!(serve.wait(TIMEOUT).success(), "{}", serve.log());
}
