//! A Python and a Rust worker process share one queue; the test kills one of them while it runs jobs.

use crate::WAIT_TIMEOUT;
use crate::counting_server::{CountingServer, QUEUE, until};
use leasehold_client::api::job::{Job, NewJob, NewJobs};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{Process, example_program};
use serde::Deserialize;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::task::block_in_place;

const JOBS: usize = 1_000;
/// Jobs that the killed worker has completed before.
const KILL_AFTER: usize = 100;
/// Ready jobs below which more are enqueued until the kill: a worker that starts late finds some too.
const READY_MIN: u64 = 200;
const LEASE_MS: &str = "2000";
const WORK_SECONDS: &str = "0.004";
/// A worker that waits for the answer to its claim takes longer; generous for a slow machine.
const AT_ONCE: Duration = Duration::from_secs(30);

/// The job result of both workers.
#[derive(Deserialize)]
struct JobResult {
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
    /// Whether this is the name of the process's worker: the name contains the process id.
    fn is(&self, worker: &str) -> bool {
        worker.contains(&format!("-{}-", self.process.pid()))
    }
}

async fn start(server: &CountingServer, language: Language) -> Child {
    start_with(server, language, LEASE_MS, WORK_SECONDS).await
}

async fn start_with(
    server: &CountingServer,
    language: Language,
    lease_ms: &str,
    work_seconds: &str,
) -> Child {
    let mut command = match language {
        Language::Python => {
            let mut python = Command::new("python3");
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/worker.py");
            // No bytecode cache in the source tree.
            python.args(["-B", "-u"]).arg(script);
            python
        }
        Language::Rust => Command::new(example_program("http_worker")),
    };
    let queues = vec![QUEUE.to_owned()];
    let scope = leasehold_core::key::KeyScope::Worker { queues };
    let key = server.key(scope).await;
    command
        .arg(format!("http://{}", server.address))
        .arg(QUEUE)
        .env("LEASEHOLD_KEY", key)
        .env("LEASE_MS", lease_ms)
        .env("WORK_SECONDS", work_seconds);
    Child {
        process: Process::spawn(command),
    }
}

async fn enqueue(server: &CountingServer, numbers: Range<usize>) {
    let job = |number: usize| NewJob::new("welcome", JsonText::of(&number).unwrap());
    let jobs = numbers.map(job).collect();
    let jobs = server
        .client
        .job_enqueue_many(QUEUE, &NewJobs { jobs })
        .await;
    assert!(jobs.unwrap().iter().all(|job| job.inserted));
}

async fn jobs(server: &CountingServer, status: JobStatus) -> Vec<Job> {
    let list = server.client.job_list(QUEUE, Some(status)).limit(1_000);
    list.all().await.unwrap()
}

fn job_result(job: &Job) -> JobResult {
    job.result.as_ref().unwrap().read().unwrap()
}

/// Returns the jobs that the child has leased.
async fn held_by(server: &CountingServer, child: &Child) -> BTreeSet<JobId> {
    let running = jobs(server, JobStatus::Running).await;
    let own = |job: &Job| child.is(job.claimed_by.as_deref().unwrap_or_default());
    running
        .iter()
        .filter(|job| own(job))
        .map(|job| job.id)
        .collect()
}

/// Enqueues more jobs when few are ready.
async fn top_up(server: &CountingServer, enqueued: &Cell<usize>) {
    if server.client.queue_counts(QUEUE).await.unwrap().ready < READY_MIN {
        let first = enqueued.get();
        enqueue(server, first..first + JOBS).await;
        enqueued.set(first + JOBS);
    }
}

/// Kills the process when it has completed some jobs and leased others. Returns the leased ones.
async fn kill_while_running(
    server: &CountingServer,
    victim: &mut Child,
    enqueued: &Cell<usize>,
) -> BTreeSet<JobId> {
    until("the victim has completed some jobs", async || {
        top_up(server, enqueued).await;
        let done = jobs(server, JobStatus::Completed).await;
        done.iter()
            .filter(|job| victim.is(&job_result(job).by))
            .count()
            >= KILL_AFTER
    })
    .await;
    loop {
        // Suspended, it cannot finish or claim a job between the read and the kill.
        block_in_place(|| victim.process.stop());
        // Calls sent before have been answered.
        until("no call is under way", async || {
            server.under_way() <= server.state.waiting_claims()
        })
        .await;
        let held = held_by(server, victim).await;
        if !held.is_empty() {
            block_in_place(|| victim.process.kill());
            return held;
        }
        block_in_place(|| victim.process.cont());
        until("the victim has jobs", async || {
            top_up(server, enqueued).await;
            !held_by(server, victim).await.is_empty()
        })
        .await;
    }
}

