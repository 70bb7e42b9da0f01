//! Pruning of a large history beside a load: the time of each step, and the claims meanwhile. `--full` prunes a million requests with their events and a
//! million jobs.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support;

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobEnd, JobFinish};
use leasehold_core::{ExecutionEnd, JsonText};
use leasehold_runtime::{Pruner, PrunerOptions};
use leasehold_service::{Next, Service, run};
use leasehold_store::DatabaseStore;
use leasehold_store::execution::{ExecutionFinish, ExecutionStore};
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store::prune::{Prune, PruneStore};
use leasehold_store::request::{Claim, ClaimOutcome, RequestStore};
use leasehold_store_conformance::factory::{claim_refs, ok};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::{TestDatabase, eventually, sized};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::raw::connect;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

const TRIGGERS_OFF: &str = include_str!("sql/drift_triggers_off.sql");
const FILL_REQUESTS: &str = include_str!("sql/prune_load_requests.sql");
const FILL_JOBS: &str = include_str!("sql/prune_load_jobs.sql");
const AGE: &str = include_str!("sql/event_log_age.sql");
const OLDER: &str = include_str!("sql/event_log_older_transactions.sql");
const LEFT: &str = include_str!("sql/prune_load_left.sql");
const VACUUM: &str = include_str!("sql/prune_load_vacuum.sql");

const DAY: u64 = 24 * 60 * 60;
/// Rows that one statement fills.
const FILL: i64 = 20_000;
/// Workspaces of the load, and the requests that each enqueues in a round.
const WORKSPACES: usize = 4;
const ROUND: usize = 10;
const LEASE: Duration = Duration::from_secs(60);
const QUEUE: &str = "load";
/// Shorter claims are not compared: their p99 is how the operating system schedules the load, the pruner and the server on two processors.
const SHORT: Duration = Duration::from_millis(2);
/// Bounds the test.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Selects the claims of one kind.
type Of = fn(&Claims) -> &[Duration];

/// How long each claim of requests and of jobs took.
#[derive(Default)]
struct Claims {
    requests: Vec<Duration>,
    jobs: Vec<Duration>,
}

impl Claims {
    fn of_requests(&self) -> &[Duration] {
        &self.requests
    }

    fn of_jobs(&self) -> &[Duration] {
        &self.jobs
    }
}

/// Returns the duration that so many per mille do not exceed.
fn quantile(durations: &[Duration], per_mille: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * per_mille / 1_000).min(sorted.len() - 1)]
}

fn report(what: &str, durations: &[Duration]) {
    let [median, late, longest] = [500, 990, 1_000].map(|n| quantile(durations, n));
    eprintln!(
        "{what}: {} calls, median {median:?}, p99 {late:?}, longest {longest:?}",
        durations.len()
    );
}

fn store(database: &TestDatabase) -> PostgresStore {
    PostgresStore::new(&PostgresOptions::new(database.url())).unwrap()
}

/// Enqueues, claims and finishes requests and jobs until `is_over`.
async fn load(
    store: &PostgresStore,
    workspaces: &[TestWorkspace],
    is_over: impl Fn() -> bool,
) -> Claims {
    let mut claims = Claims::default();
    while !is_over() {
        for workspace in workspaces {
            let requests = (0..ROUND).map(|_| workspace.request()).collect();
            workspace.enqueue(store, requests).await;
        }
        let claim = Claim {
            owner: "load".to_owned(),
            batch: (WORKSPACES * ROUND) as u32,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        let begun = Instant::now();
        let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
            panic!("no lock was asked for");
        };
        claims.requests.push(begun.elapsed());
        ok(store
            .request_dispatched("load", &claim_refs(&claimed))
            .await);
        let finishes = claimed.requests.iter().map(|request| ExecutionFinish {
            execution: request.execution,
            end: ExecutionEnd::Completed,
            error: None,
        });
        let finishes: Vec<_> = finishes.collect();
        ok(store.execution_finish("load", &finishes).await);

        let jobs = vec![NewJob::new(QUEUE, "send", JsonText::from(&json!(1))); ROUND];
        ok(store.job_enqueue(&jobs).await);
        let claim = JobClaim {
            queue: QUEUE.to_owned(),
            worker: "load".to_owned(),
            max: ROUND as u32,
            lease: Some(LEASE),
        };
        let begun = Instant::now();
        let claimed = ok(store.job_claim(&claim).await).jobs;
        claims.jobs.push(begun.elapsed());
        let finishes = claimed.iter().map(|job| JobFinish {
            claim: job.claim(),
            end: JobEnd::Completed { result: None },
        });
        let finishes: Vec<_> = finishes.collect();
        ok(store.job_finish("load", &finishes).await);
    }
    claims
}

/// Fills the history with requests, each with an execution and four events, and with jobs. All ended forty days ago.
async fn fill(client: &Client, store: &PostgresStore, workspace: &TestWorkspace, count: i64) {
    ok(store
        .job_enqueue(&[NewJob::new(QUEUE, "send", JsonText::from(&json!(1)))])
        .await);
    client.batch_execute(TRIGGERS_OFF).await.unwrap();
    let (id, definition, version) = (
        workspace.workspace.0,
        workspace.definition.0,
        workspace.version.0,
    );
    let mut from = 0;
    while from < count {
        let rows = FILL.min(count - from);
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&from, &rows, &id, &definition, &version];
        client.execute(FILL_REQUESTS, &params).await.unwrap();
        client.execute(FILL_JOBS, &[&rows, &QUEUE]).await.unwrap();
        ok(store.request_promote_due().await);
        from += rows;
    }
    client.batch_execute(VACUUM).await.unwrap();
}

