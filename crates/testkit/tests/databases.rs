//! Databases and templates on the shared server: made, copied once built, and dropped.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold_testkit::TestPostgres;
use tokio_postgres::{Client, NoTls};

const TABLE_CREATE: &str = include_str!("sql/table_create.sql");
const TABLE_COUNT: &str = include_str!("sql/table_count.sql");
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
async fn a_database_is_made_and_dropped_even_with_a_connection_open() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let name = database.name().to_owned();
    let client = connect(database.url()).await;
    client.batch_execute(TABLE_CREATE).await.unwrap();
    assert!(exists(&name).await);
    drop(database);
    assert!(!exists(&name).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_built_once_and_copied() {
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let server = TestPostgres::shared();
    let name = format!("template_{}", std::process::id());
    let ask = || {
        server.template_database(&name, |url| async move {
            BUILT.fetch_add(1, Ordering::SeqCst);
            let client = connect(&url).await;
            client.batch_execute(TABLE_CREATE).await.unwrap();
            // Left open on purpose: an adapter's pool does not close at once either.
            std::mem::forget(client);
        })
    };
    let (first, second, third) = tokio::join!(ask(), ask(), ask());
    assert_eq!((&first, &second, &third), (&name, &name, &name));
    assert_eq!(ask().await, name);
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
