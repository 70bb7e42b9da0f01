//! Latency from enqueue to DISPATCHED under light load: single requests at a fixed rate (open loop).

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT};
use crate::engine::InstantEngine;
use crate::printer::Printer;
use crate::report::{BenchResult, percentile};
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

/// Warm-up requests: they open connections and fill the version cache.
const WARM_UPS: u32 = 20;
const WORKSPACES: u32 = 10;
const PAGE: u32 = 500;
const DISPATCH_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn run(
    backends: &mut [Box<dyn BenchBackend>],
    printer: &mut Printer,
    temporal: Arc<dyn Engine>,
    rate: f64,
    options: &Options,
) -> Result<()> {
    printer.heading(
        "Latency from enqueue to DISPATCHED, single requests at a tenth of the bare client's rate",
    );
    let instant: Arc<dyn Engine> = Arc::new(InstantEngine::endless());
    for backend in backends {
        for engine in [&temporal, &instant] {
            printer.progress(&format!("timing {} on {}", engine.name(), backend.name()));
            let found = measure(&mut **backend, engine.clone(), rate, options).await?;
            let outcome = BenchResult::default()
                .field("store", backend.name())
                .field("case", "latency")
                .field("engine", engine.name())
                .metric("p50", percentile(&found, 0.5), "ms")
                .metric("p90", percentile(&found, 0.9), "ms")
                .metric("p99", percentile(&found, 0.99), "ms")
                .metric("worst", percentile(&found, 1.0), "ms")
                .metric("pace", rate, "requests/s");
            printer.row(&format!("{}, {}", backend.name(), engine.name()), &outcome);
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
    enqueue_at_rate(&store, &tenants, WARM_UPS, rate).await?;
    wait_all_dispatched(&*store, &tenants, WARM_UPS).await?;
    enqueue_at_rate(&store, &tenants, options.singles, rate).await?;
    wait_all_dispatched(&*store, &tenants, WARM_UPS + options.singles).await?;
    let found = latencies(&*store, options.singles).await?;
    runtime.stop().await;
    Ok(found)
}

/// Enqueues at fixed times, whether or not earlier calls have returned.
async fn enqueue_at_rate(
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

async fn wait_all_dispatched(
    store: &dyn Store,
    tenants: &[BenchWorkspace],
    count: u32,
) -> Result<()> {
    let done = eventually(DISPATCH_TIMEOUT, async || {
        let mut dispatched = 0;
        for tenant in tenants {
            match store.request_counts(tenant.workspace).await {
                Ok(counts) => dispatched += counts.dispatched,
                Err(_) => return false,
            }
        }
        dispatched == u64::from(count)
    });
    ensure!(
        done.await,
        "not all requests were dispatched within the timeout"
    );
    Ok(())
}

/// Returns the latencies of the last requests in milliseconds, from the database's timestamps.
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
        ensure!(!page.is_empty(), "fewer requests listed than dispatched");
        after = page.last().map(|request| request.id);
        for request in page {
            let dispatched = request.dispatched_at.unwrap_or(request.created_at);
            let waited = dispatched.duration_since(request.created_at);
            found.push(waited.as_secs_f64() * 1_000.0);
        }
    }
    Ok(found)
}
