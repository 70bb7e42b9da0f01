//! How soon a request is DISPATCHED when little is going on: enqueued one by one at a steady pace, whatever the answers take.

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT};
use crate::engine::AtOnce;
use crate::report::{Outcome, percentile};
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use leasehold_core::RequestStatus;
use leasehold_engine::Engine;
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::request::{Enqueue, NewRequest, RequestFilter};
use leasehold_store::{Page, Store, fresh_id};
use leasehold_testkit::eventually;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep_until;

/// Requests before those that count: they connect, and bring versions to mind.
const WARM_UPS: u32 = 20;
const WORKSPACES: u32 = 10;
const PAGE: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    sheet: &mut Sheet,
    temporal: Arc<dyn Engine>,
    rate: f64,
    options: &Options,
) -> Result<()> {
    sheet.heading("From enqueued to DISPATCHED, one by one, at a tenth of that rate");
    let at_once: Arc<dyn Engine> = Arc::new(AtOnce::endless());
    for backend in backends {
        for engine in [&temporal, &at_once] {
            sheet.progress(&format!("timing {} on {}", engine.name(), backend.name()));
            let found = measure(&mut **backend, engine.clone(), rate, options).await?;
            let outcome = Outcome::default()
                .field("store", backend.name())
                .field("case", "latency")
                .field("engine", engine.name())
                .metric("p50", percentile(&found, 0.5), "ms")
                .metric("p90", percentile(&found, 0.9), "ms")
                .metric("p99", percentile(&found, 0.99), "ms")
                .metric("worst", percentile(&found, 1.0), "ms")
                .metric("pace", rate, "requests/s");
            sheet.row(&format!("{}, {}", backend.name(), engine.name()), &outcome);
        }
    }
    Ok(())
}

async fn measure(
    backend: &mut dyn BenchBackend,
    engine: Arc<dyn Engine>,
    rate: f64,
    options: &Options,
) -> Result<Vec<f64>> {
    backend.fill(&Fill::idle(WORKSPACES, NO_LIMIT)).await?;
    let store = backend.store(false).await?;
    let tenants = backend.workspaces().await?;
    let runtime = Runtime::start(
        store.clone(),
        Some(engine),
        RuntimeOptions {
            dispatcher: options.dispatcher(),
            ..RuntimeOptions::new("bench")
        },
    );
    at_a_pace(&store, &tenants, WARM_UPS, rate).await?;
    all_dispatched(&*store, &tenants, WARM_UPS).await?;
    at_a_pace(&store, &tenants, options.singles, rate).await?;
    all_dispatched(&*store, &tenants, WARM_UPS + options.singles).await?;
    let found = latencies(&*store, options.singles).await?;
    runtime.stop().await;
    Ok(found)
}

/// The next is enqueued at its time, whether or not the last has been answered.
async fn at_a_pace(
    store: &Arc<dyn Store>,
    tenants: &[BenchWorkspace],
    count: u32,
    rate: f64,
) -> Result<()> {
    let begun = Instant::now();
    let mut calls = Vec::new();
    for (number, tenant) in (0..count).zip(tenants.iter().copied().cycle()) {
        sleep_until((begun + Duration::from_secs_f64(f64::from(number) / rate)).into()).await;
        let store = store.clone();
        calls.push(tokio::spawn(async move {
            let params = json!({"order": number, "customer": "abcdefgh", "lines": [1, 2, 3]});
            let enqueue = Enqueue {
                workspace: tenant.workspace,
                requests: vec![NewRequest::new(fresh_id(), tenant.definition, params)],
                by: "bench".to_owned(),
            };
            store.request_enqueue(&enqueue).await
        }));
    }
    for call in calls {
        call.await??;
    }
    Ok(())
}

async fn all_dispatched(store: &dyn Store, tenants: &[BenchWorkspace], count: u32) -> Result<()> {
    let done = eventually(PATIENCE, async || {
        let mut dispatched = 0;
        for tenant in tenants {
            match store.request_counts(tenant.workspace).await {
                Ok(counts) => dispatched += counts.dispatched,
                Err(_) => return false,
            }
        }
        dispatched == u64::from(count)
    });
    ensure!(done.await, "not all were dispatched in time");
    Ok(())
}

/// In milliseconds, by the database's own times, of the requests enqueued last.
async fn latencies(store: &dyn Store, count: u32) -> Result<Vec<f64>> {
    let filter = RequestFilter {
        status: Some(RequestStatus::Dispatched),
        ..RequestFilter::default()
    };
    let mut found = Vec::new();
    let mut after = None;
    while found.len() < count as usize {
        let limit = PAGE.min(count - u32::try_from(found.len())?);
        let page = store.request_list(&filter, Page { after, limit }).await?;
        ensure!(!page.is_empty(), "requests are missing");
        after = page.last().map(|request| request.id);
        for request in page {
            let dispatched = request.dispatched_at.unwrap_or(request.created_at);
            let waited = dispatched.duration_since(request.created_at);
            found.push(waited.as_secs_f64() * 1_000.0);
        }
    }
    Ok(found)
}
