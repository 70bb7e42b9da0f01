//! Databases and templates on the shared server: creation, copies, reuse and removal.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_testkit::TestPostgres;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

const TABLE_CREATE: &str = include_str!("sql/table_create.sql");
const TABLE_COUNT: &str = include_str!("sql/table_count.sql");
const SEEDED_CREATE: &str = include_str!("sql/seeded_create.sql");
const SEEDED_CHANGE: &str = include_str!("sql/seeded_change.sql");
const SEEDED_READ: &str = include_str!("sql/seeded_read.sql");
const SEEDED_ALTER: &str = include_str!("sql/seeded_alter.sql");
const PAIR_CREATE: &str = include_str!("sql/pair_create.sql");
const PAIR_BEGIN: &str = include_str!("sql/pair_begin.sql");
const PAIR_LOCK: &str = include_str!("sql/pair_lock.sql");
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

/// Two transactions lock two rows in opposite order.
pub(crate) async fn deadlock(url: &str) {
    let (one, other) = tokio::join!(connect(url), connect(url));
    one.batch_execute(PAIR_CREATE).await.unwrap();
    for (client, row) in [(&one, 1), (&other, 2)] {
        client.batch_execute(PAIR_BEGIN).await.unwrap();
        client.query_one(PAIR_LOCK, &[&row]).await.unwrap();
    }
    let (first, second) = tokio::join!(
        one.query_one(PAIR_LOCK, &[&2]),
        other.query_one(PAIR_LOCK, &[&1])
    );
    let failed = first.err().or(second.err()).unwrap();
    assert_eq!(failed.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED));
}

/// Every test that works in a database of the testkit asserts it, so storms need no assertion of their own.
#[tokio::test(flavor = "multi_thread")]
async fn test_fails_if_transactions_deadlocked_in_its_database() {
    let server = TestPostgres::shared();
    let fresh = server.fresh_database(None).await;
    let template = seeded_template("deadlock").await;
    let reused = server.reused_database(&template).await;
    for database in [fresh, reused] {
        deadlock(database.url()).await;
        let name = database.name().to_owned();
        let failed = catch_unwind(AssertUnwindSafe(|| drop(database))).unwrap_err();
        let message = failed.downcast_ref::<String>().unwrap();
        assert_eq!(
            message,
            "PostgreSQL detected 1 deadlocks in the database of this test"
        );
        assert!(!exists(&name).await, "it is not reused");
    }
}
