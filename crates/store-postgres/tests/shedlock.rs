//! A Java ShedLock on the same table: the statements its JDBC provider sends with the database's time.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store::lock::{LockAcquired, LockRequest, LockStore, LockToken};
use leasehold_store::request::{Claim, ClaimOutcome, RequestStore};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;

const NAME: &str = "processExecutionQueue";

async fn take(store: &PostgresStore, owner: &str) -> Option<LockToken> {
    let request = LockRequest {
        name: NAME.into(),
        owner: owner.into(),
        at_most_for: Duration::from_secs(60),
    };
    match store.lock_acquire(&request).await.unwrap() {
        LockAcquired::Acquired { token, .. } => Some(token),
        LockAcquired::Held { .. } => None,
    }
}

#[tokio::test]
async fn java_and_leasehold_exclude_each_other_and_new_holder_raises_token() {
    let database = support::database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let java = connect(&database).await;
    let acquire = include_str!("sql/shedlock_acquire.sql");
    let release = include_str!("sql/shedlock_release.sql");
    let extend = include_str!("sql/shedlock_extend.sql");

    assert_eq!(java.execute(acquire, &[&NAME, &"java"]).await.unwrap(), 1);
    assert_eq!(take(&store, "us").await, None, "Java holds it");
    assert_eq!(java.execute(extend, &[&NAME, &"java"]).await.unwrap(), 1);
    assert_eq!(java.execute(release, &[&NAME, &"java"]).await.unwrap(), 1);

    let ours = take(&store, "us").await.unwrap();
    assert_eq!(ours.token, 2);
    assert_eq!(
        java.execute(acquire, &[&NAME, &"java"]).await.unwrap(),
        0,
        "we hold it"
    );
    assert!(store.lock_release(&ours, Duration::ZERO).await.unwrap());
    assert_eq!(java.execute(acquire, &[&NAME, &"java"]).await.unwrap(), 1);
    assert_eq!(
        store.lock_list().await.unwrap()[0].token,
        3,
        "raised although Java does not write tokens"
    );
    assert!(
        !store
            .lock_extend(&ours, Duration::from_secs(60))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn holder_that_lost_its_lock_to_java_cannot_claim() {
    let database = support::database().await;
    let clock = clock();
    let waiting = Fixture::new(Arc::new(support::store(&database, clock.clone())), clock);
    let workspace = waiting.workspace(5).await;
    waiting.enqueue(&workspace, 1).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let ours = take(&store, "us").await.unwrap();
    let java = connect(&database).await;
    java.execute(include_str!("sql/shedlock_expire.sql"), &[])
        .await
        .unwrap();
    java.execute(include_str!("sql/shedlock_acquire.sql"), &[&NAME, &"java"])
        .await
        .unwrap();
    let claim = Claim {
        owner: "us".into(),
        batch: 10,
        kept_max: None,
        lease: Duration::from_secs(15),
        lock: Some(ours),
    };
    assert_eq!(
        store.request_claim(&claim).await.unwrap(),
        ClaimOutcome::LockLost
    );
    assert_eq!(
        store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .pending,
        1
    );
}
