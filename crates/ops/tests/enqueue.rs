//! Tests of the validation before a request reaches the store, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use leasehold_core::{DefinitionId, Plan, VersionBody, VersionId, WorkspaceId};
use leasehold_ops::{EnqueueError, Enqueuer, ParamsSchemas, PublishError, publish};
use leasehold_store::definition::{DefinitionStore, NewDefinition, NewVersion, Publisher};
use leasehold_store::request::{Enqueue, Idempotency, NewRequest, RequestStore};
use leasehold_store::workspace::{NewWorkspace, WorkspaceStore};
use leasehold_store::{SchemaStore, fresh_id};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::log_events::DocumentedEvents;
use leasehold_testkit::logs;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

pub(crate) struct TestStore {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
}

impl TestStore {
    pub(crate) async fn new() -> Self {
        let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        let (workspace, definition) = (fresh_id(), fresh_id());
        let new = NewWorkspace {
            id: workspace,
            name: "acme".into(),
            plan: Plan::Free,
            limit_override: None,
        };
        store
            .workspace_create(&new, &leasehold_store::Actor::Local)
            .await
            .unwrap();
        let new = NewDefinition {
            id: definition,
            workspace,
            name: "order".into(),
        };
        store
            .definition_create(&new, &leasehold_store::Actor::Local)
            .await
            .unwrap();
        Self {
            store: Arc::new(store),
            workspace,
            definition,
        }
    }

    pub(crate) fn version(&self, id: VersionId) -> NewVersion {
        NewVersion {
            id,
            workspace: self.workspace,
            definition: self.definition,
            body: VersionBody::Binding {
                workflow_type: "Order".into(),
                task_queue: "q".into(),
            },
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Administrator,
        }
    }

    pub(crate) async fn publish(&self, params_schema: Option<Value>) -> Result<(), PublishError> {
        let new = NewVersion {
            params_schema,
            ..self.version(fresh_id())
        };
        publish(
            &*self.store,
            &ParamsSchemas::default(),
            new,
            &leasehold_store::Actor::Local,
        )
        .await
        .map(drop)
    }

    pub(crate) fn request(&self, params: Value) -> NewRequest {
        NewRequest::new(fresh_id(), self.definition, params)
    }

    pub(crate) fn call(&self, requests: Vec<NewRequest>) -> Enqueue {
        Enqueue {
            workspace: self.workspace,
            requests,
            by: "test".into(),
        }
    }

    pub(crate) async fn enqueue(&self, requests: Vec<NewRequest>) -> Result<usize, EnqueueError> {
        let call = self.call(requests);
        Enqueuer::default()
            .enqueue(&*self.store, call)
            .await
            .map(|requests| requests.len())
    }

    pub(crate) async fn pending(&self) -> u64 {
        self.store
            .request_counts(self.workspace)
            .await
            .unwrap()
            .pending
    }
}

#[tokio::test]
async fn params_that_violate_the_schema_are_rejected_with_their_path_and_nothing_is_inserted() {
    let env = TestStore::new().await;
    let schema = json!({
        "type": "object",
        "required": ["order"],
        "properties": {"order": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    });
    env.publish(Some(schema)).await.unwrap();
    let good = env.request(json!({"order": {"id": 1}}));
    let bad = env.request(json!({"order": {"id": "one"}}));
    let error = env
        .enqueue(vec![good.clone(), bad])
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "requests[1].params/order/id: must be of type integer, not string"
    );
    assert_eq!(env.pending().await, 0);
    assert_eq!(env.enqueue(vec![good]).await.unwrap(), 1);
    assert_eq!(env.pending().await, 1);
}

#[tokio::test]
async fn error_names_the_violated_limit() {
    let env = TestStore::new().await;
    env.publish(None).await.unwrap();
    let with = |change: fn(&mut NewRequest)| {
        let mut request = env.request(json!(null));
        change(&mut request);
        vec![request]
    };
    let key = |key: &str, window| {
        Some(Idempotency {
            key: key.into(),
            window,
        })
    };
    let cases = [
        (
            Vec::new(),
            "an enqueue call takes 1 to 10000 requests, not 0",
        ),
        (
            vec![env.request(json!(1)); 10_001],
            "an enqueue call takes 1 to 10000 requests, not 10001",
        ),
        (
            vec![env.request(json!("x".repeat(262_143)))],
            "requests[0].params: must have at most 262144 bytes as JSON, has 262145",
        ),
        (
            vec![env.request(json!({"a": ["\0"]}))],
            "requests[0].params: at /a/0: must not contain NUL characters",
        ),
        (
            with(|r| r.priority = 1001),
            "requests[0].priority must be between -1000 and 1000, not 1001",
        ),
        (
            vec![NewRequest {
                idempotency: key("", None),
                ..env.request(json!(1))
            }],
            "requests[0].idempotency_key must not be empty",
        ),
        (
            vec![NewRequest {
                idempotency: key(&"k".repeat(256), None),
                ..env.request(json!(1))
            }],
            "requests[0].idempotency_key must have at most 255 characters, has 256",
        ),
        (
            vec![NewRequest {
                idempotency: key("k", Some(Duration::ZERO)),
                ..env.request(json!(1))
            }],
            "requests[0].dedupe_window must be between 1 ms and 366 days",
        ),
        (
            with(|r| r.trace_context = Some("a\nb".into())),
            "requests[0].trace_context must not contain control characters (found U+000A)",
        ),
    ];
    for (requests, expected) in cases {
        assert_eq!(
            env.enqueue(requests).await.unwrap_err().to_string(),
            expected
        );
    }
    assert_eq!(env.pending().await, 0);
}

