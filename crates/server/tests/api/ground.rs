//! What every scenario stands on: the app on a fresh store, an administrator's key, and short words for calling it.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt;
use leasehold_core::key::KeyScope;
use leasehold_core::{DefinitionId, Plan, VersionBody, WorkspaceId};
use leasehold_ops as ops;
use leasehold_server::{Parts, ServerOptions, State, app};
use leasehold_store::definition::{NewDefinition, NewVersion};
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Clock, ManualClock, Store, fresh_id};
use leasehold_store_postgres::{MIGRATIONS, PostgresOptions, PostgresStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_telemetry::{ObservedStore, Telemetry};
use leasehold_testkit::{TempDir, TestDatabase, TestPostgres, temp_dir};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::engine::TestEngine;

/// Which store a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Postgres,
    Sqlite,
}

/// The app on a store of its own.
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) app: Router,
    pub(crate) state: State,
    /// An administrator's key.
    pub(crate) admin: String,
    pub(crate) stop: CancellationToken,
    /// What the app believes of the engine; a scenario may change it.
    pub(crate) engine: Arc<TestEngine>,
    /// The store's clock, where the scenario turns it.
    pub(crate) clock: Option<ManualClock>,
    pub(crate) database: Option<TestDatabase>,
    _folder: Option<TempDir>,
}

/// A workspace with a published definition and a key of its own.
pub(crate) struct Site {
    pub(crate) workspace: WorkspaceId,
    pub(crate) definition: DefinitionId,
    /// The workspace's key.
    pub(crate) key: String,
}

impl Site {
    /// A path below the workspace's.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("/v1/workspaces/{}{below}", self.workspace)
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body, null where it is empty or no JSON.
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Answer {
    /// The body, if it was answered with this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json
    }

    /// Checks that it is a problem of this code at this path (empty for none).
    #[track_caller]
    pub(crate) fn refused(self, code: &str, path: &str) -> Value {
        assert_eq!(self.json["code"], code, "{} {}", self.status, self.text);
        assert_eq!(self.json["status"], self.status, "{}", self.text);
        assert_eq!(self.json["type"], format!("/errors/{code}"));
        assert_eq!(self.header("content-type"), "application/problem+json");
        let at = self.json["path"].as_str().unwrap_or_default();
        assert_eq!(at, path, "{}", self.text);
        self.json
    }

    /// A header's text, empty where it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Ground {
    /// On SQLite, with the database's clock and ordinary limits.
    pub(crate) async fn new() -> Self {
        Self::on(On::Sqlite).await
    }

    pub(crate) async fn on(on: On) -> Self {
        Self::with(on, None, ServerOptions::default()).await
    }

    /// On SQLite with a clock that stands still until it is moved.
    pub(crate) async fn still() -> Self {
        let start = "2026-03-01T12:00:00Z".parse().unwrap();
        let clock = ManualClock::starting_at(start);
        Self::with(On::Sqlite, Some(clock), ServerOptions::default()).await
    }

    /// On SQLite with other limits.
    pub(crate) async fn limited(options: ServerOptions) -> Self {
        Self::with(On::Sqlite, None, options).await
    }

    pub(crate) async fn with(on: On, clock: Option<ManualClock>, options: ServerOptions) -> Self {
        let judge = clock.clone().map_or(Clock::Database, Clock::Manual);
        let (store, database, folder): (Arc<dyn Store>, _, _) = match on {
            On::Postgres => {
                let database = database().await;
                let options = PostgresOptions {
                    clock: judge,
                    max_connections: 6,
                    ..PostgresOptions::new(database.url())
                };
                let store = PostgresStore::new(&options).unwrap();
                (Arc::new(store), Some(database), None)
            }
            On::Sqlite => {
                let folder = temp_dir();
                let options = SqliteOptions {
                    clock: judge,
                    ..SqliteOptions::default()
                };
                let store = SqliteStore::open(folder.path().join("test.db"), &options).unwrap();
                store.schema_migrate().await.unwrap();
                (Arc::new(store), None, Some(folder))
            }
        };
        let telemetry = Telemetry::default();
        let store: Arc<dyn Store> = Arc::new(ObservedStore::new(store, &telemetry));
        let engine = Arc::new(TestEngine::default());
        let stop = CancellationToken::new();
        let state = State::new(Parts {
            store: store.clone(),
            engine: Some(engine.clone()),
            watch: engine.clone(),
            options,
            telemetry,
            stop: stop.clone(),
        });
        let (_, secret) = ops::key::create(&*store, "admin", KeyScope::Admin)
            .await
            .unwrap();
        Self {
            store,
            app: app(state.clone()),
            state,
            admin: secret.reveal().to_owned(),
            stop,
            engine,
            clock,
            database,
            _folder: folder,
        }
    }

