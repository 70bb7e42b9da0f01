//! Pruning of a large history beside a load: the time of each step, and the claims meanwhile. `--full` prunes a million requests with their events and a
//! million jobs.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support;

use leasehold_core::job::{JobClaim, JobEnd, JobFinish};
use leasehold_core::{ExecutionEnd, JsonText};
use leasehold_store::DatabaseStore;
use leasehold_store::execution::{ExecutionFinish, ExecutionStore};
use leasehold_store::job::{JobPrune, JobStore, NewJob};
use leasehold_store::prune::{Prune, PruneStore};
use leasehold_store::request::{Claim, ClaimOutcome, RequestStore};
use leasehold_store_conformance::factory::{claim_refs, ok};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testbed::TestWorkspace;
use leasehold_testkit::{TestDatabase, eventually, sized};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::raw::connect;
use tokio_postgres::Client;

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
/// Requests that one call of the pruner may delete, and jobs.
const BATCH: u32 = 1_000;
/// Workspaces of the load, and the requests that each enqueues in a round.
const WORKSPACES: usize = 4;
const ROUND: usize = 10;
const LEASE: Duration = Duration::from_secs(60);
const QUEUE: &str = "load";
/// Shorter claims are not compared: pruning without a pause and a load share the processors.
const SHORT: Duration = Duration::from_millis(5);

/// How long each claim of requests and of jobs took.
#[derive(Default)]
struct Claims {
    requests: Vec<Duration>,
    jobs: Vec<Duration>,
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

/// Keeps what completed for a week, and what failed for thirty days.
async fn retention(store: &PostgresStore) -> Prune {
    let now = ok(store.now().await);
    let before = |days| now.checked_sub(Duration::from_secs(days * DAY)).ok();
    Prune {
        completed_before: before(7),
        failed_before: before(30),
        limit: BATCH,
    }
}

/// Prunes until nothing is left, and returns how long each call took.
async fn prune_all(store: &PostgresStore) -> (Vec<Duration>, Vec<Duration>) {
    let requests = retention(store).await;
    let jobs = JobPrune {
        completed_before: requests.completed_before,
        failed_before: requests.failed_before,
        limit: BATCH,
    };
    let (mut of_requests, mut of_jobs) = (Vec::new(), Vec::new());
    loop {
        let begun = Instant::now();
        let pruned = ok(store.prune(&requests).await).requests;
        of_requests.push(begun.elapsed());
        let begun = Instant::now();
        let pruned_jobs = ok(store.job_prune(&jobs).await).jobs;
        of_jobs.push(begun.elapsed());
        if pruned + pruned_jobs == 0 {
            return (of_requests, of_jobs);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_a_large_history_delays_no_claims() {
    let count: i64 = sized(3_000, 1_000_000);
    let warm_up = sized(Duration::from_secs(1), Duration::from_secs(60));
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
    let begin = Prune {
        limit: 0,
        ..retention(&pruner).await
    };
    ok(pruner.prune(&begin).await);
    let is_over = eventually(Duration::from_secs(60), async || {
        let row = client.query_one(OLDER, &[]).await.unwrap();
        row.get::<_, bool>("over")
    });
    assert!(is_over.await, "a transaction of another test stays open");
    client.execute(AGE, &[&seconds]).await.unwrap();

    let begun = Instant::now();
    let before = load(&store, &workspaces, || begun.elapsed() > warm_up).await;
    let is_pruned = AtomicBool::new(false);
    let prune = async {
        let steps = prune_all(&pruner).await;
        is_pruned.store(true, Ordering::Relaxed);
        steps
    };
    let beside = load(&store, &workspaces, || is_pruned.load(Ordering::Relaxed));
    let (beside, (of_requests, of_jobs)) = tokio::join!(beside, prune);

    report("claims of requests before", &before.requests);
    report("claims of requests beside pruning", &beside.requests);
    report("claims of jobs before", &before.jobs);
    report("claims of jobs beside pruning", &beside.jobs);
    report("steps that prune requests", &of_requests);
    report("steps that prune jobs", &of_jobs);
    let left = client.query_one(LEFT, &[]).await.unwrap();
    for kind in ["requests", "executions", "events", "jobs", "ended"] {
        assert_eq!(left.get::<_, i64>(kind), 0, "{kind}");
    }
    if sized(false, true) {
        let bound = Duration::from_secs(1);
        for steps in [&of_requests, &of_jobs] {
            assert!(
                quantile(steps, 1_000) < bound,
                "a step took more than {bound:?}"
            );
        }
        for (before, beside) in [
            (&before.requests, &beside.requests),
            (&before.jobs, &beside.jobs),
        ] {
            let (before, beside) = (quantile(before, 990), quantile(beside, 990));
            assert!(
                beside < before.mul_f64(1.5).max(SHORT),
                "p99 rose from {before:?} to {beside:?}"
            );
        }
    }
}
