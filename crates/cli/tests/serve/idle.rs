//! The load of an idle process on the database, counted in its log. Always connected directly: through a pooler each statement is sent as four.

use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{blocking, database};
use futures::{StreamExt, stream};
use leasehold_core::{Plan, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::workspace::NewWorkspace;
use leasehold_testkit::{Cluster, Process, eventually, fresh_cluster, sized};
use std::future::ready;
use std::time::{Duration, Instant};

/// Long enough that startup statements weigh little.
const WINDOW: Duration = Duration::from_secs(20);
/// Windows of which one must be idle.
const WINDOWS: usize = 3;
/// Maximum statements per second.
const MAX_RATE: f64 = 8.0;

/// Number of statements in the log of PostgreSQL.
fn statements(cluster: &Cluster) -> usize {
    let log = std::fs::read_to_string(cluster.directory().join("log")).unwrap();
    let is_statement =
        |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    log.lines().filter(is_statement).count()
}

/// Statements per second while the processes are idle. Measured again if it is too high: on a busy machine statements of the start come late.
async fn rate(cluster: &Cluster, processes: &mut [&mut Process]) -> f64 {
    let mut lowest = f64::INFINITY;
    for _ in 0..WINDOWS {
        lowest = rate_of_window(cluster, processes).await.min(lowest);
        if lowest <= MAX_RATE {
            break;
        }
    }
    lowest
}

async fn rate_of_window(cluster: &Cluster, processes: &mut [&mut Process]) -> f64 {
    let (before, started) = (statements(cluster), Instant::now());
    let ended = eventually(WINDOW, || {
        ready(processes.iter_mut().any(|process| !process.is_running()))
    });
    assert!(!ended.await, "a process ended");
    let counted = statements(cluster) - before;
    counted as f64 / started.elapsed().as_secs_f64()
}

/// The rate with the embedded engine, which also polls for nodes and timeouts.
async fn embedded(cluster: &Cluster) -> f64 {
    let program = Program::bare()
        .set("store.url", &cluster.url())
        .set("log.level", "info,leasehold_runtime=trace");
    let mut serve = program.start();
    program::wait_for_lines(&serve, program::LOCK_ACQUIRED, 1).await;
    let rate = rate(cluster, &mut [&mut serve]).await;
    program::stop(&mut serve);
    rate
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_processes_send_few_statements() {
    // Durability does not matter for this test.
    let mut cluster = blocking(|| fresh_cluster(&[("fsync", "off"), ("log_statement", "all")]));
    let store = database::store(&cluster.url());
    store.schema_migrate().await.unwrap();
    stream::iter(0..sized(2_000, 10_000))
        .for_each_concurrent(8, async |number| {
            let id: WorkspaceId = fresh_id();
            let new = NewWorkspace {
                id,
                name: format!("workspace {number}"),
                plan: Plan::Free,
                limit_override: None,
            };
            store
                .workspace_create(&new, &leasehold_store::Actor::Local)
                .await
                .unwrap();
        })
        .await;
    drop(store);
    let namespace = Namespace::fresh();
    let program = Program::temporal()
        .set("store.url", &cluster.url())
        .set("temporal.address", namespace.address())
        .set("temporal.namespace", &namespace.name)
        .set("log.level", "info,leasehold_runtime=trace");
    let mut first = program.start();
    program::wait_for_lines(&first, program::LOCK_ACQUIRED, 1).await;
    let one = rate(&cluster, &mut [&mut first]).await;
    let mut second = program.start();
    // The second process failed to acquire each of the four locks.
    program::wait_for_lines(&second, "lock unavailable", 4).await;
    let two = rate(&cluster, &mut [&mut first, &mut second]).await;
    println!("statements per second: {one:.2} with one idle process, {two:.2} with two");
    program::stop(&mut first);
    program::stop(&mut second);
    let embedded = embedded(&cluster).await;
    println!("statements per second: {embedded:.2} with one idle process that runs graphs");
    blocking(|| cluster.stop()).unwrap();
    for rate in [one, two, embedded] {
        assert!(rate <= MAX_RATE, "{rate:.2}");
    }
}
