//! What an idle process costs the database, as the database sees it.

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

/// Long enough that what is sent once a start weighs little.
const WINDOW: Duration = Duration::from_secs(20);
/// Statements a second.
const A_HANDFUL: f64 = 8.0;

/// How many statements the server has written to its log.
fn statements(cluster: &Cluster) -> usize {
    let log = std::fs::read_to_string(cluster.folder().join("log")).unwrap();
    let is_statement =
        |line: &&str| line.contains("LOG:  execute ") || line.contains("LOG:  statement: ");
    log.lines().filter(is_statement).count()
}

/// Statements a second while the processes do nothing.
async fn rate(cluster: &Cluster, processes: &mut [&mut Process]) -> f64 {
    let (before, begun) = (statements(cluster), Instant::now());
    let ended = eventually(WINDOW, || {
        ready(processes.iter_mut().any(|process| !process.is_running()))
    });
    assert!(!ended.await, "a process ended");
    let counted = statements(cluster) - before;
    counted as f64 / begun.elapsed().as_secs_f64()
}

/// The same with the embedded engine, which looks for nodes and for timeouts too.
async fn embedded(cluster: &Cluster) -> f64 {
    let program = Program::bare()
        .set("store.url", &cluster.url())
        .set("log.level", "info,leasehold_runtime=trace");
    let mut serve = program.start();
    program::said(&serve, program::WORKS, 1).await;
    let rate = rate(cluster, &mut [&mut serve]).await;
    program::stop(&mut serve);
    rate
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_processes_with_thousands_of_workspaces_send_a_handful_of_statements_a_second() {
    // Making the workspaces need not be durable, and only what the processes send is of interest.
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
            store.workspace_create(&new).await.unwrap();
        })
        .await;
    drop(store);
    let namespace = Namespace::fresh();
    let program = Program::new(&cluster.url(), namespace.address(), &namespace.name)
        .set("log.level", "info,leasehold_runtime=trace");
    let mut first = program.start();
    program::said(&first, program::WORKS, 1).await;
    let one = rate(&cluster, &mut [&mut first]).await;
    let mut second = program.start();
    // It has found out that it has nothing to do, four times.
    program::said(&second, "lock unavailable", 4).await;
    let two = rate(&cluster, &mut [&mut first, &mut second]).await;
    println!("statements a second: {one:.2} with one idle process, {two:.2} with two");
    program::stop(&mut first);
    program::stop(&mut second);
    let embedded = embedded(&cluster).await;
    println!("statements a second: {embedded:.2} with one idle process that runs graphs");
    blocking(|| cluster.stop()).unwrap();
    for rate in [one, two, embedded] {
        assert!(rate <= A_HANDFUL, "{rate:.2}");
    }
}
