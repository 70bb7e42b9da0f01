//! Databases and templates on the shared server: creation, copies, reuse and removal.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_testkit::TestPostgres;
use tokio_postgres::{Client, NoTls};

const TABLE_CREATE: &str = include_str!("sql/table_create.sql");
const TABLE_COUNT: &str = include_str!("sql/table_count.sql");
const SEEDED_CREATE: &str = include_str!("sql/seeded_create.sql");
const SEEDED_CHANGE: &str = include_str!("sql/seeded_change.sql");
const SEEDED_READ: &str = include_str!("sql/seeded_read.sql");
const SEEDED_ALTER: &str = include_str!("sql/seeded_alter.sql");
const DATABASE_EXISTS: &str = include_str!("../sql/database/exists.sql");

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn exists(name: &str) -> bool {
    let client = connect(TestPostgres::shared().url()).await;
    client
        .query_one(DATABASE_EXISTS, &[&name])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn database_is_dropped_even_with_an_open_connection() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let name = database.name().to_owned();
    let client = connect(database.url()).await;
    client.batch_execute(TABLE_CREATE).await.unwrap();
    assert!(exists(&name).await);
    drop(database);
    assert!(!exists(&name).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn template_is_built_once_and_copied() {
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let server = TestPostgres::shared();
    let name = format!("template_{}", std::process::id());
    let create = || {
        server.template_database(&name, |url| async move {
            BUILT.fetch_add(1, Ordering::SeqCst);
            let client = connect(&url).await;
            client.batch_execute(TABLE_CREATE).await.unwrap();
            // Left open on purpose, like the pool of an adapter.
            std::mem::forget(client);
        })
    };
    let (first, second, third) = tokio::join!(create(), create(), create());
    assert_eq!((&first, &second, &third), (&name, &name, &name));
    assert_eq!(create().await, name);
    assert_eq!(BUILT.load(Ordering::SeqCst), 1);

    let (one, other) = tokio::join!(
        server.fresh_database(Some(&name)),
        server.fresh_database(Some(&name))
    );
    for database in [&one, &other] {
        let row = connect(database.url())
            .await
            .query_one(TABLE_COUNT, &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, i64>(0), 1);
    }
}

async fn seeded_template(name: &str) -> String {
    let name = format!("{name}_{}", std::process::id());
    let build = |url: String| async move {
        let client = connect(&url).await;
        client.batch_execute(SEEDED_CREATE).await.unwrap();
    };
    TestPostgres::shared().template_database(&name, build).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reused_database_has_the_rows_and_sequences_of_the_template() {
    let (server, template) = (TestPostgres::shared(), seeded_template("rows").await);
    let mut names = Vec::new();
    for _ in 0..3 {
        let database = server.reused_database(&template).await;
        let client = connect(database.url()).await;
        let row = client.query_one(SEEDED_READ, &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>("seeded"), "1 first");
        let counts = ["filled", "unused", "id"].map(|column| row.get::<_, i64>(column));
        assert_eq!(counts, [0, 1, 2]);
        client.batch_execute(SEEDED_CHANGE).await.unwrap();
        names.push(database.name().to_owned());
    }
    assert_eq!(names[0], names[1]);
    assert_eq!(names[0], names[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn database_with_a_changed_schema_is_not_reused() {
    let (server, template) = (TestPostgres::shared(), seeded_template("schema").await);
    let database = server.reused_database(&template).await;
    let name = database.name().to_owned();
    let client = connect(database.url()).await;
    client.batch_execute(SEEDED_ALTER).await.unwrap();
    drop(database);
    assert!(!exists(&name).await);
    assert_ne!(server.reused_database(&template).await.name(), name);
}
