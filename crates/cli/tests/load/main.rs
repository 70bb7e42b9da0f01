//! `leasehold serve` under load: ten thousand enqueues a minute from fifty connections while others send garbage and slow bodies, and a stop in the middle.
//!
//! Ten seconds of it; two minutes with `cargo xtask test --full`.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::print_stdout,
    reason = "numbers that were measured are shown beside the test"
)]

mod nuisance;
mod served;

use leasehold_testkit::{HttpConnection, TestPostgres, sized, temp_dir};
use served::{LoadTarget, Served};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// Callers that do nothing wrong.
const GOOD: u32 = 50;
/// Those that do nothing right.
const BAD: u32 = 20;
/// What the good ones enqueue in a minute, all together.
const A_MINUTE: u32 = 10_000;
/// Most memory the server may have held, in MiB.
const MEMORY_MAX: u64 = 256;

fn duration() -> Duration {
    Duration::from_secs(sized(10, 120))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_callers_are_served_beside_bad_ones_and_nothing_is_lost_on_sqlite() {
    let folder = temp_dir();
    let store = format!("sqlite:{}", folder.path().join("load.db").display());
    trial(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_callers_are_served_beside_bad_ones_and_nothing_is_lost_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    trial(database.url()).await;
}

async fn trial(store: &str) {
    let folder = temp_dir();
    let mut served = Served::start(store, folder.path());
    let target = Arc::new(served.target().await);
    let stopped = Arc::new(AtomicUsize::new(0));
    let bad: Vec<_> = (0..BAD)
        .map(|number| {
            let (target, stopped) = (target.clone(), stopped.clone());
            tokio::spawn(nuisance::bother(target, number, stopped))
        })
        .collect();
    let good: Vec<_> = (0..GOOD)
        .map(|number| tokio::spawn(enqueue(target.clone(), number, stopped.clone())))
        .collect();
    let begun = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    while begun.elapsed() < duration() {
        ticks.tick().await;
        assert!(served.is_running(), "{}", served.log());
    }
    stopped.store(1, Ordering::Release);
    let memory = served.most_memory();
    served.stop();
    let mut answered = HashSet::new();
    let (mut calls, mut slowest) = (0, Duration::ZERO);
    for caller in good {
        let report = caller.await.unwrap();
        assert!(!report.ids.is_empty(), "a good caller was never served");
        calls += report.ids.len();
        slowest = slowest.max(report.slowest);
        answered.extend(report.ids);
    }
    for caller in bad {
        caller.await.unwrap();
    }
    let due = duration().as_secs_f64() / 60.0 * f64::from(A_MINUTE);
    println!(
        "{calls} enqueued in {:.0?} ({due:.0} were due), slowest answer {slowest:.0?}, the server held {memory} MiB at most",
        begun.elapsed()
    );
    assert_eq!(answered.len(), calls, "an id was answered twice");
    assert!(memory <= MEMORY_MAX, "{memory} MiB");
    let again = Served::start(store, folder.path());
    let kept = again.all_requests(&target).await;
    let lost: Vec<_> = answered.difference(&kept).collect();
    assert!(lost.is_empty(), "{} of {calls} are lost", lost.len());
}

/// What a good caller saw.
#[derive(Default)]
struct Report {
    ids: Vec<String>,
    slowest: Duration,
}

/// Enqueues at an even pace until the server is told to stop; until then every answer is a good one.
async fn enqueue(target: Arc<LoadTarget>, number: u32, stopped: Arc<AtomicUsize>) -> Report {
    let mut report = Report::default();
    let mut connection = HttpConnection::open(target.address).await.unwrap();
    let mut pace = interval(Duration::from_secs(60) * GOOD / A_MINUTE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for count in 0.. {
        pace.tick().await;
        let body = target.request(&format!("{number}-{count}"));
        let begun = Instant::now();
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
                report.slowest = report.slowest.max(begun.elapsed());
                report.ids.push(served::id_in(&answer));
            }
            // What was not answered, or answered with a refusal, was not promised.
            _ if stopped.load(Ordering::Acquire) == 1 => return report,
            other => panic!("caller {number}: {other:?}"),
        }
    }
    report
}
