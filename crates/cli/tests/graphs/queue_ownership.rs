//! A tenant cannot put a job on another tenant's queue: the attack against the real server, with the first tenant's worker at work.

use crate::TIMEOUT;
use crate::server::Server;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::job::ClaimOptions;
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_client::api::queue::{QueueSharing, SharedWith};
use leasehold_client::api::request::NewRequest;
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_client::api::{Code, Problem};
use leasehold_client::{Client, ClientError};
use leasehold_core::{DefinitionId, Plan, RequestId, RequestStatus, VersionBody, WorkspaceId};
use leasehold_testkit::{TestPostgres, eventually, temp_dir};
use serde_json::{Value, json};
use std::time::Instant;

const QUEUE: &str = "payments";

/// A workspace with its own key.
struct Tenant {
    client: Client,
    workspace: WorkspaceId,
}

impl Tenant {
    async fn new(admin: &Client, url: &str, name: &str) -> Self {
        let new = NewWorkspace {
            name: name.to_owned(),
            plan: Plan::Pro,
            max_concurrent_executions: None,
        };
        let workspace = admin.workspace_create(&new).await.unwrap().id;
        let key = key(admin, Scope::Workspace { workspace }).await;
        Self {
            client: Client::new(url, &key).unwrap(),
            workspace,
        }
    }

    /// Publishes a graph of one task under a new definition.
    async fn publish(&self, queue: &str) -> Result<DefinitionId, ClientError> {
        let new = NewDefinition {
            name: format!("{queue} {}", fastrand::u64(..)),
        };
        let definition = self
            .client
            .definition_create(self.workspace, &new)
            .await?
            .id;
        let node = json!({"id": "a", "type": "task", "queue": queue, "kind": "charge"});
        let graph = json!({"nodes": [node], "edges": []});
        let new = NewVersion {
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            params_schema: None,
            execution_timeout_ms: None,
        };
        let published = self
            .client
            .version_publish(self.workspace, definition, &new);
        published.await.map(|_| definition)
    }

    /// Enqueues a request with `who` in its params.
    async fn run(&self, definition: DefinitionId, who: &str) -> RequestId {
        let request = NewRequest::new(definition, json!({"who": who}));
        let enqueued = self.client.request_enqueue(self.workspace, &request).await;
        enqueued.unwrap().id
    }
}

async fn key(admin: &Client, scope: Scope) -> String {
    let new = NewKey::full("key", scope);
    admin.key_create(&new).await.unwrap().secret
}

fn problem(result: Result<DefinitionId, ClientError>) -> Problem {
    match result {
        Err(ClientError::Problem(problem)) => *problem,
        other => panic!("the graph was not refused: {other:?}"),
    }
}

/// Claims one job over HTTP and returns whose params it has. The job is never finished, so its lease lasts longer than the test.
async fn claim(worker: &Client) -> String {
    let claim = ClaimOptions {
        worker: "acme-worker".to_owned(),
        max: 1,
        lease_ms: Some(3_600_000),
        wait_ms: 30_000,
    };
    let begun = Instant::now();
    loop {
        let claimed = worker.job_claim(QUEUE, &claim).await.unwrap();
        if let Some(job) = claimed.jobs.first() {
            let payload: Value = job.payload.read().unwrap();
            let who = payload["input"]["params"]["who"].as_str();
            return who.unwrap().to_owned();
        }
        assert!(begun.elapsed() < TIMEOUT, "no job arrived");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_of_a_tenant_gets_no_job_of_another_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    attack(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_of_a_tenant_gets_no_job_of_another_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    attack(database.url()).await;
}

async fn attack(store: &str) {
    let mut server = Server::new(store);
    server.start(None);
    let admin = server.admin();
    let acme = Tenant::new(&admin, &server.url(), "acme").await;
    let mallory = Tenant::new(&admin, &server.url(), "mallory").await;
    let queues = vec![QUEUE.to_owned()];
    let worker = key(&admin, Scope::Worker { queues }).await;
    let worker = Client::new(&server.url(), &worker).unwrap();
    let charge = acme.publish(QUEUE).await.unwrap();

    // The attack: a job of a chosen kind on acme's queue.
    let refused = problem(mallory.publish(QUEUE).await);
    let reserved = problem(mallory.publish("leasehold:http").await);
    assert_eq!(refused, reserved);
    assert_eq!(refused.code, Code::Invalid);
    acme.run(charge, "acme").await;
    assert_eq!(claim(&worker).await, "acme");

    // Shared, the queue serves both; once it is no longer shared, mallory's executions fail and acme's go on.
    let sharing = |names: &[&str]| QueueSharing {
        shared_with: SharedWith::Workspaces(names.iter().map(|name| (*name).to_owned()).collect()),
    };
    let shared = admin.queue_share(QUEUE, &sharing(&["mallory"])).await;
    assert_eq!(shared.unwrap().owner, Some(Some("acme".to_owned())));
    let allowed = mallory.publish(QUEUE).await.unwrap();
    mallory.run(allowed, "mallory").await;
    assert_eq!(claim(&worker).await, "mallory");
    admin.queue_share(QUEUE, &sharing(&[])).await.unwrap();
    let request = mallory.run(allowed, "mallory").await;
    let failed = eventually(TIMEOUT, async || {
        let found = mallory.client.request_get(mallory.workspace, request).await;
        found.unwrap().status == RequestStatus::Failed
    });
    assert!(failed.await, "the request did not fail");
    let found = mallory.client.request_get(mallory.workspace, request).await;
    let error = found.unwrap().last_error.unwrap_or_default();
    assert!(error.contains("may not use queue `payments`"), "{error}");
    acme.run(charge, "acme again").await;
    assert_eq!(claim(&worker).await, "acme again");
    server.stop();
}
