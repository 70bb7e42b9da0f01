//! Tests of rejected cancellations, redrives, deletions and revocations, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::JobStatus;
use leasehold_core::JsonText;
use leasehold_core::key::KeyScope;
use leasehold_ops::{
    Backlog, CancelError, DefinitionError, KeyError, QueueUpdate, RedriveError, WorkspaceError,
    cancel, definition, job, key, queue, redrive, workspace,
};
use leasehold_store::job::JobStore;
use leasehold_store::job::NewJob;
use leasehold_store::request::{Redrive, RedriveMany};
use leasehold_store::{SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};

async fn store() -> SqliteStore {
    let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    store
}

fn worker(queue: &str) -> KeyScope {
    KeyScope::Worker {
        queues: vec![queue.to_owned()],
    }
}

#[tokio::test]
async fn job_is_cancelled_only_with_a_key_for_its_queue_and_only_once() {
    let store = store().await;
    let new = NewJob::new("mail", "kind", JsonText::default());
    let id = job::enqueue(&store, &[new]).await.unwrap()[0].id;
    let hidden = cancel::job(&store, &worker("other"), id).await.unwrap_err();
    assert!(matches!(hidden, CancelError::NotFound), "{hidden}");
    let status = store.job_get(id).await.unwrap().unwrap().status;
    assert_eq!(status, JobStatus::Queued);
    let cancelled = cancel::job(&store, &worker("mail"), id).await.unwrap();
    assert_eq!(cancelled.status, JobStatus::Failed);
    let again = cancel::job(&store, &KeyScope::Admin, id).await.unwrap_err();
    assert!(matches!(again, CancelError::JobFinished), "{again}");
}

#[tokio::test]
async fn redrive_fails_if_the_backlog_is_full_or_the_request_is_missing() {
    let (store, full, empty) = (store().await, Backlog::new(0), Backlog::new(5));
    let one = Redrive {
        workspace: fresh_id(),
        failed: fresh_id(),
        id: fresh_id(),
        by: "test".to_owned(),
    };
    let many = RedriveMany {
        workspace: one.workspace,
        reason: None,
        limit: 5,
        by: "test".to_owned(),
    };
    let error = redrive::redrive(&store, &full, &one).await.unwrap_err();
    assert!(matches!(error, RedriveError::Backlog(_)), "{error}");
    let error = redrive::redrive(&store, &empty, &one).await.unwrap_err();
    assert!(matches!(error, RedriveError::NotFound), "{error}");
    let error = redrive::redrive_many(&store, &full, &many).await;
    assert!(matches!(error, Err(RedriveError::Backlog(_))), "{error:?}");
    let error = redrive::redrive_many(&store, &empty, &many).await;
    assert!(matches!(error, Err(RedriveError::NotFound)), "{error:?}");
}

#[tokio::test]
async fn deleting_or_revoking_something_missing_fails() {
    let store = store().await;
    let error = workspace::delete(&store, fresh_id()).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::NotFound), "{error}");
    let error = definition::delete(&store, fresh_id(), fresh_id()).await;
    assert!(matches!(error, Err(DefinitionError::NotFound)), "{error:?}");
    let error = key::revoke(&store, fresh_id()).await.unwrap_err();
    assert!(matches!(error, KeyError::NotFound), "{error}");
    assert!(workspace::get(&store, fresh_id()).await.unwrap().is_none());
}

#[tokio::test]
async fn changing_max_attempts_keeps_the_backoff() {
    let store = store().await;
    let attempts = |max_attempts| QueueUpdate {
        max_attempts: Some(max_attempts),
        ..QueueUpdate::default()
    };
    let before = queue::update(&store, "mail", QueueUpdate::default()).await;
    let before = before.unwrap().settings.retry.backoff;
    let after = queue::update(&store, "mail", attempts(7)).await.unwrap();
    assert_eq!(after.settings.retry.max_attempts, 7);
    assert_eq!(after.settings.retry.backoff, before);
    let error = queue::update(&store, "mail", attempts(0))
        .await
        .unwrap_err();
    let expected = "max_attempts must be between 1 and 32767, not 0";
    assert_eq!(error.to_string(), expected);
}
