//! The program of a worker process: opens a store, runs workers and the sweeper, says what happens, and drains when it is told to end.
//! It lives in the test program, which starts itself again for it. Judges nothing.

use crate::orders::{Behaviour, Done, Orders, Said};
use crate::unsteady::Unsteady;
use crate::{NEVER, take};
use futures::future::join_all;
use leasehold_core::JsonText;
use leasehold_core::job::{Again, JobEnd, JobFinish, JobRef};
use leasehold_runtime::{JobSweeper, JobSweeperOptions, StoreSource};
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_worker::{JobContext, JobError, JobSource, Outcome, Worker};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Holds a process's orders.
pub(crate) const ORDERS: &str = "LEASEHOLD_TEST_WORKER";
/// The name of the test below.
pub(crate) const PROGRAM: &str = "program::a_process_with_orders_follows_them";

/// What a child process runs. Without orders, as among the other tests, there is nothing to follow.
#[test]
fn a_process_with_orders_follows_them() {
    let Ok(orders) = std::env::var(ORDERS) else {
        return;
    };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    if !orders.quiet {
        // Shown beside what it says when a test fails.
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
        log.with_writer(std::io::stderr).init();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(follow(orders));
}

async fn follow(orders: Orders) {
    let mut told_to_end = signal(SignalKind::terminate()).unwrap();
    let store = orders.place.open();
    let (ended, ends) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for number in 0..orders.workers {
        let name = format!("{}-{number}", orders.name);
        workers.push(worker(&orders, name, store.clone(), ended.clone()).start());
    }
    tokio::spawn(sweep(store.clone(), orders.sweep));
    if let Behaviour::Defy { .. } = orders.behaviour {
        tokio::spawn(defy(store, format!("{}-0", orders.name), ends));
    }
    let clock = UNIX_EPOCH.elapsed().unwrap().as_secs().cast_signed();
    say(&Said::Ready { clock });
    told_to_end.recv().await;
    let stats = join_all(workers.into_iter().map(|worker| worker.stop())).await;
    let done = stats.into_iter().fold(Done::default(), Done::add);
    say(&Said::Stopped { done });
}

fn worker(
    orders: &Orders,
    name: String,
    store: Arc<dyn Store>,
    ended: UnboundedSender<JobRef>,
) -> Worker {
    let mut source: Arc<dyn JobSource> = Arc::new(StoreSource::new(store));
    if let Behaviour::Chance = orders.behaviour {
        source = Arc::new(Unsteady::before(source, orders.lease));
    }
    let mut worker = Worker::of(source)
        .name(name)
        .concurrency(orders.concurrency)
        .prefetch(0)
        .lease(orders.lease)
        // Only wake-ups and due times make it look.
        .poll_interval(NEVER);
    for queue in &orders.queues {
        worker = worker.queue(queue);
    }
    let (behaviour, quiet, lease) = (orders.behaviour.clone(), orders.quiet, orders.lease);
    let handler = move |payload: Value, job: JobContext| {
        let (behaviour, ended) = (behaviour.clone(), ended.clone());
        async move {
            let mut seen = Seen::start(job.clone(), quiet, ended);
            let answer = behave(&behaviour, payload, &job, lease).await;
            seen.answered = true;
            answer
        }
    };
    worker.handler("work", handler).build().unwrap()
}

async fn behave(
    behaviour: &Behaviour,
    payload: Value,
    job: &JobContext,
    lease: Duration,
) -> Result<Outcome, JobError> {
    match behaviour {
        Behaviour::Finish => {}
        Behaviour::Hold => std::future::pending().await,
        Behaviour::Defy { ends_after } => {
            if job.id().0 % 2 == 0 {
                take(*ends_after).await;
            } else {
                std::future::pending().await
            }
        }
        Behaviour::AsTold => {
            let told: crate::orders::Told = serde_json::from_value(payload)?;
            if told.fails_once && job.attempt() == 1 {
                return Err(JobError::new("as told"));
            }
            if told.hangs_once && job.attempt() == 1 {
                std::future::pending().await
            }
            take(told.takes).await;
        }
        Behaviour::Chance => match fastrand::u32(..100) {
            0..3 => return Err(JobError::retry_after(lease / 10, "by chance")),
            3..6 => return Ok(Outcome::snooze(lease / 10)),
            // Some outlive a lease that nobody renews.
            6..36 => take(lease.mul_f64(fastrand::f64() * 1.5)).await,
            _ => take(lease.mul_f64(fastrand::f64() * 0.1)).await,
        },
    }
    Outcome::done(&())
}

/// Looks for expired leases as an instance of Leasehold does.
async fn sweep(store: Arc<dyn Store>, interval: Duration) {
    let options = JobSweeperOptions {
        interval,
        ..JobSweeperOptions::default()
    };
    let sweeper = JobSweeper::new(store, options);
    loop {
        match sweeper.run_once().await {
            Ok(Next::Again) => {}
            Ok(Next::After(wait)) => take(wait).await,
            Err(_) => take(interval).await,
        }
    }
}

/// Tries with each claim whose handler has ended what only its owner may do.
async fn defy(store: Arc<dyn Store>, worker: String, mut ends: UnboundedReceiver<JobRef>) {
    while let Some(claim) = ends.recv().await {
        let lease = Duration::from_secs(60);
        let renewed = store.job_renew(&worker, &[claim], lease).await.unwrap();
        let complete = JobEnd::Completed { result: None };
        let fail = JobEnd::Failed {
            error: "in defiance".to_owned(),
            again: Again::Policy,
        };
        let mut ends = Vec::new();
        for end in [complete, fail, JobEnd::Snoozed(lease), JobEnd::GivenBack] {
            let finish = JobFinish { claim, end };
            let answer = store.job_finish(&worker, &[finish]).await.unwrap();
            ends.push(format!("{:?}", answer.jobs[0]));
        }
        let note = JsonText::default();
        let progress = store.job_progress(&worker, claim, &note).await.unwrap();
        say(&Said::Defied {
            job: claim.job,
            token: claim.token,
            renewed: renewed.len(),
            ends,
            progress,
        });
    }
}

/// Says when a handler began and how it ended.
struct Seen {
    job: JobContext,
    quiet: bool,
    answered: bool,
    ended: UnboundedSender<JobRef>,
}

impl Seen {
    fn start(job: JobContext, quiet: bool, ended: UnboundedSender<JobRef>) -> Self {
        if !quiet {
            say(&Said::Started {
                job: job.id(),
                token: job.token(),
                attempt: job.attempt(),
                worker: job.worker().to_owned(),
            });
        }
        Self {
            job,
            quiet,
            answered: false,
            ended,
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let (job, token) = (self.job.id(), self.job.token());
        if !self.quiet {
            say(&if self.answered {
                Said::Answered { job, token }
            } else {
                let cancelled = self.job.cancellation().is_cancelled();
                Said::Dropped {
                    job,
                    token,
                    cancelled,
                }
            });
        }
        // Nobody listens but in a process that defies.
        let _ = self.ended.send(JobRef { job, token });
    }
}

/// One line, whole: several threads say things.
fn say(said: &Said) {
    let line = serde_json::to_string(said).unwrap() + "\n";
    // Whoever listened may be gone.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}
