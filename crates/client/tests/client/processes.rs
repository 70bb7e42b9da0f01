//! The worker in Python and the one in Rust, each a process, draw from one queue; one of them is killed in the middle.

use crate::PATIENCE;
use crate::counting_server::{CountingServer, QUEUE, until};
use leasehold_client::api::job::{Job, NewJob, NewJobs};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{Process, example_program};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tokio::task::block_in_place;

const JOBS: usize = 1_000;
/// How many the victim has done when it is killed.
const MIDDLE: usize = 100;
const LEASE_MS: &str = "2000";
const WORK_SECONDS: &str = "0.004";

/// What both workers answer.
#[derive(Deserialize)]
struct Answer {
    payload: usize,
    by: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Rust,
}

struct Child {
    process: Process,
}

impl Child {
    /// Whether a worker of this name is it: the name has the process's id in it.
    fn is(&self, worker: &str) -> bool {
        worker.contains(&format!("-{}-", self.process.pid()))
    }
}

async fn start(ground: &CountingServer, language: Language) -> Child {
    let mut command = match language {
        Language::Python => {
            let mut python = Command::new("python3");
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
            // No cache beside the script, which lies in the source tree.
            python.args(["-B", "-u"]).arg(script);
            python
        }
        Language::Rust => Command::new(example_program("http_worker")),
    };
    let queues = vec![QUEUE.to_owned()];
    let scope = leasehold_core::key::KeyScope::Worker { queues };
    let key = ground.key(scope).await;
    command
        .arg(format!("http://{}", ground.address))
        .arg(QUEUE)
        .env("LEASEHOLD_KEY", key)
        .env("LEASE_MS", LEASE_MS)
        .env("WORK_SECONDS", WORK_SECONDS);
    Child {
        process: Process::spawn(command),
    }
}

async fn enqueue(ground: &CountingServer, count: usize) {
    let job = |number: usize| NewJob::new("welcome", JsonText::of(&number).unwrap());
    let jobs = (0..count).map(job).collect();
    let jobs = ground
        .client
        .job_enqueue_many(QUEUE, &NewJobs { jobs })
        .await;
    assert!(jobs.unwrap().iter().all(|job| job.inserted));
}

async fn jobs(ground: &CountingServer, status: JobStatus) -> Vec<Job> {
    let list = ground.client.job_list(QUEUE, Some(status)).limit(1_000);
    list.all().await.unwrap()
}

fn answer(job: &Job) -> Answer {
    job.result.as_ref().unwrap().read().unwrap()
}

/// What the child has in its hands now.
async fn held_by(ground: &CountingServer, child: &Child) -> BTreeSet<JobId> {
    let running = jobs(ground, JobStatus::Running).await;
    let own = |job: &Job| child.is(job.claimed_by.as_deref().unwrap_or_default());
    running
        .iter()
        .filter(|job| own(job))
        .map(|job| job.id)
        .collect()
}

/// Kills it when it has done some and has others in its hands; returns which.
async fn kill_in_the_middle(ground: &CountingServer, victim: &mut Child) -> BTreeSet<JobId> {
    until("the victim is in the middle", async || {
        let done = jobs(ground, JobStatus::Completed).await;
        done.iter().filter(|job| victim.is(&answer(job).by)).count() >= MIDDLE
    })
    .await;
    loop {
        // It cannot finish or claim anything between the look and its end.
        block_in_place(|| victim.process.stop());
        // Nor do calls that it had sent before change anything later.
        until("no call is under way", async || {
            ground.under_way() <= ground.state.waiting_claims()
        })
        .await;
        let held = held_by(ground, victim).await;
        if !held.is_empty() {
            block_in_place(|| victim.process.kill());
            return held;
        }
        block_in_place(|| victim.process.cont());
        until("the victim has jobs", async || {
            !held_by(ground, victim).await.is_empty()
        })
        .await;
    }
}

async fn one_killed_in_the_middle_loses_nothing(on: BackendKind, killed: Language) {
    let ground = CountingServer::new(on).await;
    enqueue(&ground, JOBS).await;
    let (mut python, mut rust) = (
        start(&ground, Language::Python).await,
        start(&ground, Language::Rust).await,
    );
    let (victim, survivor) = match killed {
        Language::Python => (&mut python, &mut rust),
        Language::Rust => (&mut rust, &mut python),
    };
    let held = kill_in_the_middle(&ground, victim).await;
    until("all are completed", async || {
        jobs(&ground, JobStatus::Completed).await.len() == JOBS
    })
    .await;
    let done = jobs(&ground, JobStatus::Completed).await;
    let payloads: BTreeSet<usize> = done.iter().map(|job| answer(job).payload).collect();
    assert_eq!(payloads, (0..JOBS).collect());
    let mut taken_over = 0;
    for job in &done {
        let by = answer(job).by;
        assert!(victim.is(&by) || survivor.is(&by), "{by}");
        // What the victim had sent before it was stopped may still have arrived after the look.
        if held.contains(&job.id) && survivor.is(&by) {
            assert!(job.attempts >= 2, "job {} was claimed once", job.id);
            taken_over += 1;
        }
    }
    assert!(taken_over > 0, "the survivor took over none of {held:?}");
    block_in_place(|| survivor.process.terminate());
    let status = block_in_place(|| survivor.process.wait(PATIENCE));
    assert!(status.success(), "{status}");
    let counts = ground.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!(
        (counts.running, counts.failed, counts.completed),
        (0, 0, JOBS as u64)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_killed_on_postgres() {
    one_killed_in_the_middle_loses_nothing(BackendKind::Postgres, Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_killed_on_sqlite() {
    one_killed_in_the_middle_loses_nothing(BackendKind::Sqlite, Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_killed_on_postgres() {
    one_killed_in_the_middle_loses_nothing(BackendKind::Postgres, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_killed_on_sqlite() {
    one_killed_in_the_middle_loses_nothing(BackendKind::Sqlite, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_worker_that_is_told_to_stop_gives_back_what_it_did_not_start() {
    let ground = CountingServer::new(BackendKind::Sqlite).await;
    let mut python = start(&ground, Language::Python).await;
    ground.until_waiting().await;
    enqueue(&ground, JOBS).await;
    until("it works", async || {
        !held_by(&ground, &python).await.is_empty()
    })
    .await;
    block_in_place(|| python.process.terminate());
    let status = block_in_place(|| python.process.wait(PATIENCE));
    assert!(status.success(), "{status}");
    let counts = ground.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!((counts.running, counts.failed), (0, 0));
    assert!(counts.ready > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_worker_that_waits_stops_at_once_and_leaves_nothing_leased() {
    let ground = CountingServer::new(BackendKind::Sqlite).await;
    let mut python = start(&ground, Language::Python).await;
    ground.until_waiting().await;
    block_in_place(|| python.process.terminate());
    let status = block_in_place(|| python.process.wait(PATIENCE / 2));
    assert!(status.success(), "{status}");
    until("nobody waits", async || ground.state.waiting_claims() == 0).await;
    enqueue(&ground, 1).await;
    let counts = ground.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!(counts.ready, 1);
}
