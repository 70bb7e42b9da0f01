//! A failover that loses the last commits, under a running server with an enqueue loop, workers with leases and a change stream.

use crate::TIMEOUT;
use crate::flow::{self, QUEUE};
use crate::server::Server;
use crate::workers::WorkerPool;
use leasehold_client::api::job::{
    ClaimOptions, ClaimedJob, Finish, FinishBatch, FinishState, JobOutcome, NewJob,
};
use leasehold_client::api::problem::Code;
use leasehold_client::api::request::NewRequest;
use leasehold_client::{Client, ClientError};
use leasehold_core::{JsonText, RequestId, RequestStatus, VersionBody};
use leasehold_store::Store;
use leasehold_testbed::{TestWorkspace, WorkspaceOptions, postgres};
use leasehold_testkit::{FailoverPair, eventually};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{JoinHandle, block_in_place};
use tokio_postgres::Client as Connection;

const TOKENS: &str = include_str!("sql/claim_tokens.sql");
/// Requests that are accepted in each phase.
const EACH: usize = 20;
/// Unfinished requests at which the load pauses.
const MAX_OPEN: u64 = 20;
const WORKER: &str = "holder";
const HELD: &str = "held";
/// Outlasts the test.
const LEASE: Duration = Duration::from_secs(3_600);

/// Enqueues one request after the other over HTTP.
struct Load {
    stop: Arc<AtomicBool>,
    promoted: Arc<AtomicBool>,
    task: JoinHandle<Accepted>,
}

/// The requests that the server accepted.
#[derive(Default)]
struct Accepted {
    before: Vec<RequestId>,
    /// Their calls began after the promotion.
    after: Vec<RequestId>,
}

impl Load {
    fn start(client: Client, on: TestWorkspace) -> Self {
        let (stop, promoted): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let (stopped, is_promoted) = (stop.clone(), promoted.clone());
        let task = tokio::spawn(async move {
            let mut accepted = Accepted::default();
            while !stopped.load(Ordering::SeqCst) || accepted.after.len() < EACH {
                let is_after = is_promoted.load(Ordering::SeqCst);
                let request = NewRequest::new(on.definition, json!({}));
                if let Ok(enqueued) = client.request_enqueue(on.workspace, &request).await {
                    match is_after {
                        true => accepted.after.push(enqueued.id),
                        false => accepted.before.push(enqueued.id),
                    }
                }
                let room = async || {
                    let state = client.workspace_get(on.workspace).await;
                    state.is_ok_and(|state| {
                        let counts = state.requests;
                        counts.pending + counts.claimed + counts.dispatched < MAX_OPEN
                    })
                };
                assert!(eventually(TIMEOUT, room).await, "nothing finishes");
            }
            accepted
        });
        Self {
            stop,
            promoted,
            task,
        }
    }