#[tokio::test]
async fn missing_foreign_and_unpublished_definitions_are_distinguished() {
    let env = TestStore::new().await;
    let unknown = NewRequest::new(fresh_id(), fresh_id(), json!(1));
    let error = env.enqueue(vec![unknown]).await.unwrap_err();
    assert!(
        matches!(error, EnqueueError::DefinitionNotFound(_)),
        "{error}"
    );
    let error = env.enqueue(vec![env.request(json!(1))]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::NotPublished(_)), "{error}");
    let other = NewWorkspace {
        id: fresh_id(),
        name: "other".into(),
        plan: Plan::Free,
        limit_override: None,
    };
    env.store
        .workspace_create(&other, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let call = Enqueue {
        workspace: other.id,
        requests: vec![env.request(json!(1))],
        by: "x".into(),
    };
    let error = Enqueuer::default()
        .enqueue(&*env.store, call)
        .await
        .unwrap_err();
    assert!(
        matches!(error, EnqueueError::DefinitionForbidden(_)),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_schemas_and_schemas_with_external_references_are_rejected() {
    let env = TestStore::new().await;
    let error = env
        .publish(Some(json!({"type": "no such type"})))
        .await
        .unwrap_err();
    assert!(matches!(error, PublishError::Schema(_)), "{error}");
    let outside = json!({"$ref": "http://127.0.0.1:9/schema.json"});
    let error = env.publish(Some(outside)).await.unwrap_err();
    assert!(matches!(error, PublishError::Schema(_)), "{error}");
}

#[tokio::test]
async fn single_request_is_logged_before_and_after_and_a_batch_in_one_line() {
    let env = TestStore::new().await;
    env.publish(None).await.unwrap();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let new = |secret: &str| NewRequest {
        trace_context: Some(format!("00-{trace}-00f067aa0ba902b7-01")),
        idempotency: Some(Idempotency {
            key: format!("{secret} key"),
            window: None,
        }),
        ..NewRequest::new(fresh_id(), env.definition, json!({"card": secret}))
    };
    let enqueue = async |requests| {
        let call = Enqueue {
            workspace: env.workspace,
            requests,
            by: "user".to_owned(),
        };
        Enqueuer::default()
            .enqueue(&*env.store, call)
            .await
            .unwrap()
    };
    let page = DocumentedEvents::parse(include_str!("../../../docs/operations/logs.md"));
    let workspace = format!("workspace={}", env.workspace);
    let definition = format!("definition={}", env.definition);
    let traced = format!("trace_id={trace}");

    logs::capture();
    let id = enqueue(vec![new("hush one")]).await[0].id;
    let request = format!("request={id}");
    let before = ["Enqueueing workflow", &definition, &workspace, &traced];
    logs::assert_once(Level::INFO, &before);
    logs::assert_once(
        Level::INFO,
        &["Enqueued execution", &request, &workspace, &traced],
    );
    logs::assert_logged(&page, "Enqueueing workflow");
    logs::assert_logged(&page, "Enqueued execution");

    enqueue(vec![new("hush one")]).await;
    logs::assert_once(Level::INFO, &["idempotency key already used", &request]);

    let (seen, all) = (logs::count(Level::INFO, &[]), ["hush two", "hush three"]);
    enqueue(all.map(new).to_vec()).await;
    assert_eq!(logs::count(Level::INFO, &[]), seen + 1);
    logs::assert_once(
        Level::INFO,
        &["Enqueued 2 executions", "count=2", &workspace],
    );
    logs::assert_logged(&page, "Enqueued … executions");
    logs::assert_documented(&page);
    assert!(!logs::all().contains("hush"), "{}", logs::all());
}
