//! A forgotten transaction holds a row lock of every kind on one tenant's rows, while two other tenants work.

use crate::ALONE;
use crate::locks::connect;
use crate::neighbour::{Measured, Neighbour, short_graph};
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use leasehold_testkit::{TestPostgres, eventually, sized, temp_dir};
use serde_json::json;
use std::time::Duration;
use tokio_postgres::Client;

const LOCK_EACH_KIND: &str = include_str!("sql/lock_each_kind.sql");
const HOLD_LOCK: &str = include_str!("sql/hold_lock.sql");
const ANOTHER_LOCK: &str = include_str!("sql/another_lock.sql");

const QUEUE: &str = "held";
/// Executions of the tenant whose rows are locked.
const EXECUTIONS: usize = 6;
/// How long the two tenants run without locks first.
const QUIET_SECONDS: f64 = 2.0;
/// Slower calls than this have waited for a lock: every wait for a lock takes at least half a second.
const PROMPT: Duration = Duration::from_millis(1_500);

fn hold_seconds() -> f64 {
    sized(5.0, 30.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_rows_of_every_kind_fail_and_delay_nothing_of_other_tenants() {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &[]);
    let operator = connect(&database).await;
    let victim = served.tenant("victim", "ENTERPRISE").await;
    let requests = run_tasks(&served, &victim).await;
    let page = claim_job(&served).await;
    let mut others = Vec::new();
    for name in ["first", "second"] {
        let tenant = served.tenant(name, "PRO").await;
        let definition = publish(&tenant, &short_graph()).await;
        others.push((tenant, definition));
    }

    let quiet = measure(&others, &operator, QUIET_SECONDS).await;
    operator.batch_execute(ANOTHER_LOCK).await.unwrap();
    operator.batch_execute("BEGIN").await.unwrap();
    lock_each_kind(&operator, &victim, &requests, page).await;
    // These wait for the locked request.
    let cancels: Vec<_> = (0..20)
        .map(|_| {
            let (victim, tail) = (victim.clone(), format!("/requests/{}/cancel", requests[0]));
            tokio::spawn(async move { victim.call("POST", &tail, Some(b"{}")).await.unwrap() })
        })
        .collect();
    let held = measure(&others, &operator, hold_seconds()).await;
    operator.batch_execute("ROLLBACK").await.unwrap();

    for cancel in cancels {
        let answer = cancel.await.unwrap();
        let expected = matches!(answer.status, 200 | 202 | 409 | 503);
        assert!(expected, "{}: {}", answer.status, answer.text());
    }
    for (quiet, held) in quiet.iter().zip(&held) {
        println!(
            "slowest call {:?}, without locks {:?}; p99 {:?}, without locks {:?}; {} executions",
            held.slowest(),
            quiet.slowest(),
            held.p99(),
            quiet.p99(),
            held.completed
        );
        // On a machine that is busy with other tests, calls take longer without any lock.
        assert!(held.slowest() < PROMPT.max(quiet.slowest() * 3));
        assert!(
            held.completed as f64 / hold_seconds() > quiet.completed as f64 / QUIET_SECONDS / 4.0
        );
    }
    assert_recovered(&victim, &requests).await;
    assert!(served.is_running(), "{}", served.log());
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

async fn publish(tenant: &Tenant, version: &serde_json::Value) -> String {
    let definition = tenant.define("graph").await;
    let published = tenant.publish(&definition, version).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());
    definition
}

async fn status(tenant: &Tenant, request: &str) -> String {
    let tail = format!("/requests/{request}");
    let read = tenant.call("GET", &tail, None).await.unwrap();
    text(&document(&read)["status"])
}

/// Starts executions that wait for a worker, and returns their requests.
async fn run_tasks(served: &ServerProcess, tenant: &Tenant) -> Vec<String> {
    let task = json!({ "id": "a", "type": "task", "queue": QUEUE, "kind": "work" });
    let graph = json!({ "nodes": [task], "edges": [] });
    let definition = publish(tenant, &json!({ "body": { "graph": graph } })).await;
    let mut requests = Vec::new();
    for _ in 0..EXECUTIONS {
        let enqueued = tenant.enqueue(&definition, "{}").await.unwrap();
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

/// Claims one job of the tenant as a worker, and returns the token of its page of leases.
async fn claim_job(served: &ServerProcess) -> i64 {
    let claim = json!({ "worker": "w", "max": 1, "lease_ms": 600_000, "wait_ms": 0 });
    let path = format!("/v1/queues/{QUEUE}/claim");
    let body = claim.to_string();
    let claimed = served.call("POST", &path, Some(&body)).await;
    assert_eq!(claimed.status, 200, "{}", claimed.text());
    document(&claimed)["jobs"][0]["token"].as_i64().unwrap()
}

/// Locks a row of every kind: of the tenant, of its executions and its queue, and of a named lock.
async fn lock_each_kind(operator: &Client, victim: &Tenant, requests: &[String], page: i64) {
    let row = operator
        .query_one(
            LOCK_EACH_KIND,
            &[&victim.workspace, &requests, &page, &QUEUE],
        )
        .await
        .unwrap();
    for (at, kind) in row.columns().iter().enumerate() {
        assert!(row.get::<_, i64>(at) > 0, "no {} is locked", kind.name());
    }
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