    async fn stop(self) -> Accepted {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

/// Creates a workspace whose requests are one task each.
async fn workspace(store: &dyn Store) -> TestWorkspace {
    let graph = json!({
        "nodes": [{"id": "a", "type": "task", "queue": QUEUE, "kind": "work", "input": "a"}],
        "edges": [],
    });
    let options = WorkspaceOptions {
        limit: Some(1_000),
        body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
        ..WorkspaceOptions::default()
    };
    TestWorkspace::with(store, options).await
}

/// Enqueues a job and claims it for longer than the test takes.
async fn claimed_job(client: &Client) -> ClaimedJob {
    let job = NewJob::new("work", JsonText::default());
    client.job_enqueue(HELD, &job).await.unwrap();
    let claim = ClaimOptions {
        worker: WORKER.to_owned(),
        max: 1,
        lease_ms: Some(LEASE.as_millis() as u64),
        wait_ms: 0,
    };
    let mut claimed = client.job_claim(HELD, &claim).await.unwrap();
    claimed.jobs.remove(0)
}

async fn finished(client: &Client, jobs: &[&ClaimedJob]) -> Vec<FinishState> {
    let finish = |job: &&ClaimedJob| Finish {
        id: job.id,
        token: job.token,
        outcome: JobOutcome::Completed,
        result: None,
        error: None,
        retry: None,
        after_ms: None,
    };
    let batch = FinishBatch {
        worker: WORKER.to_owned(),
        finishes: jobs.iter().map(finish).collect(),
    };
    let results = client.job_finish(&batch).await.unwrap().finished;
    results.into_iter().map(|result| result.state).collect()
}

/// Reads changes until the stream ends, and returns why.
fn read_changes(client: &Client, on: TestWorkspace) -> JoinHandle<ClientError> {
    let mut changes = client.changes(Some(on.workspace));
    tokio::spawn(async move {
        loop {
            if let Err(error) = changes.next().await {
                return error;
            }
        }
    })
}

/// Returns the lowest and the highest token of the claims of these requests.
async fn tokens(client: &Connection, requests: &[RequestId]) -> (i64, i64) {
    let ids: Vec<_> = requests.iter().map(|request| request.0).collect();
    let row = client.query_one(TOKENS, &[&ids]).await.unwrap();
    (row.get("lowest"), row.get("highest"))
}

async fn until_completed(client: &Client, on: TestWorkspace, more: u64) {
    let completed = async || {
        let state = client.workspace_get(on.workspace).await;
        state.map_or(0, |state| state.requests.completed)
    };
    let before = completed().await;
    let done = async || completed().await >= before + more;
    assert!(eventually(TIMEOUT, done).await, "nothing completes");
}

/// Asserts that each of these requests completes, and once.
async fn assert_each_completed_once(store: &dyn Store, on: TestWorkspace, requests: &[RequestId]) {
    let mut executions = HashSet::new();
    for id in requests {
        let completes = async || on.get(store, *id).await.status == RequestStatus::Completed;
        assert!(eventually(TIMEOUT, completes).await, "{id} is lost");
        let request = on.get(store, *id).await;
        assert!(executions.insert(request.execution), "{request:?}");
        let events = on.timeline(store, *id).await;
        let ends = |to| events.iter().filter(|event| event.to == to).count();
        let statuses = [RequestStatus::Completed, RequestStatus::Dispatched].map(ends);
        assert_eq!(statuses, [1, 1], "{events:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failover_under_load_loses_nothing_that_is_accepted_after_it() {
    let mut servers = block_in_place(FailoverPair::start);
    let mut server = Server::new(&servers.url());
    server.start(None);
    let (client, store) = (server.admin(), postgres::store(&servers.url()));
    let on = workspace(&*store).await;
    let mut pool = WorkerPool::new(server.url(), &flow::worker_key(&client).await);
    let load = Load::start(client.clone(), on);
    let reader = read_changes(&client, on);
    until_completed(&client, on, EACH as u64).await;
    let kept = claimed_job(&client).await;

    servers.detach_replica().await;
    let lost = claimed_job(&client).await;
    until_completed(&client, on, EACH as u64).await;
    let primary = servers.primary_client().await;
    let (_, highest) = tokens(&primary, &[]).await;
    let promoted = servers.fail_over().await;
    load.promoted.store(true, Ordering::SeqCst);

    let ended = tokio::time::timeout(TIMEOUT, reader).await.unwrap();
    let ended = ended.unwrap();
    assert_eq!(ended.code(), Some(Code::CursorGone), "{ended}");
    let accepted = load.stop().await;
    assert!(accepted.before.len() >= 2 * EACH);
    assert_each_completed_once(&*store, on, &accepted.after).await;
    let (lowest, _) = tokens(&promoted, &accepted.after).await;
    assert!(lowest > highest, "token {lowest} after {highest}");
    let states = finished(&client, &[&lost, &kept]).await;
    assert_eq!(states, [FinishState::LeaseLost, FinishState::Completed]);
    assert!(claimed_job(&client).await.token > lost.token);
    pool.stop().await;
    server.stop();
}
