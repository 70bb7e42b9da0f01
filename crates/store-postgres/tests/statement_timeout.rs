//! A role or database with a `statement_timeout`: a statement that needs longer is not cancelled.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store_conformance::{Fixture, clock};
use leasehold_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;

const SET: &str = include_str!("sql/statement_timeout_set.sql");
const AGE: &str = include_str!("sql/statement_age.sql");
const FOLD_LOCK: &str = include_str!("sql/fold_lock.sql");

#[tokio::test(flavor = "multi_thread")]
async fn operation_that_takes_longer_than_the_limit_of_the_role_completes() {
    let database = support::database().await;
    let client = connect(&database).await;
    let (_, name) = database.url().rsplit_once('/').unwrap();
    let set = SET.replace("{database}", name);
    client.batch_execute(&set).await.unwrap();

    let clock = clock();
    let f = Fixture::new(Arc::new(support::store(&database, clock.clone())), clock);
    let t = f.workspace(5).await;
    let ids = f.enqueue(&t, 3).await;
    let locker = connect(&database).await;
    locker.batch_execute("BEGIN").await.unwrap();
    locker.execute(FOLD_LOCK, &[]).await.unwrap();
    let (claimed, ()) = tokio::join!(f.drain(10), async {
        let waits = eventually(Duration::from_secs(60), async || {
            let row = client.query_one(AGE, &[]).await.unwrap();
            row.get::<_, i64>("waiting") > 0
        });
        assert!(waits.await, "the claim was cancelled or did not wait");
        locker.batch_execute("COMMIT").await.unwrap();
    });
    assert_eq!(claimed.requests.len(), ids.len());
}
