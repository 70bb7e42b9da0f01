//! A forgotten transaction holds row locks on one tenant's rows, while two other tenants work: locks of each kind alone, then of all kinds together; then of
//! a tenant whose jobs are in one page of leases with those of others.

use crate::ALONE;
use crate::locks::connect;
use crate::neighbour::{Measured, Neighbour, short_graph};
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use leasehold_testkit::{TestPostgres, eventually, sized, temp_dir};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_postgres::Client;

const LOCK_KIND: &str = include_str!("sql/lock_kind.sql");
const HOLD_LOCK: &str = include_str!("sql/hold_lock.sql");
const ANOTHER_LOCK: &str = include_str!("sql/another_lock.sql");

const QUEUE: &str = "held";
/// Executions of the tenant whose rows are locked.
const EXECUTIONS: usize = 3;
/// How long the two tenants run without locks first.
const QUIET_SECONDS: f64 = 2.0;
/// Slower calls than this have waited for a lock.
const PROMPT: Duration = Duration::from_millis(800);

/// The tables whose rows are locked, and which of their rows.
const KINDS: [(&str, &str); 18] = [
    ("workflow_execution_queue", "id = '{request}'"),
    ("workflow_execution", "request_id = '{request}'"),
    ("request_event", "request_id = '{request}'"),
    ("execution_graph", "execution_id = '{execution}'"),
    ("execution_node", "execution_id = '{execution}'"),
    ("job", "execution_id = '{execution}'"),
    ("job_lease", "token = {page}"),
    ("job_cursor", "true"),
    ("job_limit", "true"),
    ("queue", "name = '{queue}'"),
    ("workspace", "id = '{workspace}'"),
    ("workspace_turn", "workspace_id = '{workspace}'"),
    ("workflow_definition", "workspace_id = '{workspace}'"),
    (
        "workflow_definition_version",
        "workspace_id = '{workspace}'",
    ),
    ("api_key", "workspace_id = '{workspace}'"),
    ("request_fold", "true"),
    ("instance", "true"),
    ("shedlock", "name = 'another'"),
];
/// Kinds that are locked at once. A full run locks one after the other.
fn group() -> usize {
    sized(3, 1)
}

/// How long the locks of some kinds, or of all, are held.
fn hold_seconds() -> f64 {
    sized(1.2, 30.0)
}

/// What the locks are taken on.
struct Victim {
    tenant: Tenant,
    request: String,
    execution: String,
    /// The token of a page of leases.
    page: i64,
}

impl Victim {
    async fn lock(&self, operator: &Client, (table, condition): (&str, &str)) {
        let condition = condition
            .replace("{request}", &self.request)
            .replace("{execution}", &self.execution)
            .replace("{workspace}", &self.tenant.workspace)
            .replace("{page}", &self.page.to_string())
            .replace("{queue}", QUEUE);
        let statement = LOCK_KIND
            .replace("{table}", table)
            .replace("{condition}", &condition);
        let row = operator.query_one(&statement, &[]).await.unwrap();
        assert!(row.get::<_, i64>("locked") > 0, "no {table} is locked");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_rows_of_every_kind_fail_and_delay_nothing_of_other_tenants() {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &[]);
    let operator = connect(&database).await;
    operator.batch_execute(ANOTHER_LOCK).await.unwrap();
    let tenant = served.tenant("victim", "ENTERPRISE").await;
    let definition = publish(&tenant, &task_graph()).await;
    let requests = start_tasks(&served, &tenant, &definition, EXECUTIONS).await;
    let jobs = claim_jobs(&served, 1).await;
    let victim = Victim {
        execution: execution(&tenant, &requests[0]).await,
        request: requests[0].clone(),
        page: jobs[0]["token"].as_i64().unwrap(),
        tenant,
    };
    let mut others = Vec::new();
    for name in ["first", "second"] {
        let tenant = served.tenant(name, "PRO").await;
        let definition = publish(&tenant, &short_graph()).await;
        others.push((tenant, definition));
    }

    let quiet = measure(&others, &operator, QUIET_SECONDS).await;
    for kinds in KINDS.chunks(group()) {
        operator.batch_execute("BEGIN").await.unwrap();
        for kind in kinds {
            victim.lock(&operator, *kind).await;
        }
        let held = measure(&others, &operator, hold_seconds()).await;
        operator.batch_execute("ROLLBACK").await.unwrap();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.0).collect();
        assert_undisturbed(&names.join(", "), &quiet, &held, hold_seconds());
    }