async fn killed_worker_loses_no_job(on: BackendKind, killed: Language) {
    let server = CountingServer::new(on).await;
    enqueue(&server, 0..JOBS).await;
    let enqueued = Cell::new(JOBS);
    let (mut python, mut rust) = (
        start(&server, Language::Python).await,
        start(&server, Language::Rust).await,
    );
    let (victim, survivor) = match killed {
        Language::Python => (&mut python, &mut rust),
        Language::Rust => (&mut rust, &mut python),
    };
    let held = kill_while_running(&server, victim, &enqueued).await;
    let enqueued = enqueued.get();
    until("all are completed", async || {
        let counts = server.client.queue_counts(QUEUE).await.unwrap();
        counts.completed == enqueued as u64
    })
    .await;
    let done = jobs(&server, JobStatus::Completed).await;
    let payloads: BTreeSet<usize> = done.iter().map(|job| job_result(job).payload).collect();
    assert_eq!(payloads, (0..enqueued).collect());
    let mut taken_over = 0;
    for job in &done {
        let by = job_result(job).by;
        assert!(victim.is(&by) || survivor.is(&by), "{by}");
        // A call that the victim sent before may have been answered after the read.
        if held.contains(&job.id) && survivor.is(&by) {
            assert!(job.attempts >= 2, "job {} was claimed once", job.id);
            taken_over += 1;
        }
    }
    assert!(taken_over > 0, "the survivor took over none of {held:?}");
    block_in_place(|| survivor.process.terminate());
    let status = block_in_place(|| survivor.process.wait(WAIT_TIMEOUT));
    assert!(status.success(), "{status}");
    let counts = server.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!(
        (counts.running, counts.failed, counts.completed),
        (0, 0, enqueued as u64)
    );
}

/// Suspends a worker that waits for a job. The server sends it one, whose lease passes; another worker completes the job.
async fn stopped_idle_worker_does_not_run_a_finished_job(on: BackendKind, language: Language) {
    let server = CountingServer::new(on).await;
    let mut stopped = start(&server, language).await;
    server.until_waiting().await;
    block_in_place(|| stopped.process.stop());
    enqueue(&server, 0..1).await;
    until("the suspended worker has the job", async || {
        !held_by(&server, &stopped).await.is_empty()
    })
    .await;
    let first = jobs(&server, JobStatus::Running).await.remove(0);
    until("its lease has passed", async || {
        server.store.now().await.unwrap() > first.lease_expires_at.unwrap()
    })
    .await;
    let mut other = start_with(&server, Language::Rust, "60000", "0").await;
    until_completed(&server, 1).await;
    block_in_place(|| other.process.terminate());
    block_in_place(|| other.process.wait(WAIT_TIMEOUT));
    block_in_place(|| stopped.process.cont());
    // The next job comes after the one that it got while it was suspended.
    enqueue(&server, 1..2).await;
    until_completed(&server, 2).await;
    block_in_place(|| stopped.process.terminate());
    let status = block_in_place(|| stopped.process.wait(WAIT_TIMEOUT));
    assert!(status.success(), "{status}");
    let job = server.client.job_get(first.id).await.unwrap();
    assert!(other.is(&job_result(&job).by));
    let worked_on = |id: JobId| {
        let text = format!("working on job {id}");
        let lines = stopped.process.lines();
        lines.iter().any(|line| has_words(line, &text))
    };
    for job in jobs(&server, JobStatus::Completed).await {
        assert_eq!(worked_on(job.id), job.id != first.id, "job {}", job.id);
    }
}

/// Whether the line contains the text, and its last number is not longer than in the text.
fn has_words(line: &str, text: &str) -> bool {
    let after = line.split_once(text).map(|(_, after)| after);
    after.is_some_and(|after| !after.starts_with(|next: char| next.is_ascii_digit()))
}

async fn until_completed(server: &CountingServer, count: u64) {
    until("the jobs are completed", async || {
        server.client.queue_counts(QUEUE).await.unwrap().completed == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_idle_rust_worker_does_not_run_a_finished_job_on_postgres() {
    stopped_idle_worker_does_not_run_a_finished_job(BackendKind::Postgres, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_idle_rust_worker_does_not_run_a_finished_job_on_sqlite() {
    stopped_idle_worker_does_not_run_a_finished_job(BackendKind::Sqlite, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_idle_python_worker_does_not_run_a_finished_job() {
    stopped_idle_worker_does_not_run_a_finished_job(BackendKind::Sqlite, Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_killed_on_postgres() {
    killed_worker_loses_no_job(BackendKind::Postgres, Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_killed_on_sqlite() {
    killed_worker_loses_no_job(BackendKind::Sqlite, Language::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_killed_on_postgres() {
    killed_worker_loses_no_job(BackendKind::Postgres, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_killed_on_sqlite() {
    killed_worker_loses_no_job(BackendKind::Sqlite, Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_python_worker_returns_unstarted_jobs() {
    let server = CountingServer::new(BackendKind::Sqlite).await;
    // Slow jobs and a long lease: most jobs are left when the signal arrives, also on a busy machine.
    let mut python = start_with(&server, Language::Python, "60000", "0.1").await;
    server.until_waiting().await;
    enqueue(&server, 0..JOBS).await;
    until("the worker runs jobs", async || {
        !held_by(&server, &python).await.is_empty()
    })
    .await;
    block_in_place(|| python.process.terminate());
    let status = block_in_place(|| python.process.wait(WAIT_TIMEOUT));
    assert!(status.success(), "{status}");
    let counts = server.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!((counts.running, counts.failed), (0, 0));
    assert!(counts.ready > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_python_worker_stops_at_once_without_leases() {
    let server = CountingServer::new(BackendKind::Sqlite).await;
    let mut python = start(&server, Language::Python).await;
    server.until_waiting().await;
    block_in_place(|| python.process.terminate());
    let status = block_in_place(|| python.process.wait(AT_ONCE));
    assert!(status.success(), "{status}");
    until("no claim waits", async || {
        server.state.waiting_claims() == 0
    })
    .await;
    enqueue(&server, 0..1).await;
    let counts = server.client.queue_counts(QUEUE).await.unwrap();
    assert_eq!(counts.ready, 1);
}
