//! A forgotten transaction holds row locks on one tenant's rows, while it and two other tenants work: locks of some kinds, then of all kinds together; then
//! of a tenant whose jobs are in one page of leases with those of others.

use crate::ALONE;
use crate::locks::{TRIES, connect};
use crate::neighbour::{Measured, Neighbour, short_graph};
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use crate::victim::{KINDS, Victim, cancel};
use leasehold_testkit::{TestPostgres, eventually, sized, temp_dir};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_postgres::Client;

const LOCK_KIND: &str = include_str!("sql/lock_kind.sql");
const HOLD_LOCK: &str = include_str!("sql/hold_lock.sql");
const LIST_TABLES: &str = include_str!("sql/list_tables.sql");

pub(crate) const QUEUE: &str = "held";
/// How long the two tenants run without locks first.
const QUIET_SECONDS: f64 = 2.0;
/// Slower calls than this have waited for a lock.
const PROMPT: Duration = Duration::from_millis(800);
/// Finished requests are pruned all the while.
const PRUNE: [(&str, &str); 2] = [
    ("LEASEHOLD__RETENTION__COMPLETED", "3s"),
    ("LEASEHOLD__RETENTION__INTERVAL", "1s"),
];

/// Kinds that are locked at once. A full run locks one after the other.
fn group() -> usize {
    sized(5, 1)
}

/// How long the locks of some kinds, or of all, are held.
fn hold_seconds() -> f64 {
    sized(1.2, 30.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_rows_of_every_kind_fail_and_delay_nothing_of_other_tenants() {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &PRUNE);
    let locker = connect(&database).await;
    assert_every_table(&locker).await;
    let victim = Victim::start(&served, connect(&database).await).await;
    let mut others = Vec::new();
    for name in ["first", "second"] {
        let tenant = served.tenant(name, "PRO").await;
        let definition = publish(&tenant, &short_graph()).await;
        others.push((tenant, definition));
    }

    let quiet = measure(&others, &locker, QUIET_SECONDS).await;
    let groups = KINDS.chunks(group()).map(|kinds| (kinds, hold_seconds()));
    for (kinds, seconds) in groups.chain([(KINDS.as_slice(), hold_seconds() * 2.0)]) {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.0).collect();
        let names = names.join(", ");
        for tries_left in (0..TRIES).rev() {
            let running = victim.start_phase().await;
            locker.batch_execute("BEGIN").await.unwrap();
            for kind in kinds {
                victim.lock(&locker, *kind).await;
            }
            let cancels = victim.cancel(&running, 20).await;
            let held = measure(&others, &locker, seconds).await;
            locker.batch_execute("ROLLBACK").await.unwrap();
            for cancelling in cancels {
                cancelling.await.unwrap();
            }
            cancel(victim.tenant.clone(), running).await;
            assert!(served.is_running(), "{}", served.log());
            if are_undisturbed(&names, &quiet, &held, seconds) {
                break;
            }
            assert!(
                tries_left > 0,
                "{names}: the tenants are disturbed each time"
            );
        }
    }
    assert_recovered(&victim.tenant).await;
    victim.stop().await;
    served.stop();
}

async fn assert_every_table(client: &Client) {
    let rows = client.query(LIST_TABLES, &[]).await.unwrap();
    let mut tables: Vec<String> = rows.iter().map(|row| row.get("tablename")).collect();
    let mut locked = KINDS.map(|kind| kind.0);
    tables.sort_unstable();
    locked.sort_unstable();
    assert_eq!(tables, locked, "rows of every table are locked");
}

