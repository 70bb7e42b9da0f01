//! Twenty tenants work while another program takes random locks for up to two seconds, as forgotten transactions of an operator do. Rows are locked of ten of
//! the tenants; the others must not notice. Then whole tables are locked too.

use crate::ALONE;
use crate::neighbour::short_graph;
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use leasehold_testkit::{TestDatabase, TestPostgres, sized, temp_dir};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{interval, interval_at};
use tokio_postgres::{Client, NoTls};

const LOCK_ROW: &str = include_str!("sql/lock_row.sql");
const LOCK_TABLE: &str = include_str!("sql/lock_table.sql");
const HOLD_LOCK: &str = include_str!("sql/hold_lock.sql");
const REQUESTS_BY_STATUS: &str = include_str!("sql/requests_by_status.sql");

/// Tenants; the rows of the first half are locked.
const TENANTS: usize = 20;
/// Programs that lock at once.
const LOCKERS: usize = 4;
/// How long the tenants run without locks first.
const QUIET: Duration = Duration::from_secs(6);
/// The longest time that a lock is held.
const MAX_HOLD: f64 = 2.0;
/// Between two reads of a running request.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between two executions of a tenant, so that the tenants alone do not use all processors.
const PACE: Duration = Duration::from_secs(5);
/// How long the tenants run without locks, and beside them. Whatever waits for a locked table runs afterwards, so that storm is shorter.
fn durations(tables: bool) -> (Duration, Duration) {
    match tables {
        false => (QUIET, Duration::from_secs(sized(8, 60))),
        true => (PACE, Duration::from_secs(sized(5, 60))),
    }
}

/// The tables whose rows are locked.
const ROWS: [&str; 7] = [
    "workflow_execution_queue",
    "workflow_execution",
    "workspace_turn",
    "workspace",
    "execution_graph",
    "execution_node",
    "job",
];

