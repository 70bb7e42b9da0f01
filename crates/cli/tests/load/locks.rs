//! Twenty tenants work while another program takes random locks for up to two seconds, as forgotten transactions of an operator do. Rows are locked of ten of
//! the tenants, and rows that belong to none; the other tenants must not notice. Then pages of leases and whole tables are locked too.

use crate::ALONE;
use crate::neighbour::short_graph;
use crate::server_process::ServerProcess;
use crate::tenant::{Tenant, document, text};
use futures::future::join_all;
use leasehold_testkit::{TestDatabase, TestPostgres, sized, temp_dir};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{interval, interval_at};
use tokio_postgres::{Client, NoTls};

const LOCK_ROW: &str = include_str!("sql/lock_row.sql");
const RUNNING: &str = include_str!("sql/running_executions.sql");
const LOCK_TABLE: &str = include_str!("sql/lock_table.sql");
const HOLD_LOCK: &str = include_str!("sql/hold_lock.sql");
const REQUESTS_BY_STATUS: &str = include_str!("sql/requests_by_status.sql");

/// Tenants; the rows of the first half are locked.
const TENANTS: usize = 20;
/// Programs that lock at once.
const LOCKERS: usize = 4;
/// The longest time that a lock is held.
const MAX_HOLD: f64 = 2.0;
/// How long the tenants run without locks first.
const QUIET: Duration = Duration::from_secs(3);
/// Between two reads of a running request.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between two executions of a tenant, so that the tenants alone do not use all processors.
const PACE: Duration = Duration::from_secs(1);
/// The most that 99 of 100 executions may take. In the ordinary suite: if they take less than half of it without locks.
const P99_MAX: Duration = Duration::from_secs(1);
/// Measurements until one is good. A lock that delays others does so each time; a pause of the machine does not come back.
pub(crate) const TRIES: u32 = 3;

/// How long the tenants work beside the locks. Whatever waits for a locked table runs afterwards, so that storm is shorter.
fn duration(tables: bool) -> Duration {
    Duration::from_secs(sized(if tables { 4 } else { 7 }, 60))
}

/// The tables whose rows are locked, and which of their rows.
const ROWS: [(&str, &str); 14] = [
    (
        "workflow_execution_queue",
        "workspace_id = ANY ({victims}) AND finished_at IS NULL",
    ),
    (
        "workflow_execution",
        "workspace_id = ANY ({victims}) AND status = 'RUNNING'",
    ),
    ("request_event", "workspace_id = ANY ({victims})"),
    ("execution_graph", "execution_id IN ({running})"),
    ("execution_node", "execution_id IN ({running})"),
    ("job", "execution_id IN ({running})"),
    ("workspace", "id = ANY ({victims})"),
    ("workspace_turn", "workspace_id = ANY ({victims})"),
    ("workspace_delta", "workspace_id = ANY ({victims})"),
    ("request_fold", "true"),
    ("job_cursor", "true"),
    ("queue", "true"),
    ("shedlock", "true"),
    // Only pages without jobs of other tenants: a lock on a page delays all of its jobs.
    (
        "job_lease",
        "token NOT IN (SELECT p.token FROM job_lease p, unnest(p.ids) AS i (id) JOIN job j ON j.id = i.id \
         LEFT JOIN workflow_execution e ON e.id = j.execution_id \
         WHERE e.workspace_id IS NULL OR e.workspace_id <> ALL ({victims}))",
    ),
];
/// A page has jobs of many tenants.
const PAGES: (&str, &str) = ("job_lease", "true");