/// Locks these rows of a table.
async fn lock(operator: &Client, table: &str, condition: &str) {
    let statement = LOCK_KIND
        .replace("{table}", table)
        .replace("{condition}", condition);
    let row = operator.query_one(&statement, &[]).await.unwrap();
    assert!(row.get::<_, i64>("locked") > 0, "no {table} is locked");
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
        let definition = publish(&tenant, &task_graph(QUEUE)).await;
        let requests = start_tasks(&served, &tenant, &definition, 2).await;
        tenants.push((tenant, requests));
    }
    let jobs = claim_jobs(&served, 6).await;
    assert_eq!(jobs.len(), 6);
    assert!(jobs.iter().all(|job| job["token"] == jobs[0]["token"]));
    let (tenant, requests) = tenants[0].clone();
    let page = format!("token = {}", jobs[0]["token"]);
    let locked = format!("id = '{}'", requests[0]);

    // While the page is locked, nothing of it is written and nothing of it is lost.
    operator.batch_execute("BEGIN").await.unwrap();
    lock(&operator, "job_lease", &page).await;
    let renewed = renew(&served, &jobs).await;
    assert_eq!((renewed["held"].as_array().map(Vec::len)), Some(0));
    assert_eq!((renewed["busy"].as_array().map(Vec::len)), Some(6));
    assert_eq!(finish(&served, &jobs).await, ["not_written"; 6]);
    operator.batch_execute("ROLLBACK").await.unwrap();

    operator.batch_execute("BEGIN").await.unwrap();
    lock(&operator, "workflow_execution_queue", &locked).await;
    let begun = Instant::now();
    let states = finish(&served, &jobs).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    let count = |state: &str| states.iter().filter(|one| *one == state).count();
    assert_eq!((count("completed"), count("not_written")), (5, 1));
    for (tenant, requests) in &tenants {
        for request in requests.iter().filter(|one| !locked.contains(*one)) {
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
    assert_eq!(status(&tenant, &requests[0]).await, "COMPLETED");
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

/// Whether no call of the tenants waited, and their executions ran.
fn are_undisturbed(kinds: &str, quiet: &[Measured], held: &[Measured], seconds: f64) -> bool {
    quiet.iter().zip(held).all(|(quiet, held)| {
        println!(
            "{kinds}: slowest call {:?}, without locks {:?}; p99 {:?}, without locks {:?}; {} executions",
            held.slowest(),
            quiet.slowest(),
            held.p99(),
            quiet.p99(),
            held.completed
        );
        let (before, beside) = (
            quiet.completed as f64 / QUIET_SECONDS,
            held.completed as f64 / seconds,
        );
        // On a machine that is busy with other tests, calls take longer without any lock.
        held.slowest() < PROMPT.max(quiet.slowest() * 3) && beside > before / 4.0
    })
}

pub(crate) async fn publish(tenant: &Tenant, version: &Value) -> String {
    let name = format!("graph-{}", fastrand::u64(..));
    let definition = tenant.define(&name).await;
    let published = tenant.publish(&definition, version).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());
    definition
}

/// A graph of one task, which waits for a worker.
pub(crate) fn task_graph(queue: &str) -> Value {
    let task = json!({ "id": "a", "type": "task", "queue": queue, "kind": "work" });
    json!({ "body": { "graph": { "nodes": [task], "edges": [] } } })
}

async fn read(tenant: &Tenant, request: &str) -> Value {
    let tail = format!("/requests/{request}");
    let read = tenant.call("GET", &tail, None).await.unwrap();
    assert_eq!(read.status, 200, "{}", read.text());
    document(&read)
}

pub(crate) async fn status(tenant: &Tenant, request: &str) -> String {
    text(&read(tenant, request).await["status"])
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

/// Checks that the tenant can run another execution.
async fn assert_recovered(victim: &Tenant) {
    let definition = publish(victim, &short_graph()).await;
    let enqueued = victim.enqueue(&definition, "{}").await.unwrap();
    assert_eq!(enqueued.status, 201, "{}", enqueued.text());
    let request = text(&document(&enqueued)["id"]);
    let completed = eventually(Duration::from_secs(30), || async {
        status(victim, &request).await == "COMPLETED"
    });
    assert!(completed.await, "the tenant's next execution does not run");
}
