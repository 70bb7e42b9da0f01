//! Tests of remembered versions: an enqueue call reads a definition once, and an older version neither accepts nor rejects params.
#![allow(clippy::unwrap_used)]

use crate::enqueue::TestStore;
use leasehold_core::{Plan, WorkspaceId};
use leasehold_ops::{EnqueueError, Enqueuer};
use leasehold_store::definition::DefinitionStore;
use leasehold_store::workspace::{NewWorkspace, WorkspaceStore};
use leasehold_store::{Actor, LayeredStore, Result, Store, StoreCall, StoreLayer, fresh_id};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const READ: StoreCall = StoreCall::named("definition_get");

/// Counts the reads of definitions.
#[derive(Clone, Default)]
struct ReadCounter(Arc<AtomicUsize>);

impl StoreLayer for ReadCounter {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.0
            .fetch_add(usize::from(call == READ), Ordering::Relaxed);
        run.await
    }
}

/// An enqueuer that knows the current version, which requires the field `old`.
struct Remembering {
    env: TestStore,
    store: Arc<dyn Store>,
    reads: ReadCounter,
    enqueuer: Enqueuer,
}

impl Remembering {
    async fn new() -> Self {
        let env = TestStore::new().await;
        env.publish(Some(requiring("old"))).await.unwrap();
        let reads = ReadCounter::default();
        let store: Arc<dyn Store> = env.store.clone();
        let remembering = Self {
            store: Arc::new(LayeredStore::new(store, reads.clone())),
            env,
            reads,
            enqueuer: Enqueuer::default(),
        };
        let old = json!({"old": 1});
        assert_eq!(remembering.enqueue(old).await, Ok(()));
        remembering
    }

    async fn enqueue(&self, params: Value) -> std::result::Result<(), String> {
        let call = self.env.call(vec![self.env.request(params)]);
        let enqueued = self.enqueuer.enqueue(&*self.store, call).await;
        enqueued.map(drop).map_err(|error| error.to_string())
    }

    fn reads(&self) -> usize {
        self.reads.0.load(Ordering::Relaxed)
    }
}

fn requiring(field: &str) -> Value {
    json!({"type": "object", "required": [field]})
}

#[tokio::test]
async fn definition_is_read_once_for_many_calls() {
    let known = Remembering::new().await;
    for number in 0..10 {
        assert_eq!(known.enqueue(json!({"old": number})).await, Ok(()));
    }
    assert_eq!(known.reads(), 1);
    assert_eq!(known.env.pending().await, 11);
}

#[tokio::test]
async fn version_that_another_process_publishes_decides_at_once() {
    for params in [json!({"old": 1}), json!({"new": 1})] {
        let known = Remembering::new().await;
        known.env.publish(Some(requiring("new"))).await.unwrap();
        let is_valid = params.get("new").is_some();
        assert_eq!(known.enqueue(params).await.is_ok(), is_valid);
        assert_eq!(known.enqueue(json!({"new": 2})).await, Ok(()));
        let refused = known.enqueue(json!({"old": 2})).await.unwrap_err();
        assert!(refused.contains("new"), "{refused}");
    }
}

#[tokio::test]
async fn params_that_do_not_match_are_rejected_with_one_further_read() {
    let known = Remembering::new().await;
    let refused = known.enqueue(json!({})).await.unwrap_err();
    assert!(refused.contains("old"), "{refused}");
    assert_eq!(known.reads(), 2);
}

#[tokio::test]
async fn deleted_definition_is_not_found_whatever_the_params() {
    let known = Remembering::new().await;
    let (workspace, definition) = (known.env.workspace, known.env.definition);
    let deleted = known
        .env
        .store
        .definition_delete(workspace, definition, &Actor::Local)
        .await;
    assert!(deleted.unwrap());
    for params in [json!({"old": 1}), json!({})] {
        let refused = known.enqueue(params).await.unwrap_err();
        let expected = EnqueueError::DefinitionNotFound(definition).to_string();
        assert_eq!(refused, expected);
    }
}

#[tokio::test]
async fn version_remembered_for_its_workspace_is_unknown_to_another() {
    let known = Remembering::new().await;
    let other: WorkspaceId = fresh_id();
    let new = NewWorkspace {
        id: other,
        name: "other".into(),
        plan: Plan::Free,
        limit_override: None,
    };
    let created = known.env.store.workspace_create(&new, &Actor::Local);
    created.await.unwrap();
    let mut call = known.env.call(vec![known.env.request(json!({}))]);
    call.workspace = other;
    let refused = known.enqueuer.enqueue(&*known.store, call).await;
    assert!(
        matches!(refused, Err(EnqueueError::DefinitionForbidden(_))),
        "{refused:?}"
    );
}
