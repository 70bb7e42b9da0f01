//! A pinned horizon (B5): steady load while another transaction holds on to an old state, so that nothing dead can be cleared away.

use super::Options;
use super::crew::Crew;
use super::jobs::{QUEUE, job};
use super::run::Begun;
use super::windows::Windows;
use crate::backend::{BenchBackend, Fill, Pin};
use crate::report::Outcome;
use crate::sheet::Sheet;
use anyhow::{Context, Result, ensure};
use leasehold_store::Store;
use leasehold_store::job::NewJob;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout};

/// Jobs come in calls this far apart.
const TICK: Duration = Duration::from_millis(20);
/// Load before the snapshot is taken and anything counts.
const WARM_UP: Duration = Duration::from_secs(3);
/// The windows that are compared, where there is time for them.
const WINDOW: Duration = Duration::from_secs(60);
/// What is left when no more comes must be done by then.
const PATIENCE: Duration = Duration::from_secs(120);
const MIB: f64 = 1024.0 * 1024.0;

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
    pin: Pin,
    rate: f64,
) -> Result<()> {
    sheet.bench("horizon");
    let case = match pin {
        Pin::Reader => "snapshot",
        Pin::Writer => "writer",
    };
    sheet.heading(&format!(
        "{}: {} s of steady load while another transaction holds an old snapshot (B5)",
        backend.name(),
        options.b5_seconds
    ));
    sheet.progress(&format!("{rate:.0} jobs/s, {case}, on {}", backend.name()));
    let outcome = Outcome::default()
        .field("store", backend.name())
        .field("case", case)
        .field("seconds", options.b5_seconds);
    let outcome = measure(backend, options, pin, rate, outcome).await?;
    sheet.row(case, &outcome);
    Ok(())
}

/// When jobs are due, by this process's clock.
#[derive(Clone, Copy, Debug)]
struct Timetable {
    origin: Instant,
    /// Jobs a call.
    batch: u32,
}

impl Timetable {
    fn at(self, tick: u32) -> Instant {
        self.origin + TICK * tick
    }
}

async fn measure(
    backend: &mut dyn BenchBackend,
    options: &Options,
    pin: Pin,
    rate: f64,
    outcome: Outcome,
) -> Result<Outcome> {
    backend.fill(&Fill::default()).await?;
    let store = backend.store_with(options.hands.connections).await?;
    let other = match backend.address() {
        Some(_) => backend.store_with(1).await?,
        None => Arc::clone(&store),
    };
    let length = Duration::from_secs(options.b5_seconds);
    let window = WINDOW.min(length / 3);
    let count = (length.as_secs_f64() / window.as_secs_f64()) as usize;
    let windows = Arc::new(Windows::new(window, count));
    let table = Timetable {
        origin: Instant::now(),
        batch: (rate * TICK.as_secs_f64()).ceil().max(1.0) as u32,
    };
    let (seen, origin) = (windows.clone(), table.origin);
    let crew = Crew::start(Arc::clone(&store), options.hands, move |at| {
        let now = origin.elapsed();
        if let Some(counted) = now.checked_sub(WARM_UP) {
            seen.add(counted, now.saturating_sub(Duration::from_micros(at)));
        }
    })?;
    let ticks = |time: Duration| (time.as_secs_f64() / TICK.as_secs_f64()) as u32;
    let (warm, all) = (ticks(WARM_UP), ticks(WARM_UP + length));
    feed(&*other, table, 0..warm).await?;
    backend.pin(pin).await?;
    let begun = Begun::while_open(backend).await?;
    let usage = begun.usage().await?;
    feed(&*other, table, warm..all).await?;
    let used = usage.end().await?;
    let enqueued = u64::from(all) * u64::from(table.batch);
    let behind = enqueued - crew.count().min(enqueued);
    let done = timeout(PATIENCE, crew.until(enqueued)).await;
    done.context("the worker did not catch up")?;
    let stats = crew.stop().await;
    let left = store.queue_counts(QUEUE).await?;
    ensure!(
        left.ready + left.running == 0,
        "jobs are left: {left:?}, {stats:?}"
    );
    drop((store, other));
    let (first, last) = windows.first().zip(windows.last()).context("windows")?;
    let jobs = (all - warm) * table.batch;
    let extent = backend.extent().await?;
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
        .maybe("dead_rows", extent.dead, "rows")
        .maybe("tables", extent.tables.map(|bytes| bytes / MIB), "MiB")
        .maybe("indexes", extent.indexes.map(|bytes| bytes / MIB), "MiB");
    Ok(begun.end(backend, jobs, used).await?.costs(outcome))
}

/// Enqueues what is due at each tick. A call that takes long makes the next ones late, and their jobs' delays show it.
async fn feed(store: &dyn Store, table: Timetable, ticks: std::ops::Range<u32>) -> Result<()> {
    for tick in ticks {
        let due = table.at(tick);
        sleep_until(due.into()).await;
        let at = (due - table.origin).as_micros() as u64;
        let jobs: Vec<NewJob> = (0..table.batch).map(|_| job(at)).collect();
        store.job_enqueue(&jobs).await?;
    }
    Ok(())
}
