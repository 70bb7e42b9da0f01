//! `leasehold serve` runs graphs by itself, and is killed again and again while it does: at random, and at each step of finishing a node.
//!
//! Some nodes are calls, some are pauses, some are done by workers over HTTP, and workers die too. What is kept is judged when all is over.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::print_stdout,
    reason = "numbers that were measured are shown beside the test"
)]

mod crew;
mod flow;
mod judgement;
mod server;

use crew::Crew;
use fastrand::Rng;
use leasehold_client::Client;
use leasehold_core::WorkspaceId;
use leasehold_engine_conformance::LocalServer;
use leasehold_testkit::{TestPostgres, eventually, temp_dir};
use server::Server;
use std::time::{Duration, Instant};

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(120);
const EXECUTIONS: usize = 500;
/// Every step inside finishing a node. The last ones come when executions end, which is late.
const STEPS: [&str; 6] = [
    "begun",
    "ended",
    "recorded",
    "enqueued",
    "committed",
    "finished",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_step_all_executions_end_on_sqlite() {
    let folder = temp_dir();
    let url = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    trial(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_step_all_executions_end_on_postgres() {
    let database = TestPostgres::shared().fresh_database(None).await;
    trial(database.url()).await;
}

async fn trial(store: &str) {
    let begun = Instant::now();
    let calls = LocalServer::start().await;
    let mut server = Server::new(store);
    server.start(None);
    let client = server.admin();
    let workspace = flow::enqueue(&client, &calls, EXECUTIONS).await;
    let worker_key = flow::worker_key(&client).await;
    let mut crew = Crew::new(server.url(), &worker_key);
    disturb(&mut server, &mut crew).await;
    until_completed(&client, workspace).await;
    let took = begun.elapsed();
    crew.leave().await;
    server.stop();
    let kept = judgement::open(store).await;
    judgement::all_ended_well(&*kept, workspace, EXECUTIONS).await;
    let (done, tasks) = (crew.done(), EXECUTIONS * flow::TASKS);
    println!(
        "{EXECUTIONS} executions with {} kills in {took:?}; {} of {tasks} tasks were done again",
        2 * STEPS.len(),
        done - tasks,
    );
}

/// Kills the server at random, and at each step of the next life after that. It is restarted each time; now and then a worker dies too.
async fn disturb(server: &mut Server, crew: &mut Crew) {
    let mut rng = Rng::with_seed(6);
    let slice = EXECUTIONS * flow::TASKS / (2 * STEPS.len());
    for (round, step) in STEPS.into_iter().enumerate() {
        let more = rng.usize(1..=slice);
        crew.until_done(crew.done() + more).await;
        server.kill();
        let times = rng.u32(1..=20);
        server.start(Some(&format!("job_finish/{step}:{times}")));
        server.until_dead(step);
        server.start(None);
        if round % 2 == 0 {
            crew.one_dies();
        }
    }
}

async fn until_completed(client: &Client, workspace: WorkspaceId) {
    let done = eventually(PATIENCE, async || {
        let state = client.workspace_get(workspace).await;
        state.is_ok_and(|state| state.requests.completed == EXECUTIONS as u64)
    });
    assert!(
        done.await,
        "not all have completed: {:?}",
        client.workspace_get(workspace).await
    );
}