/// Keeps what completed for a week, and what failed for thirty days, as the pruner does.
async fn retention(store: &PostgresStore) -> Prune {
    let now = ok(store.now().await);
    let before = |days| now.checked_sub(Duration::from_secs(days * DAY)).ok();
    Prune {
        completed_before: before(7),
        failed_before: before(30),
        limit: 0,
    }
}

/// The pruner of the program, with the duration of each round. It pauses between rounds as in the program.
struct TimedPruner {
    pruner: Pruner,
    rounds: Mutex<Vec<Duration>>,
    /// Nothing is left.
    done: CancellationToken,
}

impl TimedPruner {
    fn new(store: &PostgresStore) -> Self {
        let options = PrunerOptions::default();
        Self {
            pruner: Pruner::new(Arc::new(store.clone()), "pruner", options),
            rounds: Mutex::default(),
            done: CancellationToken::new(),
        }
    }
}

#[async_trait]
impl Service for TimedPruner {
    type Error = leasehold_runtime::Error;

    fn name(&self) -> &'static str {
        self.pruner.name()
    }

    async fn run_once(&self) -> Result<Next, Self::Error> {
        let begun = Instant::now();
        let next = self.pruner.run_once().await?;
        self.rounds.lock().unwrap().push(begun.elapsed());
        if next == Next::After(PrunerOptions::default().interval) {
            self.done.cancel();
        }
        Ok(next)
    }

    async fn stopped(&self) {
        self.pruner.stopped().await;
    }
}

/// Windows of the same load, alternately without and beside the pruner.
#[derive(Default)]
struct Windows {
    idle: Vec<Claims>,
    beside: Vec<Claims>,
    rounds: Vec<Duration>,
}

impl Windows {
    /// Runs the load in windows of this length until nothing is left to prune.
    async fn run(
        store: &PostgresStore,
        pruner: &PostgresStore,
        workspaces: &[TestWorkspace],
        length: Duration,
    ) -> Self {
        let (mut windows, started) = (Self::default(), Instant::now());
        loop {
            let begun = Instant::now();
            let idle = load(store, workspaces, || begun.elapsed() > length).await;
            windows.idle.push(idle);
            let (pruner, stop) = (TimedPruner::new(pruner), CancellationToken::new());
            let begun = Instant::now();
            let is_over = || pruner.done.is_cancelled() || begun.elapsed() > length;
            let load = async {
                let claims = load(store, workspaces, is_over).await;
                stop.cancel();
                claims
            };
            let (beside, ()) = tokio::join!(load, run(&pruner, &stop, || {}));
            // The last window may be too short for a p99.
            if begun.elapsed() > length || windows.beside.is_empty() {
                windows.beside.push(beside);
            }
            windows.rounds.append(&mut pruner.rounds.lock().unwrap());
            if pruner.done.is_cancelled() {
                return windows;
            }
            assert!(started.elapsed() < LONGEST, "the pruning does not end");
        }
    }
}

/// Returns the median of the windows' p99, and prints what it is of.
fn median_p99(what: &str, windows: &[Claims], of: Of) -> Duration {
    let all: Vec<Duration> = windows.iter().flat_map(of).copied().collect();
    report(what, &all);
    let each: Vec<Duration> = windows
        .iter()
        .map(|claims| quantile(of(claims), 990))
        .collect();
    let median = quantile(&each, 500);
    eprintln!("{what}: p99 in windows {each:?}, median {median:?}");
    median
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_a_large_history_delays_no_claims() {
    let count: i64 = sized(3_000, 1_000_000);
    let window = sized(Duration::from_secs(1), Duration::from_secs(10));
    let database = support::database().await;
    let (pruner, store) = (store(&database), store(&database));
    let client = connect(&database).await;
    let mut workspaces = Vec::new();
    for _ in 0..WORKSPACES {
        workspaces.push(TestWorkspace::new(&store, 100).await);
    }
    fill(&client, &store, &workspaces[0], count).await;
    // The history is in the first partition, and the load in the next one.
    let seconds = f64::from(u32::try_from(40 * DAY).unwrap());
    client.execute(AGE, &[&seconds]).await.unwrap();
    ok(pruner.prune(&retention(&pruner).await).await);
    let is_over = eventually(Duration::from_secs(60), async || {
        let row = client.query_one(OLDER, &[]).await.unwrap();
        row.get::<_, bool>("over")
    });
    assert!(is_over.await, "a transaction of another test stays open");
    client.execute(AGE, &[&seconds]).await.unwrap();

    let windows = Windows::run(&store, &pruner, &workspaces, window).await;
    let compared = [
        ("claims of requests", Claims::of_requests as Of),
        ("claims of jobs", Claims::of_jobs as Of),
    ]
    .map(|(what, of)| {
        let idle = median_p99(&format!("{what} without pruning"), &windows.idle, of);
        let beside = median_p99(&format!("{what} beside pruning"), &windows.beside, of);
        (what, idle, beside)
    });
    report("rounds of the pruner", &windows.rounds);
    // After a transaction that used the expired partition, this instance waits a minute, another one does not.
    let is_empty = eventually(Duration::from_secs(60), async || {
        let other = self::store(&database);
        ok(other.prune(&retention(&other).await).await);
        let left = client.query_one(LEFT, &[]).await.unwrap();
        let kinds = ["requests", "executions", "events", "jobs", "ended"];
        kinds.iter().all(|kind| left.get::<_, i64>(*kind) == 0)
    });
    assert!(is_empty.await, "something is left");
    if sized(false, true) {
        let bound = Duration::from_secs(1);
        let longest = quantile(&windows.rounds, 1_000);
        assert!(longest < bound, "a round took {longest:?}");
        for (what, idle, beside) in compared {
            assert!(
                beside < idle.mul_f64(1.5).max(SHORT),
                "{what}: p99 rose from {idle:?} to {beside:?}"
            );
        }
    }
}
