//! Pinned horizon (B5): steady load while another transaction holds an old snapshot, so that vacuum cannot remove dead rows.

use super::Options;
use super::jobs::{QUEUE, job};
use super::run::RunMeter;
use super::windows::Windows;
use super::worker::BenchWorker;
use crate::backend::{BenchBackend, Fill, HorizonPin};
use crate::printer::Printer;
use crate::report::BenchResult;
use anyhow::{Context, Result, ensure};
use leasehold_store::Store;
use leasehold_store::job::NewJob;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout};

/// Interval between enqueue calls.
const TICK: Duration = Duration::from_millis(20);
/// Load before the snapshot is taken and the measurement begins.
const WARM_UP: Duration = Duration::from_secs(3);
/// Length of the compared windows, if the measurement is long enough.
const WINDOW: Duration = Duration::from_secs(60);
/// Timeout for completing the remaining jobs after the last enqueue.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(120);
const MIB: f64 = 1024.0 * 1024.0;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
    pin: HorizonPin,
    rate: f64,
) -> Result<()> {
    printer.bench("horizon");
    let case = match pin {
        HorizonPin::Reader => "snapshot",
        HorizonPin::Writer => "writer",
    };
    printer.heading(&format!(
        "{}: {} s of steady load while another transaction pins the xmin horizon (B5)",
        backend.name(),
        options.b5_seconds
    ));
    printer.progress(&format!("{rate:.0} jobs/s, {case}, on {}", backend.name()));
    let outcome = BenchResult::default()
        .field("store", backend.name())
        .field("case", case)
        .field("seconds", options.b5_seconds);
    let outcome = measure(backend, options, pin, rate, outcome).await?;
    printer.row(case, &outcome);
    Ok(())
}

/// When jobs are enqueued, by this process's clock.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    origin: Instant,
    /// Jobs per call.
    batch: u32,
}

impl Schedule {
    fn at(self, tick: u32) -> Instant {
        self.origin + TICK * tick
    }
}

async fn measure(
    backend: &mut dyn BenchBackend,
    options: &Options,
    pin: HorizonPin,
    rate: f64,
    outcome: BenchResult,
) -> Result<BenchResult> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(options.worker.connections).await?;
    let other = match backend.address() {
        Some(_) => backend.store_with(1).await?,
        None => Arc::clone(&store),
    };
    let length = Duration::from_secs(options.b5_seconds);
    let window = WINDOW.min(length / 3);
    let count = (length.as_secs_f64() / window.as_secs_f64()) as usize;
    let windows = Arc::new(Windows::new(window, count));
    let table = Schedule {
        origin: Instant::now(),
        batch: (rate * TICK.as_secs_f64()).ceil().max(1.0) as u32,
    };
    let (stats, origin) = (windows.clone(), table.origin);
    let worker = BenchWorker::start(Arc::clone(&store), options.worker, move |at| {
        let now = origin.elapsed();
        if let Some(counted) = now.checked_sub(WARM_UP) {
            stats.add(counted, now.saturating_sub(Duration::from_micros(at)));
        }
    })?;
    let ticks = |time: Duration| (time.as_secs_f64() / TICK.as_secs_f64()) as u32;
    let (warm, all) = (ticks(WARM_UP), ticks(WARM_UP + length));
    enqueue_on_schedule(&*other, table, 0..warm).await?;
    backend.pin(pin).await?;
    let begun = RunMeter::with_open_stores(backend).await?;
    let usage = begun.usage().await?;
    enqueue_on_schedule(&*other, table, warm..all).await?;
    let used = usage.end().await?;
    let enqueued = u64::from(all) * u64::from(table.batch);
    let behind = enqueued - worker.count().min(enqueued);
    let done = timeout(CATCH_UP_TIMEOUT, worker.wait_started(enqueued)).await;
    done.context("the worker did not complete all jobs within the timeout")?;
    let stats = worker.stop().await;
    let left = store.queue_counts(QUEUE).await?;
    ensure!(
        left.ready + left.running == 0,
        "jobs remain after the run: {left:?}, {stats:?}"
    );
    drop((store, other));
    let (first, last) = windows.first().zip(windows.last()).context("windows")?;
    let jobs = (all - warm) * table.batch;
    let size = backend.size().await?;
    let outcome = outcome
        .metric(
            "offered",
            f64::from(table.batch) / TICK.as_secs_f64(),
            "jobs/s",
        )
        .metric("rate", last.rate, "jobs/s")
        .metric("rate_first", first.rate, "jobs/s")
        .metric("rate_ratio", last.rate / first.rate, "")
        .metric("p50", last.p50, "ms")
        .metric("p99", last.p99, "ms")
        .metric("p99_first", first.p99, "ms")
        .metric("p99_ratio", last.p99 / first.p99, "")
        .metric("behind", behind as f64, "jobs")
        .optional_metric("dead_rows", size.dead, "rows")
        .optional_metric("tables", size.tables.map(|bytes| bytes / MIB), "MiB")
        .optional_metric("indexes", size.indexes.map(|bytes| bytes / MIB), "MiB");
    Ok(begun.end(backend, jobs, used).await?.costs(outcome))
}

/// Enqueues a batch at each tick. A slow call delays the next ones, which shows in their jobs' delays.
async fn enqueue_on_schedule(
    store: &dyn Store,
    table: Schedule,
    ticks: std::ops::Range<u32>,
) -> Result<()> {
    for tick in ticks {
        let due = table.at(tick);
        sleep_until(due.into()).await;
        let at = (due - table.origin).as_micros() as u64;
        let jobs: Vec<NewJob> = (0..table.batch).map(|_| job(at)).collect();
        store.job_enqueue(&jobs).await?;
    }
    Ok(())
}
