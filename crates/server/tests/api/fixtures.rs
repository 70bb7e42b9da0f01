//! A fixture with one object of every type in the store and a key of every kind.

use axum::body::Body;
use axum::http::{Method, Request, header};
use leasehold_api::Problem;
use leasehold_core::key::{KeyAccess, KeyRights, KeyScope, Payloads, Secret};
use leasehold_core::{JsonText, KeyId, WorkspaceId};
use leasehold_ops as ops;
use leasehold_ops::key::KeySpec;
use leasehold_store::job::NewJob;
use leasehold_store::key::{KeyRotated, KeyRotation, NewKey};
use leasehold_store::request::Claim;
use leasehold_store::{Actor, Page, Store, fresh_id};
use leasehold_testbed::{TestResponse, TestServer};
use std::time::Duration;

/// The kind of key of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerKind {
    NoKey,
    WrongKey,
    Garbage,
    Revoked,
    Expired,
    /// A workspace key that was rotated; its overlap has passed.
    RotatedBefore,
    /// The key of a deleted workspace.
    DeletedWorkspace,
    OtherWorkspace,
    OtherWorker,
    Metrics,
    ReadOnlyWorker,
    ReadOnlyWorkspace,
    ReadOnlyAdmin,
    HiddenWorker,
    HiddenWorkspace,
    HiddenAdmin,
    Worker,
    /// A workspace key that was rotated, in its overlap.
    RotatedNow,
    /// The successor of a workspace key.
    Successor,
    Workspace,
    Admin,
}

pub(crate) const ALL: [CallerKind; 21] = [
    CallerKind::NoKey,
    CallerKind::WrongKey,
    CallerKind::Garbage,
    CallerKind::Revoked,
    CallerKind::Expired,
    CallerKind::RotatedBefore,
    CallerKind::DeletedWorkspace,
    CallerKind::OtherWorkspace,
    CallerKind::OtherWorker,
    CallerKind::Metrics,
    CallerKind::ReadOnlyWorker,
    CallerKind::ReadOnlyWorkspace,
    CallerKind::ReadOnlyAdmin,
    CallerKind::HiddenWorker,
    CallerKind::HiddenWorkspace,
    CallerKind::HiddenAdmin,
    CallerKind::Worker,
    CallerKind::RotatedNow,
    CallerKind::Successor,
    CallerKind::Workspace,
    CallerKind::Admin,
];

/// A server with one object of every type in its store.
pub(crate) struct AccessFixture {
    pub(crate) server: TestServer,
    /// The value of each path parameter.
    ids: Vec<(&'static str, String)>,
    keys: Vec<(CallerKind, String)>,
}

impl AccessFixture {
    pub(crate) async fn new() -> Self {
        let server = TestServer::new().await;
        let (own, other) = (server.workspace(1).await, server.workspace(1).await);
        server.publish_graph(&own, one_task()).await;
        let order = own.order();
        let made = server.post(&own.path("/requests"), &own.key, order).await;
        let request = made.expect(201)["id"].as_str().unwrap().to_owned();
        let job = NewJob::new("mine", "kind", JsonText::default());
        let job = ops::job::enqueue(&*server.store, &[job]).await.unwrap()[0].id;
        let versions = server
            .store
            .version_list(own.workspace, own.definition, Page::first(1));
        let version = versions.await.unwrap()[0].id;
        let revoked = key(&*server.store, KeyScope::Admin).await;
        let spare = key(&*server.store, KeyScope::Admin).await;
        server
            .store
            .key_revoke(revoked.0.parse().unwrap(), &Actor::Local)
            .await
            .unwrap();
        let deleted = server.workspace(1).await;
        let gone = server
            .store
            .workspace_delete(deleted.workspace, &Actor::Local)
            .await;
        assert!(gone.unwrap());
        let worker = |queue: &str| KeyScope::Worker {
            queues: vec![queue.to_owned()],
        };
        let strange = Secret::new(&KeyScope::Admin, &[7; 32]);
        let mut keys = restricted_keys(&*server.store, own.workspace, worker("mine")).await;
        Self {
            ids: vec![
                ("workspace", own.workspace.to_string()),
                ("definition", own.definition.to_string()),
                ("version", version.to_string()),
                ("execution", admit_request(&*server.store).await),
                ("node", "a".to_owned()),
                ("request", request),
                ("queue", "mine".to_owned()),
                ("job", job.to_string()),
                ("key", spare.0),
                ("code", "not_found".to_owned()),
            ],
            keys: {
                keys.extend([
                    (CallerKind::WrongKey, strange.reveal().to_owned()),
                    (CallerKind::Garbage, "lh_admin_x".to_owned()),
                    (CallerKind::Revoked, revoked.1),
                    (CallerKind::DeletedWorkspace, deleted.key),
                    (CallerKind::OtherWorkspace, other.key),
                    (CallerKind::OtherWorker, server.key(worker("others")).await),
                    (CallerKind::Worker, server.key(worker("mine")).await),
                    (CallerKind::Workspace, own.key),
                    (CallerKind::Admin, server.admin.clone()),
                ]);
                keys
            },
            server,
        }
    }