/// The tables that are locked.
const TABLES: [&str; 8] = [
    "workflow_execution_queue",
    "workflow_execution",
    "execution_graph",
    "execution_node",
    "job_lease",
    "job",
    "workspace_turn",
    "shedlock",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locked_rows_do_not_disturb_other_tenants() {
    for tries_left in (0..TRIES).rev() {
        let storm = run_storm(false).await;
        // In the ordinary suite the machine is busy with other tests, and executions take longer without any lock.
        let limit = match sized(storm.quiet * 2 < P99_MAX, true) {
            true => P99_MAX,
            false => storm.quiet * 2,
        };
        if storm.locked < limit {
            return;
        }
        let Storm { locked, quiet } = storm;
        assert!(tries_left > 0, "{locked:?}, without locks {quiet:?}");
    }
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

/// A tenant, and the definition that it runs.
#[derive(Clone)]
struct Working {
    tenant: Tenant,
    definition: String,
    is_victim: bool,
    /// Whether the store may be unavailable to it for a moment.
    is_patient: bool,
}

/// Runs the tenants, first alone, then beside the lockers.
async fn run_storm(tables: bool) -> Storm {
    let _alone = ALONE.lock().await;
    let database = TestPostgres::shared().fresh_database(None).await;
    let data = temp_dir();
    let mut served = ServerProcess::start_with(database.url(), data.path(), &[]);
    let tenants = join_all((0..TENANTS).map(|number| create(&served, number, tables))).await;
    let quiet = match tables {
        true => Vec::new(),
        false => run_tenants(&mut served, &tenants, "quiet", QUIET).await,
    };
    let victims = tenants.iter().filter(|one| one.is_victim);
    let victims: Vec<&str> = victims.map(|one| one.tenant.workspace.as_str()).collect();
    let victims = format!("'{{{}}}'::uuid[]", victims.join(","));
    let stop = Arc::new(AtomicBool::new(false));
    let mut lockers = Vec::new();
    for locker in 0..LOCKERS {
        let program = Locker {
            client: connect(&database).await,
            victims: victims.clone(),
            pages: tables,
            // One program locks tables, so that most of the time none is locked.
            tables: tables && locker == 0,
        };
        lockers.push(tokio::spawn(program.run(Arc::clone(&stop))));
    }
    let locked = run_tenants(&mut served, &tenants, "locked", duration(tables)).await;
    stop.store(true, Ordering::Release);
    let mut locks: HashMap<&str, usize> = HashMap::new();
    for locker in lockers {
        for table in locker.await.unwrap() {
            *locks.entry(table).or_default() += 1;
        }
    }
    served.stop();
    let storm = Storm {
        quiet: percentile(of_others(&quiet), 99),
        locked: percentile(of_others(&locked), 99),
    };
    let all = quiet.iter().chain(&locked).map(Vec::len).sum::<usize>();
    println!(
        "{all} executions, locks {locks:?} (tables: {tables}); others p99 {:?}, without locks {:?}",
        storm.locked, storm.quiet
    );
    assert_completed(&database, all).await;
    assert!(locked.iter().all(|runs| !runs.is_empty()));
    let kinds = if tables { 5 } else { 10 };
    assert!(locks.len() >= kinds, "few kinds of rows were locked");
    storm
}

/// Checks that every request completed, once.
async fn assert_completed(database: &TestDatabase, requests: usize) {
    let client = connect(database).await;
    let mut counts: HashMap<String, i64> = HashMap::new();
    for row in client.query(REQUESTS_BY_STATUS, &[]).await.unwrap() {
        counts.insert(row.get("status"), row.get("requests"));
    }
    let expected = HashMap::from([("COMPLETED".to_owned(), i64::try_from(requests).unwrap())]);
    assert_eq!(counts, expected, "every request completed once");
}

async fn create(served: &ServerProcess, number: usize, tables: bool) -> Working {
    let tenant = served.tenant(&format!("tenant-{number}"), "PRO").await;
    let definition = tenant.define("graph").await;
    let is_victim = number < TENANTS / 2;
    let version = if is_victim {
        long_graph()
    } else {
        short_graph()
    };
    let published = tenant.publish(&definition, &version).await.unwrap();
    assert_eq!(published.status, 201, "{}", published.text());
    Working {
        tenant,
        definition,
        is_victim,
        is_patient: is_victim || tables,
    }
}

/// A graph that takes a while, so that there are rows to lock.
fn long_graph() -> Value {
    let delay = |id: &str| json!({ "id": id, "type": "delay", "milliseconds": 300 });
    let edge = |from: &str, to: &str| json!({ "from": from, "to": to });
    let nodes = ["a", "b", "c"].map(delay);
    let graph = json!({ "nodes": nodes, "edges": [edge("a", "b"), edge("b", "c")] });
    json!({ "body": { "graph": graph } })
}

/// Runs the tenants for this long. Returns how long each execution of each tenant took.
async fn run_tenants(
    served: &mut ServerProcess,
    tenants: &[Working],
    phase: &'static str,
    duration: Duration,
) -> Vec<Vec<Duration>> {
    let stop = Arc::new(AtomicBool::new(false));
    let working: Vec<_> = tenants
        .iter()
        .cloned()
        .zip(0u32..)
        .map(|(working, number)| {
            // Each begins at another time.
            let first = PACE * number / u32::try_from(TENANTS).unwrap();
            tokio::spawn(working.work(phase, first, Arc::clone(&stop)))
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
    let (client, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// A program that takes locks.
struct Locker {
    client: Client,
    /// The workspaces whose rows are locked, as SQL.
    victims: String,
    /// Whether to lock pages of leases too.
    pages: bool,
    /// Whether to lock tables too.
    tables: bool,
}

impl Locker {
    /// Locks random rows, and tables if asked, until stopped. Returns the table of each lock.
    async fn run(self, stop: Arc<AtomicBool>) -> Vec<&'static str> {
        let mut locks = Vec::new();
        while !stop.load(Ordering::Acquire) {
            self.client.batch_execute("BEGIN").await.unwrap();
            let is_table = self.tables && fastrand::bool();
            let locked = match is_table {
                true => Some(self.lock_table().await),
                false => self.lock_row().await,
            };
            if let Some(table) = locked {
                locks.push(table);
                let longest = match is_table {
                    true => sized(0.5, MAX_HOLD),
                    false => MAX_HOLD,
                };
                let seconds = fastrand::f64() * longest;
                let held = self.client.query_one(HOLD_LOCK, &[&seconds]).await;
                held.unwrap();
            }
            self.client.batch_execute("ROLLBACK").await.unwrap();
        }
        locks
    }

    async fn lock_table(&self) -> &'static str {
        let table = TABLES[fastrand::usize(0..TABLES.len())];
        let statement = LOCK_TABLE.replace("{table}", table);
        self.client.batch_execute(&statement).await.unwrap();
        table
    }

    /// Returns none if there is no free row of the kind.
    async fn lock_row(&self) -> Option<&'static str> {
        let kinds = ROWS.len() + usize::from(self.pages);
        let kind = fastrand::usize(0..kinds);
        let (table, condition) = ROWS.get(kind).copied().unwrap_or(PAGES);
        let statement = LOCK_ROW
            .replace("{table}", table)
            .replace("{condition}", condition)
            .replace("{running}", RUNNING)
            .replace("{victims}", &self.victims);
        let row = self.client.query_one(&statement, &[]).await.unwrap();
        (row.get::<_, i64>("locked") > 0).then_some(table)
    }
}

impl Working {
    /// Runs one execution after the other until stopped, from the time `first` on. Returns how long each took from its enqueue to its end.
    async fn work(
        self,
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
            let body =
                json!({ "definition": self.definition, "params": {}, "idempotency_key": key });
            let body = body.to_string();
            let enqueued = self.call("POST", "/requests", Some(body.as_bytes())).await;
            let tail = format!("/requests/{}", text(&enqueued["id"]));
            let mut pace = interval(POLL_INTERVAL);
            loop {
                pace.tick().await;
                let read = self.call("GET", &tail, None).await;
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
    async fn call(&self, method: &str, tail: &str, body: Option<&[u8]>) -> Value {
        let mut pace = interval(POLL_INTERVAL);
        loop {
            pace.tick().await;
            let answer = self.tenant.call(method, tail, body).await.unwrap();
            match answer.status {
                200 | 201 => return document(&answer),
                503 if self.is_patient => {}
                status => panic!("{method} {tail}: {status} {}", answer.text()),
            }
        }
    }
}

fn percentile(mut runs: Vec<Duration>, percent: usize) -> Duration {
    runs.sort_unstable();
    let index = (runs.len() * percent).div_ceil(100).saturating_sub(1);
    runs.get(index).copied().unwrap_or_default()
}
