//! A disk that fills and empties under a store.
#![allow(clippy::unwrap_used)]

use futures::future::join_all;
use leasehold_core::JsonText;
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store::queue::QueueStore;
use leasehold_store::{ErrorKind, SchemaStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::{SmallDisk, temp_dir};

/// Megabytes of the disk; a migrated file with its log takes about two.
const DISK: u32 = 16;

fn job() -> NewJob {
    NewJob::new("mail", "send", JsonText::parse(r#"{"to": 7}"#).unwrap())
}

#[tokio::test]
async fn full_disk_is_unavailable_for_every_operation_of_the_commit_and_passes() {
    let test = "disk_full::full_disk_is_unavailable_for_every_operation_of_the_commit_and_passes";
    let Some(disk) = SmallDisk::of_test(test, DISK) else {
        return;
    };
    let dir = temp_dir();
    let file = dir.path().join("leasehold.db");
    let store = SqliteStore::open(file, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store.job_enqueue(&[job()]).await.unwrap();

    disk.fill();
    for _ in 0..3 {
        let jobs = [job()];
        let calls = (0..20).map(|_| store.job_enqueue(&jobs));
        for outcome in join_all(calls).await {
            let error = outcome.unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Unavailable(_)), "{error}");
            assert!(error.is_retryable());
        }
    }
    assert_eq!(store.queue_counts("mail").await.unwrap().ready, 1);

    disk.empty();
    store.job_enqueue(&[job()]).await.unwrap();
    assert_eq!(store.queue_counts("mail").await.unwrap().ready, 2);
}
