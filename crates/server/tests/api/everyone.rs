//! One of everything in the store, and a key of every kind.

use axum::body::Body;
use axum::http::{Method, Request, header};
use leasehold_api::Problem;
use leasehold_core::JsonText;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_ops as ops;
use leasehold_store::job::NewJob;
use leasehold_store::request::Claim;
use leasehold_store::{Page, Store};
use leasehold_testbed::{TestResponse, TestServer};
use std::time::Duration;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    WrongKey,
    Garbage,
    Revoked,
    OtherWorkspace,
    OtherWorker,
    Worker,
    Workspace,
    Admin,
}

pub(crate) const ALL: [Who; 9] = [
    Who::Nobody,
    Who::WrongKey,
    Who::Garbage,
    Who::Revoked,
    Who::OtherWorkspace,
    Who::OtherWorker,
    Who::Worker,
    Who::Workspace,
    Who::Admin,
];

/// A server with one of everything in its store.
pub(crate) struct Everyone {
    pub(crate) ground: TestServer,
    /// What stands for each parameter of a path.
    ids: Vec<(&'static str, String)>,
    keys: Vec<(Who, String)>,
}

impl Everyone {
    pub(crate) async fn new() -> Self {
        let ground = TestServer::new().await;
        let (own, other) = (ground.workspace(1).await, ground.workspace(1).await);
        ground.publish_graph(&own, one_task()).await;
        let order = own.order();
        let made = ground.post(&own.path("/requests"), &own.key, order).await;
        let request = made.expect(201)["id"].as_str().unwrap().to_owned();
        let job = NewJob::new("mine", "kind", JsonText::default());
        let job = ops::job::enqueue(&*ground.store, &[job]).await.unwrap()[0].id;
        let versions = ground
            .store
            .version_list(own.workspace, own.definition, Page::first(1));
        let version = versions.await.unwrap()[0].id;
        let revoked = key(&*ground.store, KeyScope::Admin).await;
        let spare = key(&*ground.store, KeyScope::Admin).await;
        ground
            .store
            .key_revoke(revoked.0.parse().unwrap())
            .await
            .unwrap();
        let worker = |queue: &str| KeyScope::Worker {
            queues: vec![queue.to_owned()],
        };
        let strange = Secret::new(&KeyScope::Admin, &[7; 32]);
        Self {
            ids: vec![
                ("workspace", own.workspace.to_string()),
                ("definition", own.definition.to_string()),
                ("version", version.to_string()),
                ("execution", admitted(&*ground.store).await),
                ("node", "a".to_owned()),
                ("request", request),
                ("queue", "mine".to_owned()),
                ("job", job.to_string()),
                ("key", spare.0),
                ("code", "not_found".to_owned()),
            ],
            keys: vec![
                (Who::WrongKey, strange.reveal().to_owned()),
                (Who::Garbage, "lh_admin_x".to_owned()),
                (Who::Revoked, revoked.1),
                (Who::OtherWorkspace, other.key),
                (Who::OtherWorker, ground.key(worker("others")).await),
                (Who::Worker, ground.key(worker("mine")).await),
                (Who::Workspace, own.key),
                (Who::Admin, ground.admin.clone()),
            ],
            ground,
        }
    }

    /// The path with ids in it.
    pub(crate) fn filled(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (name, id) in &self.ids {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        assert!(
            !path.contains('{'),
            "nothing stands for a parameter of {path}"
        );
        path
    }

    /// The id that stands for a parameter.
    pub(crate) fn id(&self, name: &str) -> &str {
        let found = self.ids.iter().find(|(known, _)| *known == name);
        &found.unwrap().1
    }

    /// The status of a call; one that may have a body has an empty document.
    pub(crate) async fn status(&self, method: &str, path: &str, who: Who) -> u16 {
        let body = match method {
            "GET" | "DELETE" => Body::empty(),
            _ => Body::from("{}"),
        };
        let json = "application/json";
        self.send(method, path, who, json, body).await.status
    }

    /// Calls with any body at all.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        who: Who,
        kind: &str,
        body: impl Into<Body>,
    ) -> TestResponse {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let call = Request::builder()
            .method(method)
            .uri(self.filled(path))
            .header(header::CONTENT_TYPE, kind);
        let key = self.keys.iter().find(|(whose, _)| *whose == who);
        let key = key.map_or("", |(_, key)| key);
        self.ground.send(call, key, body.into()).await
    }
}

/// The problem that was answered.
pub(crate) fn problem(answer: &TestResponse) -> Problem {
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem: Problem = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(problem.status, answer.status);
    problem
}

/// A graph of one task, `a`.
pub(crate) fn one_task() -> serde_json::Value {
    serde_json::json!({ "nodes": [{ "id": "a", "type": "task", "queue": "mine" }] })
}

async fn key(store: &dyn Store, scope: KeyScope) -> (String, String) {
    let (key, secret) = ops::key::create(store, "test", scope).await.unwrap();
    (key.id.to_string(), secret.reveal().to_owned())
}

/// Admits the one request there is, and says by which execution.
async fn admitted(store: &dyn Store) -> String {
    let claim = Claim {
        owner: "test".to_owned(),
        batch: 1,
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
