//! `leasehold serve` under load: ten thousand enqueues per minute over fifty connections, beside misbehaving clients, and a stop under load; a tenant
//! with generated hostile input beside one with ordinary calls.
//!
//! Runs for ten seconds, or minutes with `cargo xtask test --full`.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "prints measurements")]

mod attack;
mod attacks;
mod bad_clients;
mod held_locks;
mod hostile;
mod locks;
mod memory;
mod neighbour;
mod server_process;
mod tenant;
mod victim;

use leasehold_testkit::{HttpConnection, TestPostgres, sized, temp_dir};
use server_process::{LoadTarget, ServerProcess};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// Held by each test: they measure a server under load, and would disturb each other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Number of well-behaved clients.
const GOOD_CLIENTS: u32 = 50;
/// Number of misbehaving clients.
const BAD_CLIENTS: u32 = 20;
/// Enqueues per minute of all well-behaved clients together.
const ENQUEUES_PER_MINUTE: u32 = 10_000;
/// Maximum peak memory of the server, in MiB.
const MEMORY_MAX: u64 = 256;

fn duration() -> Duration {
    Duration::from_secs(sized(10, 120))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_clients_do_not_disturb_good_ones_on_sqlite() {
    let dir = temp_dir();
    let store = format!("sqlite:{}", dir.path().join("load.db").display());
    run_load(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_clients_do_not_disturb_good_ones_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    run_load(database.url()).await;
}

async fn run_load(store: &str) {
    let _alone = ALONE.lock().await;
    let dir = temp_dir();
    let mut served = ServerProcess::start(store, dir.path());
    let target = Arc::new(served.target().await);
    let stopped = Arc::new(AtomicUsize::new(0));
    let bad: Vec<_> = (0..BAD_CLIENTS)
        .map(|number| {
            let (target, stopped) = (target.clone(), stopped.clone());
            tokio::spawn(bad_clients::run(target, number, stopped))
        })
        .collect();
    let good: Vec<_> = (0..GOOD_CLIENTS)
        .map(|number| tokio::spawn(enqueue(target.clone(), number, stopped.clone())))
        .collect();
    let started = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    while started.elapsed() < duration() {
        ticks.tick().await;
        assert!(served.is_running(), "{}", served.log());
    }
    stopped.store(1, Ordering::Release);
    let memory = served.peak_memory();
    served.stop();
    let mut answered = HashSet::new();
    let (mut calls, mut slowest) = (0, Duration::ZERO);
    for caller in good {
        let report = caller.await.unwrap();
        assert!(!report.ids.is_empty(), "a good client was never served");
        calls += report.ids.len();
        slowest = slowest.max(report.slowest);
        answered.extend(report.ids);
    }
    for caller in bad {
        caller.await.unwrap();
    }
    let due = duration().as_secs_f64() / 60.0 * f64::from(ENQUEUES_PER_MINUTE);
    println!(
        "{calls} enqueued in {:.0?} ({due:.0} were due), slowest answer {slowest:.0?}, peak memory {memory} MiB",
        started.elapsed()
    );
    assert_eq!(answered.len(), calls, "an id was answered twice");
    assert!(memory <= MEMORY_MAX, "{memory} MiB");
    let restarted = ServerProcess::start(store, dir.path());
    let kept = restarted.all_requests(&target).await;
    let lost: Vec<_> = answered.difference(&kept).collect();
    assert!(lost.is_empty(), "{} of {calls} are lost", lost.len());
}

/// The result of a well-behaved client.
#[derive(Default)]
struct Report {
    ids: Vec<String>,
    slowest: Duration,
}

/// Enqueues at a constant rate until the server stops; every response before that must be 201.
async fn enqueue(target: Arc<LoadTarget>, number: u32, stopped: Arc<AtomicUsize>) -> Report {
    let mut report = Report::default();
    let mut connection = HttpConnection::open(target.address).await.unwrap();
    let mut pace = interval(Duration::from_secs(60) * GOOD_CLIENTS / ENQUEUES_PER_MINUTE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for count in 0.. {
        pace.tick().await;
        let body = target.request(&format!("{number}-{count}"));
        let started = Instant::now();
        let answer = connection
            .call(
                "POST",
                &target.requests(),
                &target.key,
                Some(body.as_bytes()),
            )
            .await;
        match answer {
            Ok(answer) if answer.status == 201 => {
                report.slowest = report.slowest.max(started.elapsed());
                report.ids.push(server_process::id_in(&answer));
            }
            // A missing or negative response promises nothing.
            _ if stopped.load(Ordering::Acquire) == 1 => return report,
            other => panic!("caller {number}: {other:?}"),
        }
    }
    report
}
