//! `leasehold migrate`, and starting with a schema of another version.

use crate::program::{CommandEnv, CommandOutput};
use leasehold_testkit::{TestDatabase, TestPostgres};
use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

/// The last migration of this program; the same on every store.
fn last() -> &'static leasehold_store::Migration {
    leasehold_store_sqlite::MIGRATIONS.last().unwrap()
}

fn states(output: &CommandOutput) -> Vec<String> {
    let all: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let state = |one: &Value| one["state"].as_str().unwrap().to_owned();
    all.iter().map(state).collect()
}

/// Migrates a store by hand, step by step.
async fn migrate_by_hand(env: &CommandEnv, store: &str) {
    let run = |action: &[&str]| {
        let arguments = [&["migrate"], action, &["--store", store]].concat();
        env.run(&arguments)
    };
    let status = run(&["status", "-o", "json"]).success();
    let pending = states(&status);
    assert!(
        pending.len() >= 8 && pending.iter().all(|state| state == "pending"),
        "{status:?}"
    );
    let printed = run(&["print"]).success().stdout;
    assert!(
        printed.contains(last().name) && printed.contains("CREATE"),
        "{printed}"
    );
    let output = env.run(&["admin-key", "--store", store, "--config", "by_hand.toml"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output
            .error()
            .contains("migration 0001_workspaces is pending"),
        "{output:?}"
    );
    assert!(
        output.error().ends_with("run `leasehold migrate up` first"),
        "{output:?}"
    );

    let up = run(&["up"]).success().stdout;
    assert!(up.starts_with("applied  0001_workspaces\n"), "{up}");
    assert_eq!(up.lines().count(), pending.len(), "{up}");
    let up = run(&["up"]).success().stdout;
    assert!(up.contains("is up to date; nothing to apply"), "{up}");
    assert_eq!(run(&["up", "-o", "json"]).success().stdout, "[]\n");
    let status = run(&["status"]).success().stdout;
    assert!(
        status.lines().all(|line| line.starts_with("applied  ")),
        "{status}"
    );
    let printed = run(&["print"]).success().stdout;
    assert!(
        printed.starts_with("-- ") && !printed.contains("CREATE"),
        "{printed}"
    );
    env.run(&["admin-key", "--store", store, "--config", "by_hand.toml"])
        .success();
}

/// Runs the program on a schema that a newer one has migrated: it starts if it is compatible with the schema.
fn assert_compatible_schema_is_used(env: &CommandEnv, store: &str) {
    let up = env.run(&["migrate", "up", "--store", store]).success();
    assert!(up.stdout.contains("nothing to apply"), "{up:?}");
    env.run(&["admin-key", "--store", store, "--config", "by_hand.toml"])
        .success();
    let status = env.run(&["migrate", "status", "--store", store]).success();
    let newer = "newer    0999_future\n";
    assert!(status.stdout.contains(newer), "{status:?}");
    let doctor = env.run(&["doctor", "--store", store]).success().stdout;
    let says = "and 1 of a newer version that this program may use";
    assert!(doctor.contains(says), "{doctor}");
}

fn assert_incompatible_schema_is_refused(env: &CommandEnv, store: &str) {
    for (arguments, config) in [
        (&["migrate", "up"] as &[_], "quick.toml"),
        (&["serve", "--listen=127.0.0.1:0"], "quick.toml"),
        (&["serve", "--listen=127.0.0.1:0"], "by_hand.toml"),
    ] {
        let arguments = [arguments, &["--store", store, "--config", config]].concat();
        let output = env.run(&arguments);
        assert_eq!(output.code, 9, "{output:?}");
        let known = last().number;
        let reason = format!(
            ": the schema is too new for this program: migration 0999_future was applied by Leasehold 9.9.9 and needs a program with migration {} or a later one, \
             this program's last one is {known}; run Leasehold 9.9.9 or newer, or restore a backup from before that migration",
            known + 1
        );
        assert!(
            output.error().starts_with("cannot use the store "),
            "{output:?}"
        );
        assert!(output.error().ends_with(&reason), "{output:?}");
    }
    let status = env
        .run(&["migrate", "status", "--store", store, "-o", "json"])
        .success();
    let states = states(&status).into_iter();
    assert_eq!(states.filter(|state| state == "too_new").count(), 1);
    let doctor = env.run(&["doctor", "--store", store]).stdout;
    let says = "is too new for this program: Leasehold 9.9.9 applied migration 0999_future";
    assert!(doctor.contains(says), "{doctor}");
}

fn env_with_configs() -> CommandEnv {
    let env = CommandEnv::new();
    env.write("by_hand.toml", "[store]\nmigrate = false\n");
    env.write("quick.toml", "[store]\npatience = \"0s\"\n");
    env
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_migrated_by_hand_and_a_newer_schema_is_used_while_compatible() {
    let env = env_with_configs();
    let store = "sqlite:some/where.db";
    let status = env.run(&["migrate", "status", "--store", store]).success();
    assert!(
        status.stdout.starts_with("pending  0001_workspaces\n"),
        "{status:?}"
    );
    assert!(!env.path("some").exists(), "status creates nothing");
    migrate_by_hand(&env, store).await;
    let newer = |needs: u32| {
        let file = rusqlite::Connection::open(env.path("some/where.db")).unwrap();
        let sql = include_str!("sql/newer_sqlite.sql");
        file.execute_batch(&sql.replace("{needs}", &needs.to_string()))
            .unwrap();
    };
    newer(last().number);
    assert_compatible_schema_is_used(&env, store);
    newer(last().number + 1);
    assert_incompatible_schema_is_refused(&env, store);
}

/// Runs SQL and returns the first column of the result.
async fn by_hand(database: &TestDatabase, sql: &str) -> Vec<String> {
    let (client, connection) =
        tokio_postgres::connect(&database.url_in("leasehold"), tokio_postgres::NoTls)
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
async fn postgres_is_migrated_by_hand_and_a_newer_schema_is_used_while_compatible() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let env = env_with_configs();
    migrate_by_hand(&env, database.url()).await;
    let newer = |needs: u32| {
        let sql = include_str!("sql/newer_postgres.sql");
        sql.replace("{needs}", &needs.to_string())
    };
    by_hand(&database, &newer(last().number)).await;
    assert_compatible_schema_is_used(&env, database.url());
    by_hand(&database, &newer(last().number + 1)).await;
    assert_incompatible_schema_is_refused(&env, database.url());
}

/// The release in the header of a function file.
fn release_of(file: &str) -> &str {
    let mut lines = file.lines();
    lines
        .find_map(|line| line.strip_prefix("-- release: "))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_functions_are_kept_and_missing_ones_are_reported() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let env = env_with_configs();
    let store = database.url();
    let run = |arguments: &[&str]| env.run(&[arguments, &["--store", store]].concat());
    run(&["migrate", "up"]).success();

    by_hand(&database, include_str!("sql/function_newer.sql")).await;
    let body = include_str!("sql/function_body.sql");
    let newer = by_hand(&database, body).await;
    let up = run(&["migrate", "up"]).success().stdout;
    assert!(up.contains("is up to date; nothing to apply"), "{up}");
    assert_eq!(by_hand(&database, body).await, newer);
    let status = run(&["migrate", "status"]).success().stdout;
    let has = |line: &str| status.lines().any(|one| one == line);
    assert!(has("newer    leasehold_uuid7 release 999"), "{status}");
    assert!(has("newer    leasehold_uuid8 release 1"), "{status}");
    run(&["admin-key", "--config", "by_hand.toml"]).success();

    by_hand(&database, include_str!("sql/function_lost.sql")).await;
    let release = release_of(include_str!(
        "../../../store-postgres/sql/functions/leasehold_uuid7.sql"
    ));
    let status = run(&["migrate", "status"]).success().stdout;
    let pending = format!("pending  leasehold_uuid7 release {release}\n");
    assert!(status.contains(&pending), "{status}");
    let doctor = run(&["doctor"]).success().stdout;
    let lacks = format!("lacks release {release} of function leasehold_uuid7");
    assert!(doctor.contains(&lacks), "{doctor}");
    let output = run(&["admin-key", "--config", "by_hand.toml"]);
    assert_eq!(output.code, 2, "{output:?}");
    let pending = format!(
        "release {release} of function leasehold_uuid7 is pending and store.migrate is false; run `leasehold migrate up` first"
    );
    assert!(output.error().ends_with(&pending), "{output:?}");
    let up = run(&["migrate", "up"]).success().stdout;
    assert_eq!(up, format!("applied  leasehold_uuid7 release {release}\n"));
    run(&["admin-key", "--config", "by_hand.toml"]).success();
}