    operator.batch_execute("BEGIN").await.unwrap();
    for kind in KINDS {
        victim.lock(&operator, kind).await;
    }
    // These wait for the locked request.
    let cancels: Vec<_> = (0..20)
        .map(|_| {
            let (tenant, tail) = (
                victim.tenant.clone(),
                format!("/requests/{}/cancel", victim.request),
            );
            tokio::spawn(async move { tenant.call("POST", &tail, Some(b"{}")).await.unwrap() })
        })
        .collect();
    let seconds = hold_seconds() * 2.0;
    let held = measure(&others, &operator, seconds).await;
    operator.batch_execute("ROLLBACK").await.unwrap();
    for cancel in cancels {
        let answer = cancel.await.unwrap();
        let expected = matches!(answer.status, 200 | 202 | 409 | 503);
        assert!(expected, "{}: {}", answer.status, answer.text());
    }
    assert_undisturbed("all kinds", &quiet, &held, seconds);
    assert_recovered(&victim.tenant, &requests).await;
    assert!(served.is_running(), "{}", served.log());
    served.stop();
}

/// A worker claims jobs of all tenants that share its queue, up to 64 into one page of leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_row_of_one_tenant_does_not_delay_jobs_of_others_in_its_page_of_leases() {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &[]);
    let operator = connect(&database).await;
    let path = format!("/v1/queues/{QUEUE}/sharing");
    let shared = served.call("PUT", &path, Some(r#"{"shared_with": "all"}"#));
    let shared = shared.await;
    assert_eq!(shared.status, 200, "{}", shared.text());
    let mut tenants = Vec::new();
    for name in ["victim", "first", "second"] {
        let tenant = served.tenant(name, "PRO").await;
        let definition = publish(&tenant, &task_graph()).await;
        let requests = start_tasks(&served, &tenant, &definition, 2).await;
        tenants.push((tenant, requests));
    }
    let jobs = claim_jobs(&served, 6).await;
    assert_eq!(jobs.len(), 6);
    assert!(jobs.iter().all(|job| job["token"] == jobs[0]["token"]));
    let (tenant, requests) = tenants[0].clone();
    let victim = Victim {
        execution: execution(&tenant, &requests[0]).await,
        request: requests[0].clone(),
        page: jobs[0]["token"].as_i64().unwrap(),
        tenant,
    };

    // While the page is locked, nothing of it is written and nothing of it is lost.
    operator.batch_execute("BEGIN").await.unwrap();
    victim.lock(&operator, KINDS[6]).await;
    let renewed = renew(&served, &jobs).await;
    assert_eq!((renewed["held"].as_array().map(Vec::len)), Some(0));
    assert_eq!((renewed["busy"].as_array().map(Vec::len)), Some(6));
    assert_eq!(finish(&served, &jobs).await, ["not_written"; 6]);
    operator.batch_execute("ROLLBACK").await.unwrap();

    operator.batch_execute("BEGIN").await.unwrap();
    victim.lock(&operator, KINDS[0]).await;
    let begun = Instant::now();
    let states = finish(&served, &jobs).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    let count = |state: &str| states.iter().filter(|one| *one == state).count();
    assert_eq!((count("completed"), count("not_written")), (5, 1));
    for (tenant, requests) in &tenants {
        for request in requests.iter().filter(|one| **one != victim.request) {
            assert_eq!(status(tenant, request).await, "COMPLETED");
        }
    }
    let renewed = renew(&served, &jobs).await;
    assert_eq!((renewed["held"].as_array().map(Vec::len)), Some(1));
    let seconds = sized(2.0, 30.0);
    operator.query_one(HOLD_LOCK, &[&seconds]).await.unwrap();
    operator.batch_execute("ROLLBACK").await.unwrap();
    let states = finish(&served, &jobs).await;
    let count = |state: &str| states.iter().filter(|one| *one == state).count();
    assert_eq!((count("completed"), count("lease_lost")), (1, 5));
    assert_eq!(status(&victim.tenant, &victim.request).await, "COMPLETED");
    served.stop();
}

/// Runs the tenants while the database sleeps for so long. Every call of theirs must succeed.
async fn measure(others: &[(Tenant, String)], operator: &Client, seconds: f64) -> Vec<Measured> {
    let working: Vec<Neighbour> = others
        .iter()
        .map(|(tenant, definition)| Neighbour::start(tenant, definition))
        .collect();
    operator.query_one(HOLD_LOCK, &[&seconds]).await.unwrap();
    let mut measured = Vec::new();
    for one in working {
        measured.push(one.stop().await);
    }
    measured
}

/// Checks that no call of the tenants waited, and that their executions ran.
fn assert_undisturbed(kinds: &str, quiet: &[Measured], held: &[Measured], seconds: f64) {
    for (quiet, held) in quiet.iter().zip(held) {
        println!(
            "{kinds}: slowest call {:?}, without locks {:?}; p99 {:?}, without locks {:?}; {} executions",
            held.slowest(),
            quiet.slowest(),
            held.p99(),
            quiet.p99(),
            held.completed
        );
        // On a machine that is busy with other tests, calls take longer without any lock.
        assert!(held.slowest() < PROMPT.max(quiet.slowest() * 3), "{kinds}");
        let (before, beside) = (
            quiet.completed as f64 / QUIET_SECONDS,
            held.completed as f64 / seconds,
        );
        assert!(beside > before / 4.0, "{kinds}: {beside}/s, {before}/s");
    }
}

async fn publish(tenant: &Tenant, version: &Value) -> String {
    let definition = tenant.define("graph").await;
    let published = tenant.publish(&definition, version).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());
    definition
}

