//! The tenant whose rows are locked. It is not idle: a worker claims, renews and finishes its tasks all the while; requests wait in its line, end, and are
//! pruned; executions time out; requests are cancelled.

use crate::held_locks::{QUEUE, publish, status, task_graph};
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use leasehold_testkit::{HttpConnection, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::interval;
use tokio_postgres::Client;

const LOCK_KIND: &str = include_str!("sql/lock_kind.sql");
const EXECUTIONS_OF_WORKSPACE: &str = include_str!("sql/executions_of_workspace.sql");
const JOBS_OF_QUEUE: &str = include_str!("sql/jobs_of_queue.sql");
const HELD_QUEUE: &str = include_str!("sql/held_queue.sql");
const ADD_KEPT_KEY: &str = include_str!("sql/add_kept_key.sql");
const ADD_DELTA: &str = include_str!("sql/add_delta.sql");
const ADD_SPENT_NODE: &str = include_str!("sql/add_spent_node.sql");

/// A queue that no worker claims from.
const UNSERVED: &str = "unserved";
/// Requests that the tenant has open at once; more than it may run.
const OPEN: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than the test at full size: one job with a note stays claimed.
const LEASE_MS: u64 = 3_600_000;

/// A table, and which of its rows are locked.
pub(crate) type Kind = (&'static str, &'static str);

/// Every table. A test checks that none is missing.
pub(crate) const KINDS: [Kind; 35] = [
    ("workflow_execution_queue", "workspace_id = '{workspace}'"),
    ("workflow_execution", "workspace_id = '{workspace}'"),
    ("request_event", "workspace_id = '{workspace}'"),
    ("execution_graph", "execution_id IN ({executions})"),
    ("execution_node", "execution_id IN ({executions})"),
    ("node_spent", "execution_id IN ({executions})"),
    ("job", "queue_id IN ({queue})"),
    ("job_lease", "queue_id IN ({queue})"),
    ("job_waiting", "queue_id IN ({queue})"),
    ("job_note", "job_id IN ({jobs})"),
    ("job_key", "queue_id IN ({queue})"),
    ("job_end", "id IN ({jobs})"),
    ("job_cursor", "true"),
    ("job_limit", "true"),
    ("job_line", "true"),
    ("queue", "id IN ({queue})"),
    ("queue_share", "workspace_id = '{workspace}'"),
    ("workspace", "id = '{workspace}'"),
    ("workspace_turn", "workspace_id = '{workspace}'"),
    ("workspace_delta", "workspace_id = '{workspace}'"),
    ("workspace_catalog", "workspace_id = '{workspace}'"),
    ("workflow_definition", "workspace_id = '{workspace}'"),
    (
        "workflow_definition_version",
        "workspace_id = '{workspace}'",
    ),
    ("kept_key", "workspace_id = '{workspace}'"),
    ("api_key", "workspace_id = '{workspace}'"),
    ("audit_entry", "true"),
    ("installation", "true"),
    ("installation_engine", "true"),
    ("request_fold", "true"),
    ("event_partition", "true"),
    ("epoch", "true"),
    ("instance", "true"),
    ("shedlock", "true"),
    ("leasehold_migration", "true"),
    ("leasehold_function", "true"),
];

pub(crate) struct Victim {
    pub(crate) tenant: Tenant,
    /// A connection that adds rows which exist only for a moment.
    operator: Client,
    /// Definitions whose tasks no worker claims: executions of the first time out.
    overdue: String,
    unserved: String,
    tasks: String,
    worker: Worker,
}

impl Victim {
    /// Creates the tenant with rows of every kind, and starts its worker.
    pub(crate) async fn start(served: &ServerProcess, operator: Client) -> Self {
        let tenant = served.tenant("victim", "PRO").await;
        for queue in [QUEUE, UNSERVED] {
            let scheduled = json!({ "kind": "work", "run_in_ms": 3_600_000, "dedup_key": "k" });
            let path = format!("/v1/queues/{queue}");
            served.post(&format!("{path}/jobs"), scheduled).await;
            let sharing = json!({ "shared_with": ["victim"] }).to_string();
            let path = format!("{path}/sharing");
            let shared = served.call("PUT", &path, Some(&sharing)).await;
            assert_eq!(shared.status, 200, "{}", shared.text());
        }
        let tasks = publish(&tenant, &task_graph(QUEUE)).await;
        let mut overdue = task_graph(UNSERVED);
        let unserved = publish(&tenant, &overdue).await;
        overdue["execution_timeout_ms"] = json!(1_500);
        let overdue = publish(&tenant, &overdue).await;
        for _ in 0..2 {
            let path = format!("/v1/queues/{QUEUE}/jobs");
            served.post(&path, json!({ "kind": "work" })).await;
        }
        Self {
            worker: Worker::start(served, &tenant, &tasks).await,
            tenant,
            operator,
            overdue,
            unserved,
            tasks,
        }
    }

    /// Starts an execution that times out soon, and one that runs until it is cancelled. Returns the request of the latter.
    pub(crate) async fn start_phase(&self) -> String {
        self.enqueue(&self.tasks, 0).await;
        let running = self.enqueue(&self.unserved, 100).await;
        let overdue = self.enqueue(&self.overdue, 100).await;
        for request in [&running, &overdue] {
            let started = eventually(TIMEOUT, || async {
                matches!(
                    status(&self.tenant, request).await.as_str(),
                    "DISPATCHED" | "FAILED"
                )
            });
            assert!(started.await, "{request} does not start");
        }
        running
    }

    async fn enqueue(&self, definition: &str, priority: i16) -> String {
        let new = json!({ "definition": definition, "params": {}, "priority": priority });
        let body = new.to_string();
        let answer = self.tenant.call("POST", "/requests", Some(body.as_bytes()));
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
        text(&document(&answer)["id"])
    }

    /// Locks all rows of a kind that no other transaction has locked.
    pub(crate) async fn lock(&self, locker: &Client, (table, condition): Kind) {
        if table == "node_spent" {
            // The node is failed as soon as its graph can be locked.
            self.lock_rows(locker, KINDS[3]).await;
        }
        self.lock_rows(locker, (table, condition)).await;
    }

    async fn lock_rows(&self, locker: &Client, (table, condition): Kind) {
        let condition = condition
            .replace("{executions}", EXECUTIONS_OF_WORKSPACE)
            .replace("{jobs}", JOBS_OF_QUEUE)
            .replace("{queue}", HELD_QUEUE)
            .replace("{workspace}", &self.tenant.workspace);
        let statement = LOCK_KIND
            .replace("{table}", table)
            .replace("{condition}", &condition);
        let locked = eventually(TIMEOUT, || async {
            let add = match table {
                "kept_key" => Some(ADD_KEPT_KEY),
                "workspace_delta" => Some(ADD_DELTA),
                "node_spent" => Some(ADD_SPENT_NODE),
                _ => None,
            };
            if let Some(add) = add {
                let add = add.replace("{workspace}", &self.tenant.workspace);
                self.operator.batch_execute(&add).await.unwrap();
            }
            let row = locker.query_one(&statement, &[]).await.unwrap();
            row.get::<_, i64>("locked") > 0
        });
        assert!(locked.await, "no {table} is locked");
    }

    /// Cancels this request, and the newest one that waits, in as many calls at once. They wait for locked rows.
    pub(crate) async fn cancel(&self, running: &str, calls: usize) -> Vec<JoinHandle<()>> {
        let list = self
            .tenant
            .call("GET", "/requests?status=PENDING&limit=1", None);
        let list = document(&list.await.unwrap());
        let waiting = list["items"][0]["id"].as_str().unwrap_or(running);
        let tasks = (0..calls).map(|number| {
            let request = [running, waiting][number % 2].to_owned();
            tokio::spawn(cancel(self.tenant.clone(), request))
        });
        tasks.collect()
    }

    /// Stops the worker. Fails if it lost a lease, or finished nothing.
    pub(crate) async fn stop(self) {
        let finished = self.worker.stop().await;
        println!("the tenant with locked rows finished {finished} tasks");
        assert!(finished > 0);
    }
}

pub(crate) async fn cancel(tenant: Tenant, request: String) {
    let tail = format!("/requests/{request}/cancel");
    let answer = tenant.call("POST", &tail, Some(b"{}")).await.unwrap();
    // Not found: it has ended and is pruned.
    let expected = matches!(answer.status, 200 | 202 | 404 | 409 | 503);
    assert!(expected, "{}: {}", answer.status, answer.text());
}

/// Claims, renews and finishes the tenant's tasks.
struct Worker {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Worker {
    async fn start(served: &ServerProcess, tenant: &Tenant, definition: &str) -> Self {
        let key = served.worker(QUEUE).await.key;
        let stop = Arc::new(AtomicBool::new(false));
        let worker = WorkerLoop {
            worker: Tenant {
                key,
                ..tenant.clone()
            },
            tenant: tenant.clone(),
            enqueue: json!({ "definition": definition, "params": {} }).to_string(),
            held: Vec::new(),
            finished: 0,
        };
        // The first two jobs stay: one with a note, and one that has failed.
        let claimed = worker.claim(2).await;
        assert_eq!(claimed.len(), 2, "{claimed:?}");
        let mut note = claim_of(&claimed[0]);
        note["progress"] = json!("half");
        let noted = worker.call("/v1/jobs/progress", note).await;
        assert_eq!(noted.map(|answer| answer["held"] == true), Some(true));
        let mut failed = claim_of(&claimed[1]);
        failed["outcome"] = json!("failed");
        failed["error"] = json!("no");
        failed["retry"] = json!(false);
        let ended = worker
            .call("/v1/jobs/finish", json!({ "finishes": [failed] }))
            .await;
        assert_eq!(ended.unwrap()["finished"][0]["state"], "failed");
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(worker.run(stopped));
        Self { stop, task }
    }

    async fn stop(self) -> usize {
        self.stop.store(true, Ordering::Release);
        self.task.await.unwrap()
    }
}

/// The claim of a job, as JSON.
fn claim_of(job: &Value) -> Value {
    json!({ "id": job["id"], "token": job["token"] })
}

struct WorkerLoop {
    /// The worker's key; the path of the tenant is not used.
    worker: Tenant,
    tenant: Tenant,
    enqueue: String,
    held: Vec<Value>,
    finished: usize,
}

impl WorkerLoop {
    /// Calls as the worker. Returns none if the store is unavailable, as it may be to this tenant.
    async fn call(&self, path: &str, mut body: Value) -> Option<Value> {
        body["worker"] = json!("victim");
        let body = body.to_string();
        let mut connection = HttpConnection::open(self.worker.address).await.unwrap();
        let call = connection.call("POST", path, &self.worker.key, Some(body.as_bytes()));
        let answer = call.await.unwrap();
        match answer.status {
            200 => Some(document(&answer)),
            503 => None,
            status => panic!("{path}: {status} {}", answer.text()),
        }
    }

    async fn claim(&self, max: usize) -> Vec<Value> {
        let claim = json!({ "max": max, "lease_ms": LEASE_MS, "wait_ms": 0 });
        let claimed = self.call(&format!("/v1/queues/{QUEUE}/claim"), claim).await;
        let claimed = claimed.and_then(|answer| answer["jobs"].as_array().cloned());
        claimed.unwrap_or_default()
    }

    async fn run(mut self, stop: Arc<AtomicBool>) -> usize {
        for _ in 0..OPEN {
            self.enqueue().await;
        }
        let mut pace = interval(Duration::from_millis(50));
        while !stop.load(Ordering::Acquire) {
            pace.tick().await;
            let claimed = self.claim(4).await;
            self.held.extend(claimed.iter().map(claim_of));
            if self.held.is_empty() {
                continue;
            }
            let renewal = json!({ "claims": self.held, "lease_ms": LEASE_MS });
            if let Some(renewed) = self.call("/v1/jobs/renew", renewal).await {
                let kept =
                    ["held", "busy"].map(|field| renewed[field].as_array().map_or(0, Vec::len));
                assert_eq!(kept.iter().sum::<usize>(), self.held.len(), "{renewed}");
            }
            self.finish().await;
        }
        self.finished
    }

    async fn finish(&mut self) {
        let finish = |claim: &Value| {
            let mut finish = claim.clone();
            finish["outcome"] = json!("completed");
            finish
        };
        let finishes: Vec<Value> = self.held.iter().map(finish).collect();
        let body = json!({ "finishes": finishes });
        let Some(finished) = self.call("/v1/jobs/finish", body).await else {
            return;
        };
        let states = finished["finished"].as_array().cloned().unwrap_or_default();
        let before = self.held.len();
        let mut states = states.iter().map(|one| text(&one["state"]));
        self.held.retain(|_| {
            let state = states.next().unwrap();
            assert!(
                matches!(state.as_str(), "completed" | "not_written"),
                "{state}"
            );
            state == "not_written"
        });
        for _ in self.held.len()..before {
            self.finished += 1;
            self.enqueue().await;
        }
    }

    async fn enqueue(&self) {
        let call = self
            .tenant
            .call("POST", "/requests", Some(self.enqueue.as_bytes()));
        let answer = call.await.unwrap();
        assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
    }
}