    /// Fills the parameters of a path.
    pub(crate) fn fill_path(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (name, id) in &self.ids {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        assert!(!path.contains('{'), "no value for a parameter of {path}");
        path
    }

    /// Returns the value of a path parameter.
    pub(crate) fn id(&self, name: &str) -> &str {
        let found = self.ids.iter().find(|(known, _)| *known == name);
        &found.unwrap().1
    }

    /// Returns the status of a call; a call that may have a body sends `{}`.
    pub(crate) async fn status(&self, method: &str, path: &str, who: CallerKind) -> u16 {
        let body = match method {
            "GET" | "DELETE" => Body::empty(),
            _ => Body::from("{}"),
        };
        let json = "application/json";
        self.send(method, path, who, json, body).await.status
    }

    /// Sends a call with any body.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        who: CallerKind,
        kind: &str,
        body: impl Into<Body>,
    ) -> TestResponse {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let call = Request::builder()
            .method(method)
            .uri(self.fill_path(path))
            .header(header::CONTENT_TYPE, kind);
        let key = self.keys.iter().find(|(whose, _)| *whose == who);
        let key = key.map_or("", |(_, key)| key);
        self.server.send(call, key, body.into()).await
    }
}

/// Returns the problem of a response.
pub(crate) fn problem(answer: &TestResponse) -> Problem {
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem: Problem = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(problem.status, answer.status);
    problem
}

/// Returns a graph with one task, `a`.
pub(crate) fn one_task() -> serde_json::Value {
    serde_json::json!({ "nodes": [{ "id": "a", "type": "task", "queue": "mine" }] })
}

async fn key(store: &dyn Store, scope: KeyScope) -> (String, String) {
    let spec = KeySpec::full("test", scope);
    let created = ops::key::create(store, &spec, &Actor::Local).await;
    let (key, secret) = created.unwrap();
    (key.id.to_string(), secret.reveal().to_owned())
}

/// Creates a key of every kind that expires, was rotated, only reads or does not see payloads, and one for metrics.
async fn restricted_keys(
    store: &dyn Store,
    workspace: WorkspaceId,
    worker: KeyScope,
) -> Vec<(CallerKind, String)> {
    let own = KeyScope::Workspace(workspace);
    let restricted = |scope: &KeyScope, access, payloads| KeyRights {
        scope: scope.clone(),
        access,
        payloads,
    };
    let read_only = |scope| restricted(scope, KeyAccess::Read, Payloads::Shown);
    let hidden = |scope| restricted(scope, KeyAccess::Full, Payloads::Hidden);
    let hour = Duration::from_secs(3_600);
    let mut keys = Vec::new();
    for (kind, rights) in [
        (CallerKind::Metrics, KeyRights::full(KeyScope::Metrics)),
        (CallerKind::ReadOnlyWorker, read_only(&worker)),
        (CallerKind::ReadOnlyWorkspace, read_only(&own)),
        (CallerKind::ReadOnlyAdmin, read_only(&KeyScope::Admin)),
        (CallerKind::HiddenWorker, hidden(&worker)),
        (CallerKind::HiddenWorkspace, hidden(&own)),
        (CallerKind::HiddenAdmin, hidden(&KeyScope::Admin)),
    ] {
        keys.push((kind, stored_key(store, rights, Some(hour)).await.1));
    }
    let expired = Some(Duration::from_micros(1));
    let full = || KeyRights::full(KeyScope::Workspace(workspace));
    keys.push((
        CallerKind::Expired,
        stored_key(store, full(), expired).await.1,
    ));
    for (overlap, kind) in [
        (Duration::ZERO, CallerKind::RotatedBefore),
        (hour, CallerKind::RotatedNow),
    ] {
        let (id, secret) = stored_key(store, full(), None).await;
        let successor = fresh_secret(&full().scope);
        let rotation = KeyRotation {
            id,
            successor: fresh_id(),
            hash: successor.hash(),
            overlap,
            expires_in: None,
        };
        let rotated = store.key_rotate(&rotation, &Actor::Local).await.unwrap();
        assert!(matches!(rotated, KeyRotated::Rotated { .. }));
        keys.push((kind, secret));
        if kind == CallerKind::RotatedNow {
            keys.push((CallerKind::Successor, successor.reveal().to_owned()));
        }
    }
    keys
}

fn fresh_secret(scope: &KeyScope) -> Secret {
    let id: KeyId = fresh_id();
    let mut random = [7; 32];
    random[..16].copy_from_slice(id.0.as_bytes());
    Secret::new(scope, &random)
}

/// Stores a key without the checks of the operation, which refuses very short lifetimes.
async fn stored_key(
    store: &dyn Store,
    rights: KeyRights,
    expires_in: Option<Duration>,
) -> (KeyId, String) {
    let secret = fresh_secret(&rights.scope);
    let new = NewKey {
        id: fresh_id(),
        name: "test".to_owned(),
        rights,
        expires_in,
        hash: secret.hash(),
    };
    store.key_create(&new, &Actor::Local).await.unwrap();
    (new.id, secret.reveal().to_owned())
}

/// Admits the only request and returns its execution.
async fn admit_request(store: &dyn Store) -> String {
    let claim = Claim {
        owner: "test".to_owned(),
        batch: 1,
        kept_max: None,
        lease: Duration::from_secs(60),
        lock: None,
    };
    match store.request_claim(&claim).await.unwrap() {
        leasehold_store::request::ClaimOutcome::Claimed(claimed) => {
            claimed.requests[0].execution.to_string()
        }
        other => panic!("{other:?}"),
    }
}
