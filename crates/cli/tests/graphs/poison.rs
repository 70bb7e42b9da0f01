//! A request whose input crashes the server is poisoned after three crashes, and its neighbours complete. Killed servers poison none.

use crate::TIMEOUT;
use crate::assertions;
use crate::flow::{self, QUEUE};
use crate::server::Server;
use crate::workers::WorkerPool;
use leasehold_client::Client;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::job::ClaimOptions;
use leasehold_client::api::request::{CancelOptions, NewRequest, NewRequests, Request};
use leasehold_client::api::workspace::{NewWorkspace, WorkspaceChange};
use leasehold_core::{
    DefinitionId, FailureReason, Plan, RequestId, RequestStatus, VersionBody, WorkspaceId,
};
use leasehold_crash_marker::{
    BLOCK_FAILPOINT_VARIABLE, BLOCKED, CLAIM_FAILPOINT_VARIABLE, FAILPOINT_VARIABLE,
};
use leasehold_testkit::{TestPostgres, eventually, temp_dir};
use serde_json::{Value, json};
use std::cell::RefCell;

/// In the params of the request that crashes the server.
const PLANTED: &str = "planted-to-crash";
const CRASHING: &[(&str, &str)] = &[(FAILPOINT_VARIABLE, PLANTED)];
const CRASHING_CLAIMS: &[(&str, &str)] = &[(CLAIM_FAILPOINT_VARIABLE, PLANTED)];
/// Enqueues without starting anything.
const NO_DISPATCH: &[(&str, &str)] = &[("LEASEHOLD__ENGINE__ENABLED", "false")];
/// More crashes than a poisoned request may cause: three alone, and those with others beside it.
const MOST_CRASHES: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_that_crashes_the_server_is_poisoned_alone_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    // One thread computes, so the request is alone each time.
    assert_eq!(poison_at_start(&url).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_that_crashes_the_server_is_poisoned_alone_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let crashes = poison_at_start(database.url()).await;
    // At the first crash others may have been computed beside it.
    assert!((3..=4).contains(&crashes), "{crashes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_execution_that_crashes_the_server_is_poisoned_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    poison_at_a_later_node(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_execution_that_crashes_the_server_is_poisoned_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    poison_at_a_later_node(database.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payload_that_crashes_the_server_at_a_claim_poisons_its_request_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    poison_at_a_claim(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payload_that_crashes_the_server_at_a_claim_poisons_its_request_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    poison_at_a_claim(database.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_servers_poison_no_request_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    kill_three_times(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_servers_poison_no_request_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    kill_three_times(database.url()).await;
}

/// A workspace with a graph.
struct FlowWorkspace {
    client: Client,
    key: String,
    workspace: WorkspaceId,
    definition: DefinitionId,
}

impl FlowWorkspace {
    async fn create(server: &Server, graph: Value, limit: u32) -> Self {
        let (client, key) = (server.admin(), server.admin_key());
        let new = NewWorkspace {
            name: "poison".to_owned(),
            plan: Plan::Pro,
            max_concurrent_executions: Some(limit),
        };
        let workspace = client.workspace_create(&new).await.unwrap().id;
        let new = NewDefinition {
            name: "flow".to_owned(),
        };
        let definition = client.definition_create(workspace, &new).await.unwrap().id;
        let new = NewVersion {
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            params_schema: None,
            execution_timeout_ms: None,
        };
        let published = client.version_publish(workspace, definition, &new).await;
        published.unwrap();
        Self {
            client,
            key,
            workspace,
            definition,
        }
    }

    /// Enqueues `count` requests, and the planted one among them; returns its id.
    async fn enqueue(&self, count: usize) -> RequestId {
        let params = |at| match at == count / 2 {
            true => json!({"note": PLANTED}),
            false => json!({"number": at}),
        };
        let requests = (0..=count).map(|at| NewRequest::new(self.definition, params(at)));
        let requests = NewRequests {
            requests: requests.collect(),
        };
        let enqueued = self.client.request_enqueue_many(self.workspace, &requests);
        enqueued.await.unwrap()[count / 2].id
    }

    /// Enqueues a request that goes before all others, and lets one more run.
    async fn enqueue_next(&self, note: &str, limit: u32) {
        let request = NewRequest {
            priority: 100,
            ..NewRequest::new(self.definition, json!({"note": note}))
        };
        let enqueued = self.client.request_enqueue(self.workspace, &request);
        enqueued.await.unwrap();
        let change = WorkspaceChange {
            max_concurrent_executions: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        let changed = self.client.workspace_update(self.workspace, &change);
        changed.await.unwrap();
    }

    async fn get(&self, request: RequestId) -> Option<Request> {
        self.client.request_get(self.workspace, request).await.ok()
    }

    async fn is_failed(&self, request: RequestId, client: &Client) -> bool {
        let request = client.request_get(self.workspace, request).await;
        request.is_ok_and(|request| request.status == RequestStatus::Failed)
    }

    /// Waits until the counts of requests satisfy the condition.
    async fn until(&self, what: &str, condition: impl Fn([u64; 5]) -> bool) {
        let counts = async || {
            let state = self.client.workspace_get(self.workspace).await.ok()?;
            let counts = state.requests;
            Some([
                counts.pending,
                counts.claimed,
                counts.dispatched,
                counts.completed,
                counts.failed,
            ])
        };
        let reached = eventually(TIMEOUT, async || counts().await.is_some_and(&condition));
        assert!(reached.await, "{what}: {:?}", counts().await);
    }

    /// Restarts the servers in turn, each when the last one has crashed, until the planted request has failed. Returns the crashes of each.
    async fn crash_until_failed(
        &self,
        planted: RequestId,
        servers: &mut [Server],
        crashing: &[(&str, &str)],
    ) -> Vec<usize> {
        let mut crashes = vec![0; servers.len()];
        for turn in 0..=MOST_CRASHES {
            let at = turn % servers.len();
            servers[at].spawn(crashing);
            let client = Client::new(&servers[at].url(), &self.key).unwrap();
            let server = RefCell::new(&mut servers[at]);
            let settled = eventually(TIMEOUT, async || {
                let runs = server.borrow_mut().is_running();
                !runs || self.is_failed(planted, &client).await
            });
            assert!(settled.await, "the server neither crashes nor goes on");
            if servers[at].is_running() {
                return crashes;
            }
            crashes[at] += 1;
        }
        panic!("still crashing after {crashes:?}: {}", servers[0].log());
    }

    /// Asserts the end of the planted request, and that it can be redriven.
    async fn assert_poisoned(&self, planted: RequestId) {
        let request = self.get(planted).await.unwrap();
        assert_eq!(request.failure_reason, Some(FailureReason::Poisoned.into()));
        let error = request.last_error.unwrap_or_default();
        assert!(error.contains("crashed 3 times in a row"), "{error}");
        let reason = Some(FailureReason::Poisoned);
        let letters = self.client.dead_letter_list(self.workspace, reason, None);
        let letters: Vec<RequestId> = letters
            .all()
            .await
            .unwrap()
            .iter()
            .map(|request| request.id)
            .collect();
        assert_eq!(letters, [planted], "and no other");
    }
}

fn delays() -> Value {
    let delay = |id: &str| json!({"id": id, "type": "delay", "milliseconds": 10});
    json!({"nodes": [delay("a"), delay("b")], "edges": [{"from": "a", "to": "b"}]})
}

fn tasks() -> Value {
    let retry = json!({"max_attempts": 1000, "base_ms": 50, "max_ms": 500});
    let task = |id: &str| json!({"id": id, "type": "task", "queue": QUEUE, "kind": "work", "input": id, "retry": retry});
    json!({"nodes": [task("a"), task("b")], "edges": [{"from": "a", "to": "b"}]})
}

/// Returns how often the server crashed.
async fn poison_at_start(store: &str) -> usize {
    const NEIGHBOURS: usize = 20;
    let mut server = Server::new(store);
    server.spawn(NO_DISPATCH);
    server.until_running();
    let target = FlowWorkspace::create(&server, delays(), 10).await;
    let planted = target.enqueue(NEIGHBOURS).await;
    server.stop();

    let mut servers = [server];
    let crashes = target
        .crash_until_failed(planted, &mut servers, CRASHING)
        .await[0];
    target
        .until("neighbours complete", |[_, _, _, completed, failed]| {
            (completed, failed) == (NEIGHBOURS as u64, 1)
        })
        .await;
    target.assert_poisoned(planted).await;
    let [server] = &mut servers;
    assert!(server.is_running());
    server.stop();

    server.start(None);
    let redriven = target
        .client
        .request_redrive(target.workspace, planted)
        .await;
    redriven.unwrap();
    target
        .until("the redrive completes", |[_, _, _, completed, _]| {
            completed == NEIGHBOURS as u64 + 1
        })
        .await;
    server.stop();
    crashes
}

async fn poison_at_a_later_node(store: &str) {
    const NEIGHBOURS: usize = 6;
    let mut server = Server::new(store);
    server.start(None);
    let target = FlowWorkspace::create(&server, tasks(), 100).await;
    let worker_key = flow::worker_key(&target.client).await;
    let planted = target.enqueue(NEIGHBOURS).await;
    target
        .until("all run", |[_, _, dispatched, _, _]| {
            dispatched == NEIGHBOURS as u64 + 1
        })
        .await;
    server.stop();

    let mut pool = WorkerPool::new(server.url(), &worker_key);
    let mut servers = [server];
    let crashes = target
        .crash_until_failed(planted, &mut servers, CRASHING)
        .await;
    assert!(crashes[0] >= 3, "{crashes:?}");
    target
        .until("neighbours complete", |[_, _, _, completed, failed]| {
            (completed, failed) == (NEIGHBOURS as u64, 1)
        })
        .await;
    target.assert_poisoned(planted).await;
    pool.stop().await;
    servers[0].stop();
}

/// One claim builds the payloads of all requests; the crash counts for the one whose payload was being built.
async fn poison_at_a_claim(store: &str) {
    const NEIGHBOURS: usize = 6;
    let mut server = Server::new(store);
    server.spawn(CRASHING_CLAIMS);
    server.until_running();
    let target = FlowWorkspace::create(&server, tasks(), 100).await;
    let worker_key = flow::worker_key(&target.client).await;
    let planted = target.enqueue(NEIGHBOURS).await;
    target
        .until("all run", |[_, _, dispatched, _, _]| {
            dispatched == NEIGHBOURS as u64 + 1
        })
        .await;
    let worker = Client::new(&server.url(), &worker_key).unwrap();
    let claim = ClaimOptions {
        worker: "one claim".to_owned(),
        max: 100,
        lease_ms: Some(5_000),
        wait_ms: 0,
    };
    worker.job_claim(QUEUE, &claim).await.unwrap_err();
    let server_cell = RefCell::new(&mut server);
    let crashed = eventually(TIMEOUT, async || !server_cell.borrow_mut().is_running());
    assert!(crashed.await, "the claim does not crash the server");

    // The next two servers build the payload first of all, and crash again.
    let mut servers = [server];
    let crashes = target.crash_until_failed(planted, &mut servers, CRASHING_CLAIMS);
    assert_eq!(crashes.await, [2]);
    let mut pool = WorkerPool::new(servers[0].url(), &worker_key);
    target
        .until("neighbours complete", |[_, _, _, completed, failed]| {
            (completed, failed) == (NEIGHBOURS as u64, 1)
        })
        .await;
    target.assert_poisoned(planted).await;
    let noted = "a process crashed while it computed the input of a request";
    let log = servers[0].log();
    let noted: Vec<&str> = log.lines().filter(|line| line.contains(noted)).collect();
    let names_planted = |line: &&str| line.contains(&planted.to_string());
    assert!(
        !noted.is_empty() && noted.iter().all(names_planted),
        "{noted:?}"
    );
    pool.stop().await;
    servers[0].stop();
}

/// Two servers with data directories of their own crash in turn: neither three times, both together three times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_count_crashes_together() {
    let database = TestPostgres::shared().fresh_database(None).await;
    let mut servers = [Server::new(database.url()), Server::new(database.url())];
    servers[0].spawn(NO_DISPATCH);
    servers[0].until_running();
    let target = FlowWorkspace::create(&servers[0], delays(), 10).await;
    let planted = target.enqueue(0).await;
    servers[0].stop();

    let crashes = target
        .crash_until_failed(planted, &mut servers, CRASHING)
        .await;
    assert!(crashes.iter().all(|crashes| *crashes <= 2), "{crashes:?}");
    assert!(crashes.iter().sum::<usize>() >= 3, "{crashes:?}");
    let store = assertions::open(database.url()).await;
    let request = store.request_find(planted).await.unwrap().unwrap();
    assert_eq!(request.failure_reason, Some(FailureReason::Poisoned.into()));
}

/// Fifty requests in every status, a server that is killed three times in a row while it computes the input of one of them: all complete that were not
/// cancelled. Two of the kills hit the same input, the second time while it is computed alone.
async fn kill_three_times(store: &str) {
    const REQUESTS: u64 = 50;
    const LIMIT: u32 = 20;
    let mut server = Server::new(store);
    server.start(None);
    let target = FlowWorkspace::create(&server, tasks(), LIMIT).await;
    let worker_key = flow::worker_key(&target.client).await;
    let requests = (0..REQUESTS)
        .map(|at| NewRequest::new(target.definition, json!({"number": at})))
        .collect();
    let (client, requests) = (&target.client, NewRequests { requests });
    let enqueued = client.request_enqueue_many(target.workspace, &requests);
    let enqueued = enqueued.await.unwrap();
    assert_eq!(enqueued.len() as u64, REQUESTS);
    let cancelled = enqueued[enqueued.len() - 1].id;
    let options = CancelOptions { force: false };
    let ended = client.request_cancel(target.workspace, cancelled, options);
    ended.await.unwrap();
    let mut pool = WorkerPool::new(server.url(), &worker_key);
    target
        .until("one completes", |[_, _, _, completed, _]| completed > 0)
        .await;
    pool.stop().await;
    target
        .until("as many run as may", |[_, _, dispatched, _, _]| {
            dispatched == u64::from(LIMIT)
        })
        .await;
    server.stop();

    // The held request waits for its slot until it is the next one.
    for (held, limit) in [
        ("held-1", Some(LIMIT + 1)),
        ("held-1", None),
        ("held-2", Some(LIMIT + 2)),
    ] {
        server.spawn(&[(BLOCK_FAILPOINT_VARIABLE, held)]);
        if let Some(limit) = limit {
            server.until_running();
            target.enqueue_next(held, limit).await;
        }
        server.until_line(BLOCKED);
        server.kill();
        let store = assertions::open(store).await;
        let counts = store.request_counts(target.workspace).await.unwrap();
        assert!(counts.pending > 0 && counts.dispatched > 0, "{counts:?}");
        assert!(counts.claimed > 0 && counts.completed > 0, "{counts:?}");
        assert_eq!(counts.failed, 1, "{counts:?}");
    }
    server.start(None);
    let mut pool = WorkerPool::new(server.url(), &worker_key);
    target
        .until("all complete", |[_, _, _, completed, failed]| {
            (completed, failed) == (REQUESTS + 1, 1)
        })
        .await;
    let letters = target.client.dead_letter_list(target.workspace, None, None);
    let letters = letters.all().await.unwrap();
    assert_eq!(letters.len(), 1);
    let reason = letters[0].failure_reason.clone();
    assert_eq!(letters[0].id, cancelled);
    assert_eq!(reason, Some(FailureReason::Cancelled.into()));
    pool.stop().await;
    server.stop();
}
