//! `leasehold serve` runs graphs while it is killed repeatedly: at random times, at each step of finishing a node, and by the input of a request.
//!
//! The graph has `http`, `delay` and `task` nodes; workers over HTTP die too. The test checks the store at the end.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "prints measurements")]

mod assertions;
mod attacks;
mod failover;
mod flow;
mod next_program;
mod poison;
mod queue_ownership;
mod rolling_upgrade;
mod server;
mod workers;

use fastrand::Rng;
use leasehold_client::Client;
use leasehold_core::WorkspaceId;
use leasehold_engine_conformance::LocalServer;
use leasehold_testkit::{TestPostgres, eventually, temp_dir};
use server::Server;
use std::time::{Duration, Instant};
use workers::WorkerPool;

/// Generous for slow machines; conditions hold much sooner.
const TIMEOUT: Duration = Duration::from_secs(600);
const EXECUTIONS: usize = 500;
/// Failpoints inside `job_finish`. The last ones are reached only when executions finish.
const STEPS: [&str; 6] = [
    "begun",
    "ended",
    "recorded",
    "enqueued",
    "committed",
    "finished",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_executions_complete_despite_crashes_on_sqlite() {
    let dir = temp_dir();
    let url = format!("sqlite:{}", dir.path().join("leasehold.db").display());
    run_with_crashes(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_executions_complete_despite_crashes_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    run_with_crashes(database.url()).await;
}

async fn run_with_crashes(store: &str) {
    let started = Instant::now();
    let calls = LocalServer::start().await;
    let mut server = Server::new(store);
    server.start(None);
    let client = server.admin();
    let workspace = flow::enqueue(&client, &calls, EXECUTIONS).await;
    let worker_key = flow::worker_key(&client).await;
    let mut pool = WorkerPool::new(server.url(), &worker_key);
    crash_repeatedly(&mut server, &mut pool).await;
    until_completed(&client, workspace).await;
    let took = started.elapsed();
    pool.stop().await;
    server.stop();
    let store_after = assertions::open(store).await;
    assertions::assert_all_completed(&*store_after, workspace, EXECUTIONS).await;
    let (done, tasks) = (pool.done(), EXECUTIONS * flow::TASKS);
    println!(
        "{EXECUTIONS} executions with {} kills in {took:?}; {} of {tasks} tasks were repeated",
        2 * STEPS.len(),
        done - tasks,
    );
}

/// Kills the server at a random time, restarts it with a failpoint, and restarts it again; also kills workers.
async fn crash_repeatedly(server: &mut Server, pool: &mut WorkerPool) {
    let mut rng = Rng::with_seed(6);
    let slice = EXECUTIONS * flow::TASKS / (2 * STEPS.len());
    let mut done = 0;
    for (round, step) in STEPS.into_iter().enumerate() {
        // Counted from the beginning: a slow machine may already have done more.
        done += rng.usize(1..=slice);
        pool.until_done(done).await;
        server.kill();
        let times = rng.u32(1..=20);
        server.start(Some(&format!("job_finish/{step}:{times}")));
        server.until_dead(step);
        server.start(None);
        if round % 2 == 0 {
            pool.kill_one();
        }
    }
}

async fn until_completed(client: &Client, workspace: WorkspaceId) {
    let done = eventually(TIMEOUT, async || {
        let state = client.workspace_get(workspace).await;
        state.is_ok_and(|state| state.requests.completed == EXECUTIONS as u64)
    });
    assert!(
        done.await,
        "not all have completed: {:?}",
        client.workspace_get(workspace).await
    );
}
