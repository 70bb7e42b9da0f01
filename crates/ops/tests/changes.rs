//! Tests of rejected cancellations, redrives, deletions and revocations, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::key::KeyScope;
use leasehold_core::{JobStatus, JsonText, Plan};
use leasehold_ops::{
    CancelError, DefinitionError, KeyError, QueueUpdate, Quotas, RedriveError, WorkspaceError,
    cancel, definition, job, key, queue, redrive, workspace,
};
use leasehold_store::job::JobStore;
use leasehold_store::job::NewJob;
use leasehold_store::request::{Redrive, RedriveMany};
use leasehold_store::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_store::{Actor, SchemaStore, fresh_id};
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
    let (store, quotas) = (store().await, Quotas::default());
    let new = NewWorkspace {
        id: fresh_id(),
        name: "acme".to_owned(),
        plan: Plan::Free,
        limit_override: None,
    };
    workspace::create(&store, &new, &Actor::Local)
        .await
        .unwrap();
    let change = WorkspaceChange {
        max_pending_override: Some(Some(0)),
        ..WorkspaceChange::default()
    };
    workspace::update(&store, new.id, &change, &Actor::Local)
        .await
        .unwrap();
    let mut one = Redrive {
        workspace: new.id,
        failed: fresh_id(),
        id: fresh_id(),
        by: "test".to_owned(),
    };
    let mut many = RedriveMany {
        workspace: one.workspace,
        reason: None,
        definition: None,
        limit: 5,
        max_bytes: u64::MAX,
        by: "test".to_owned(),
    };
    let error = redrive::redrive(&store, &quotas, &one).await.unwrap_err();
    assert!(matches!(error, RedriveError::NotFound), "{error}");
    let error = redrive::redrive_many(&store, &quotas, &many).await;
    assert!(matches!(error, Err(RedriveError::Quota(_))), "{error:?}");
    one.workspace = fresh_id();
    many.workspace = fresh_id();
    let error = redrive::redrive(&store, &quotas, &one).await.unwrap_err();
    assert!(matches!(error, RedriveError::NotFound), "{error}");
    let error = redrive::redrive_many(&store, &quotas, &many).await;
    assert!(matches!(error, Err(RedriveError::NotFound)), "{error:?}");
}

#[tokio::test]
async fn deleting_or_revoking_something_missing_fails() {
    let store = store().await;
    let error = workspace::delete(&store, fresh_id(), &Actor::Local)
        .await
        .unwrap_err();
    assert!(matches!(error, WorkspaceError::NotFound), "{error}");
    let error = definition::delete(&store, fresh_id(), fresh_id(), &Actor::Local).await;
    assert!(matches!(error, Err(DefinitionError::NotFound)), "{error:?}");
    let error = key::revoke(&store, fresh_id(), false, &Actor::Local)
        .await
        .unwrap_err();
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
    let before = queue::update(&store, "mail", QueueUpdate::default(), &Actor::Local).await;
    let before = before.unwrap().settings.retry.backoff;
    let after = queue::update(&store, "mail", attempts(7), &Actor::Local)
        .await
        .unwrap();
    assert_eq!(after.settings.retry.max_attempts, 7);
    assert_eq!(after.settings.retry.backoff, before);
    let error = queue::update(&store, "mail", attempts(0), &Actor::Local)
        .await
        .unwrap_err();
    let expected = "max_attempts must be between 1 and 32767, not 0";
    assert_eq!(error.to_string(), expected);
}