    /// Calls the app; `key` and a null `body` may be empty.
    pub(crate) async fn call(&self, method: Method, path: &str, key: &str, body: Value) -> Answer {
        self.call_with(method, path, key, &[], body).await
    }

    /// Calls the app with more headers.
    pub(crate) async fn call_with(
        &self,
        method: Method,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        self.send(request, key, body).await
    }

    /// Calls the app with a body that need not be JSON.
    pub(crate) async fn call_raw(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: &str,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json");
        self.send(request, key, Body::from(body.to_owned())).await
    }

    /// Calls the app with a request and a body of any kind.
    pub(crate) async fn send(
        &self,
        mut request: axum::http::request::Builder,
        key: &str,
        body: Body,
    ) -> Answer {
        if !key.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(body).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, mut body) = response.into_parts();
        let streams = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind == "text/event-stream");
        let bytes = if streams {
            // It has no end; how it begins is answer enough.
            let first = body.frame().await.unwrap().unwrap();
            first.into_data().unwrap()
        } else {
            body.collect().await.unwrap().to_bytes()
        };
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Answer {
        self.call(Method::GET, path, key, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: Value) -> Answer {
        self.call(Method::POST, path, key, body).await
    }

    /// A key with this scope.
    pub(crate) async fn key(&self, scope: KeyScope) -> String {
        let (_, secret) = ops::key::create(&*self.store, "test", scope).await.unwrap();
        secret.reveal().to_owned()
    }

    /// A workspace with so many slots, a published definition and a key.
    pub(crate) async fn site(&self, limit: u32) -> Site {
        let workspace: WorkspaceId = fresh_id();
        let new = NewWorkspace {
            id: workspace,
            name: format!("workspace {workspace}"),
            plan: Plan::Free,
            limit_override: Some(limit),
        };
        self.store.workspace_create(&new).await.unwrap();
        let definition = self.draft(workspace, "order").await;
        self.publish(workspace, definition, None).await;
        let key = self.key(KeyScope::Workspace(workspace)).await;
        Site {
            workspace,
            definition,
            key,
        }
    }

    /// A definition without a version.
    pub(crate) async fn draft(&self, workspace: WorkspaceId, name: &str) -> DefinitionId {
        let id = fresh_id();
        let new = NewDefinition {
            id,
            workspace,
            name: name.to_owned(),
        };
        self.store.definition_create(&new).await.unwrap();
        id
    }

    /// Publishes a version with this graph.
    pub(crate) async fn publish_graph(&self, site: &Site, graph: Value) {
        let versions = site.path(&format!("/definitions/{}/versions", site.definition));
        let version = json!({ "body": { "graph": graph } });
        self.post(&versions, &site.key, version).await.expect(201);
    }

    /// Publishes a version that binds to a workflow.
    pub(crate) async fn publish(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        params_schema: Option<Value>,
    ) {
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: VersionBody::Binding {
                workflow_type: "Order".to_owned(),
                task_queue: "orders".to_owned(),
            },
            params_schema,
            execution_timeout: None,
        };
        self.store.version_publish(&new).await.unwrap().unwrap();
    }

    /// Every item of a list, read in pages of `limit`; `path` may have a query.
    pub(crate) async fn all_pages(&self, path: &str, key: &str, limit: u32) -> Vec<Value> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}{joint}limit={limit}{next}");
            let page = self.get(&page, key).await.expect(200);
            let rows = page["items"].as_array().unwrap();
            assert!(rows.len() <= limit as usize);
            items.extend(rows.iter().cloned());
            match page["next"].as_str() {
                Some(after) => next = format!("&after={after}"),
                None => return items,
            }
        }
    }
}

/// The body of a request to enqueue.
pub(crate) fn order(site: &Site) -> Value {
    json!({"definition": site.definition, "params": {"n": 1}})
}

/// A database made from the migrated template.
async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = MIGRATIONS
        .iter()
        .fold(0i64, |hash, m| hash.rotate_left(7) ^ m.checksum());
    let name = format!("leasehold_{:016x}", hash.cast_unsigned());
    let template = server.template_database(&name, |url| async move {
        let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
        store.schema_migrate().await.unwrap();
    });
    server.fresh_database(Some(&template.await)).await
}