/// A graph of one task, which waits for a worker.
fn task_graph() -> Value {
    let task = json!({ "id": "a", "type": "task", "queue": QUEUE, "kind": "work" });
    json!({ "body": { "graph": { "nodes": [task], "edges": [] } } })
}

async fn read(tenant: &Tenant, request: &str) -> Value {
    let tail = format!("/requests/{request}");
    let read = tenant.call("GET", &tail, None).await.unwrap();
    assert_eq!(read.status, 200, "{}", read.text());
    document(&read)
}

async fn status(tenant: &Tenant, request: &str) -> String {
    text(&read(tenant, request).await["status"])
}

async fn execution(tenant: &Tenant, request: &str) -> String {
    text(&read(tenant, request).await["execution"])
}

/// Starts executions and returns their requests.
async fn start_tasks(
    served: &ServerProcess,
    tenant: &Tenant,
    definition: &str,
    count: usize,
) -> Vec<String> {
    let mut requests = Vec::new();
    for _ in 0..count {
        let enqueued = tenant.enqueue(definition, "{}").await.unwrap();
        assert_eq!(enqueued.status, 201, "{}", enqueued.text());
        requests.push(text(&document(&enqueued)["id"]));
    }
    for request in &requests {
        let started = eventually(Duration::from_secs(30), || async {
            status(tenant, request).await == "DISPATCHED"
        });
        assert!(started.await, "{}", served.log());
    }
    requests
}

/// Calls as a worker.
async fn work(served: &ServerProcess, path: &str, mut body: Value) -> Value {
    body["worker"] = json!("w");
    let answer = served.call("POST", path, Some(&body.to_string())).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    document(&answer)
}

async fn claim_jobs(served: &ServerProcess, max: u32) -> Vec<Value> {
    let claim = json!({ "max": max, "lease_ms": 600_000, "wait_ms": 0 });
    let claimed = work(served, &format!("/v1/queues/{QUEUE}/claim"), claim).await;
    claimed["jobs"].as_array().unwrap().clone()
}

async fn renew(served: &ServerProcess, jobs: &[Value]) -> Value {
    let claim = |job: &Value| json!({ "id": job["id"], "token": job["token"] });
    let claims: Vec<Value> = jobs.iter().map(claim).collect();
    let renewal = json!({ "claims": claims, "lease_ms": 600_000 });
    work(served, "/v1/jobs/renew", renewal).await
}

/// Completes jobs and returns their states.
async fn finish(served: &ServerProcess, jobs: &[Value]) -> Vec<String> {
    let finish =
        |job: &Value| json!({ "id": job["id"], "token": job["token"], "outcome": "completed" });
    let finishes: Vec<Value> = jobs.iter().map(finish).collect();
    let body = json!({ "finishes": finishes });
    let finished = work(served, "/v1/jobs/finish", body).await;
    let finished = finished["finished"].as_array().unwrap();
    finished.iter().map(|one| text(&one["state"])).collect()
}

/// Checks that the tenant's executions still run, except for the cancelled one, and that it can start another.
async fn assert_recovered(victim: &Tenant, requests: &[String]) {
    for request in &requests[1..] {
        assert_eq!(status(victim, request).await, "DISPATCHED");
    }
    let definition = victim.define("later").await;
    let published = victim.publish(&definition, &short_graph()).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());
    let enqueued = victim.enqueue(&definition, "{}").await.unwrap();
    assert_eq!(enqueued.status, 201, "{}", enqueued.text());
    let request = text(&document(&enqueued)["id"]);
    let completed = eventually(Duration::from_secs(30), || async {
        status(victim, &request).await == "COMPLETED"
    });
    assert!(completed.await, "the tenant's next execution does not run");
}