/// The tables that are locked.
const TABLES: [&str; 6] = [
    "workflow_execution_queue",
    "workflow_execution",
    "execution_graph",
    "job_lease",
    "job",
    "workspace_turn",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_rows_do_not_disturb_other_tenants() {
    let storm = run_storm(false).await;
    // On a machine that is busy with other tests, executions take longer without any lock.
    let limit = (storm.quiet * 2).max(Duration::from_secs(1));
    assert!(
        storm.locked < limit,
        "{:?}, without locks {:?}",
        storm.locked,
        storm.quiet
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_tables_fail_and_lose_nothing() {
    run_storm(true).await;
}

/// How long 99 of 100 executions of the tenants without locked rows took at most, without locks and beside them.
struct Storm {
    quiet: Duration,
    locked: Duration,
}

/// Runs the tenants, first alone, then beside the lockers.
async fn run_storm(tables: bool) -> Storm {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &[]);
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        let tenant = served.tenant(&format!("tenant-{number}"), "PRO").await;
        let definition = tenant.define("graph").await;
        let published = tenant.publish(&definition, &short_graph()).await.unwrap();
        assert_eq!(published.status, 201, "{}", published.text());
        tenants.push((tenant, definition));
    }
    let victims = tenants.iter().take(TENANTS / 2);
    let victims: Vec<String> = victims
        .map(|(tenant, _)| tenant.workspace.clone())
        .collect();
    let (alone, beside) = durations(tables);
    let quiet = run_tenants(&mut served, &tenants, "quiet", alone).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut lockers = Vec::new();
    for locker in 0..LOCKERS {
        let client = connect(&database).await;
        // One program locks tables, so that most of the time none is locked.
        let tables = tables && locker == 0;
        let (victims, stop) = (victims.clone(), Arc::clone(&stop));
        lockers.push(tokio::spawn(take_locks(client, victims, tables, stop)));
    }
    let locked = run_tenants(&mut served, &tenants, "locked", beside).await;
    stop.store(true, Ordering::Release);
    let mut locks = 0;
    for locker in lockers {
        locks += locker.await.unwrap();
    }
    served.stop();
    let storm = Storm {
        quiet: percentile(of_others(&quiet), 99),
        locked: percentile(of_others(&locked), 99),
    };
    let all = quiet.iter().chain(&locked).map(Vec::len).sum::<usize>();
    println!(
        "{all} executions, {locks} locks (tables: {tables}); others p99 {:?}, without locks {:?}",
        storm.locked, storm.quiet
    );
    let client = connect(&database).await;
    let mut counts: HashMap<String, i64> = HashMap::new();
    for row in client.query(REQUESTS_BY_STATUS, &[]).await.unwrap() {
        counts.insert(row.get("status"), row.get("requests"));
    }
    let expected = HashMap::from([("COMPLETED".to_owned(), i64::try_from(all).unwrap())]);
    assert_eq!(counts, expected, "every request completed once");
    assert!(locks > 0 && locked.iter().all(|runs| !runs.is_empty()));
    storm
}

/// Runs the tenants for this long. Returns how long each execution of each tenant took.
async fn run_tenants(
    served: &mut ServerProcess,
    tenants: &[(Tenant, String)],
    phase: &'static str,
    duration: Duration,
) -> Vec<Vec<Duration>> {
    let stop = Arc::new(AtomicBool::new(false));
    let working: Vec<_> = tenants
        .iter()
        .cloned()
        .zip(0u32..)
        .map(|((tenant, definition), number)| {
            // Each begins at another time.
            let first = PACE * number / u32::try_from(TENANTS).unwrap();
            tokio::spawn(work(tenant, definition, phase, first, Arc::clone(&stop)))
        })
        .collect();
    let begun = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    while begun.elapsed() < duration {
        ticks.tick().await;
        assert!(served.is_running(), "{}", served.log());
    }
    stop.store(true, Ordering::Release);
    let mut runs = Vec::new();
    for task in working {
        runs.push(task.await.unwrap());
    }
    runs
}

fn of_others(runs: &[Vec<Duration>]) -> Vec<Duration> {
    runs.iter().skip(TENANTS / 2).flatten().copied().collect()
}

pub(crate) async fn connect(database: &TestDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(database.url(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// Locks random rows, and tables if asked, until stopped. Returns how many locks it took.
async fn take_locks(
    client: Client,
    victims: Vec<String>,
    tables: bool,
    stop: Arc<AtomicBool>,
) -> usize {
    let mut locks = 0;
    while !stop.load(Ordering::Acquire) {
        client.batch_execute("BEGIN").await.unwrap();
        let mut locked = 1;
        let is_table = tables && fastrand::bool();
        if is_table {
            let table = TABLES[fastrand::usize(0..TABLES.len())];
            let statement = LOCK_TABLE.replace("{table}", table);
            client.batch_execute(&statement).await.unwrap();
        } else {
            let table = ROWS[fastrand::usize(0..ROWS.len())];
            let row = client.query_one(LOCK_ROW, &[&victims, &table]).await;
            let row = row.unwrap();
            locked = row.get::<_, i64>(0);
        }
        if locked > 0 {
            locks += 1;
            let seconds = fastrand::f64()
                * if is_table {
                    sized(0.5, MAX_HOLD)
                } else {
                    MAX_HOLD
                };
            client.query_one(HOLD_LOCK, &[&seconds]).await.unwrap();
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    locks
}

/// Runs one execution after the other until stopped, from the time `first` on. Returns how long each took from its enqueue to its end.
async fn work(
    tenant: Tenant,
    definition: String,
    phase: &'static str,
    first: Duration,
    stop: Arc<AtomicBool>,
) -> Vec<Duration> {
    let mut runs = Vec::new();
    let mut executions = interval_at(tokio::time::Instant::now() + first, PACE);
    while !stop.load(Ordering::Acquire) {
        executions.tick().await;
        let begun = Instant::now();
        let key = format!("{phase}-{}", runs.len());
        let body = json!({ "definition": definition, "params": {}, "idempotency_key": key });
        let body = body.to_string();
        let enqueued = call(&tenant, "POST", "/requests", Some(body.as_bytes())).await;
        let tail = format!("/requests/{}", text(&enqueued["id"]));
        let mut pace = interval(POLL_INTERVAL);
        loop {
            pace.tick().await;
            let read = call(&tenant, "GET", &tail, None).await;
            match read["status"].as_str() {
                Some("COMPLETED") => break,
                Some("FAILED") => panic!("the request failed: {read}"),
                _ => {}
            }
        }
        runs.push(begun.elapsed());
    }
    runs
}

/// Repeats a call while the server answers that the store is unavailable, as it does while a table is locked.
async fn call(tenant: &Tenant, method: &str, tail: &str, body: Option<&[u8]>) -> serde_json::Value {
    let mut pace = interval(POLL_INTERVAL);
    loop {
        pace.tick().await;
        let answer = tenant.call(method, tail, body).await.unwrap();
        match answer.status {
            200 | 201 => return document(&answer),
            503 => {}
            status => panic!("{method} {tail}: {status} {}", answer.text()),
        }
    }
}

fn percentile(mut runs: Vec<Duration>, percent: usize) -> Duration {
    runs.sort_unstable();
    let index = (runs.len() * percent).div_ceil(100).saturating_sub(1);
    runs.get(index).copied().unwrap_or_default()
}
