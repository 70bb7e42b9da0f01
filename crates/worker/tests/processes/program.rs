//! The program of a worker process: opens a store, runs workers and the sweeper, reports events, and drains on SIGTERM.
//! It is part of the test binary, which starts itself again. Asserts nothing.

use crate::flaky_source::FlakySource;
use crate::protocol::{Behaviour, ProcessConfig, ProcessEvent, WorkTotals};
use crate::{NEVER, work_for};
use futures::future::join_all;
use leasehold_core::JsonText;
use leasehold_core::job::{JobEnd, JobFinish, JobRef, RetryMode};
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

/// The environment variable with a process's configuration.
pub(crate) const CONFIG_VARIABLE: &str = "LEASEHOLD_TEST_WORKER";
/// The name of the test below.
pub(crate) const PROGRAM: &str = "program::run_as_worker_process";

/// Runs a worker process. Without a configuration, as among the other tests, it does nothing.
#[test]
fn run_as_worker_process() {
    let Ok(config) = std::env::var(CONFIG_VARIABLE) else {
        return;
    };
    let config: ProcessConfig = serde_json::from_str(&config).unwrap();
    if !config.quiet {
        // Shown with the events when a test fails.
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
        log.with_writer(std::io::stderr).init();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(config));
}

async fn run(config: ProcessConfig) {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let store = config.location.open();
    let (ended, ends) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for number in 0..config.workers {
        let name = format!("{}-{number}", config.name);
        workers.push(worker(&config, name, store.clone(), ended.clone()).start());
    }
    tokio::spawn(sweep(store.clone(), config.sweep));
    if let Behaviour::LateWrites { .. } = config.behaviour {
        tokio::spawn(write_late(store, format!("{}-0", config.name), ends));
    }
    let clock = UNIX_EPOCH.elapsed().unwrap().as_secs().cast_signed();
    report(&ProcessEvent::Ready { clock });
    terminate.recv().await;
    let stats = join_all(workers.into_iter().map(|worker| worker.stop())).await;
    let totals = stats
        .into_iter()
        .fold(WorkTotals::default(), WorkTotals::add);
    report(&ProcessEvent::Stopped { totals });
}

fn worker(
    config: &ProcessConfig,
    name: String,
    store: Arc<dyn Store>,
    ended: UnboundedSender<JobRef>,
) -> Worker {
    let mut source: Arc<dyn JobSource> = Arc::new(StoreSource::new(store));
    if let Behaviour::Random = config.behaviour {
        source = Arc::new(FlakySource::before(source, config.lease));
    }
    let mut worker = Worker::builder(source)
        .name(name)
        .concurrency(config.concurrency)
        .prefetch(0)
        .lease(config.lease)
        // Only notifications and due times wake it.
        .poll_interval(NEVER);
    for queue in &config.queues {
        worker = worker.queue(queue);
    }
    let (behaviour, quiet, lease) = (config.behaviour.clone(), config.quiet, config.lease);
    let handler = move |payload: Value, job: JobContext| {
        let (behaviour, ended) = (behaviour.clone(), ended.clone());
        async move {
            let mut reporter = HandlerReporter::start(job.clone(), quiet, ended);
            let result = behave(&behaviour, payload, &job, lease).await;
            reporter.returned = true;
            result
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
        Behaviour::LateWrites { ends_after } => {
            if job.id().0 % 2 == 0 {
                work_for(*ends_after).await;
            } else {
                std::future::pending().await
            }
        }
        Behaviour::FromPayload => {
            let instructions: crate::protocol::Instructions = serde_json::from_value(payload)?;
            if instructions.fails_once && job.attempt() == 1 {
                return Err(JobError::new("as instructed"));
            }
            if instructions.hangs_once && job.attempt() == 1 {
                std::future::pending().await
            }
            work_for(instructions.takes).await;
        }
        Behaviour::Random => match fastrand::u32(..100) {
            0..3 => return Err(JobError::retry_after(lease / 10, "by chance")),
            3..6 => return Ok(Outcome::snooze(lease / 10)),
            // Some run longer than a lease whose renewals fail.
            6..36 => work_for(lease.mul_f64(fastrand::f64() * 1.5)).await,
            _ => work_for(lease.mul_f64(fastrand::f64() * 0.1)).await,
        },
    }
    Outcome::done(&())
}

/// Requeues jobs with expired leases, as a Leasehold server does.
async fn sweep(store: Arc<dyn Store>, interval: Duration) {
    let options = JobSweeperOptions {
        interval,
        ..JobSweeperOptions::default()
    };
    let sweeper = JobSweeper::new(store, options);
    loop {
        match sweeper.run_once().await {
            Ok(Next::Now) => {}
            Ok(Next::After(wait)) => work_for(wait).await,
            Err(_) => work_for(interval).await,
        }
    }
}

/// Uses each claim whose handler has ended for writes that only the lease holder may make.
async fn write_late(store: Arc<dyn Store>, worker: String, mut ends: UnboundedReceiver<JobRef>) {
    while let Some(claim) = ends.recv().await {
        let lease = Duration::from_secs(60);
        let renewed = store.job_renew(&worker, &[claim], lease).await.unwrap();
        let renewed = renewed.renewed;
        let complete = JobEnd::Completed { result: None };
        let fail = JobEnd::Failed {
            error: "late write".to_owned(),
            retry_mode: RetryMode::Policy,
        };
        let mut ends = Vec::new();
        for end in [complete, fail, JobEnd::Snoozed(lease), JobEnd::Returned] {
            let finish = JobFinish { claim, end };
            let answer = store.job_finish(&worker, &[finish]).await.unwrap();
            ends.push(format!("{:?}", answer.jobs[0]));
        }
        let note = JsonText::default();
        let progress = store.job_progress(&worker, claim, &note).await.unwrap();
        report(&ProcessEvent::LateWrite {
            job: claim.job,
            token: claim.token,
            renewed: renewed.len(),
            ends,
            progress,
        });
    }
}

/// Reports the start and the end of a handler.
struct HandlerReporter {
    job: JobContext,
    quiet: bool,
    returned: bool,
    ended: UnboundedSender<JobRef>,
}

impl HandlerReporter {
    fn start(job: JobContext, quiet: bool, ended: UnboundedSender<JobRef>) -> Self {
        if !quiet {
            report(&ProcessEvent::Started {
                job: job.id(),
                token: job.token(),
                attempt: job.attempt(),
                worker: job.worker().to_owned(),
            });
        }
        Self {
            job,
            quiet,
            returned: false,
            ended,
        }
    }
}

impl Drop for HandlerReporter {
    fn drop(&mut self) {
        let (job, token) = (self.job.id(), self.job.token());
        if !self.quiet {
            report(&if self.returned {
                ProcessEvent::Returned { job, token }
            } else {
                let cancelled = self.job.cancellation().is_cancelled();
                ProcessEvent::Dropped {
                    job,
                    token,
                    cancelled,
                }
            });
        }
        // The receiver exists only with late writes.
        let _ = self.ended.send(JobRef { job, token });
    }
}

/// Writes one event as a line, under a lock because several threads report.
fn report(event: &ProcessEvent) {
    let line = serde_json::to_string(event).unwrap() + "\n";
    // The test may have closed the pipe.
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}
