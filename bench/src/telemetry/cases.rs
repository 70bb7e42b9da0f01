//! The workloads: dispatch and draining jobs.

use super::Options;
use super::observer::{LogFile, ObservedRun, TelemetryLevel};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::engine::InstantEngine;
use crate::workqueue::draining as jobs;
use anyhow::{Result, ensure};
use leasehold_core::breaker::BreakerSettings;
use leasehold_runtime::{CircuitBreaker, Dispatcher, DispatcherOptions};
use leasehold_store::Store;
use leasehold_store::request::{Enqueue, NewRequest};
use leasehold_telemetry::{ObservedEngine, Telemetry};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Requests per enqueue call.
const BATCH: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Requests without a caller's trace.
    Dispatch,
    /// Requests with sampled traces of their callers.
    DispatchTraced,
    Jobs,
}

impl Case {
    pub(super) const ALL: [Self; 3] = [Self::Dispatch, Self::DispatchTraced, Self::Jobs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::DispatchTraced => "dispatch, all callers traced",
            Self::Jobs => "jobs",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Dispatch | Self::DispatchTraced => "requests/s",
            Self::Jobs => "jobs/s",
        }
    }

    /// Runs the case and returns its rate.
    pub(super) async fn run(
        self,
        backend: &mut dyn BenchBackend,
        options: &Options,
        logs: &LogFile,
        level: TelemetryLevel,
    ) -> Result<f64> {
        match self {
            Self::Dispatch => dispatch(backend, options, logs, level, false).await,
            Self::DispatchTraced => dispatch(backend, options, logs, level, true).await,
            Self::Jobs => drain(backend, options, logs, level).await,
        }
    }
}

async fn dispatch(
    backend: &mut dyn BenchBackend,
    options: &Options,
    logs: &LogFile,
    level: TelemetryLevel,
    traced: bool,
) -> Result<f64> {
    let fill = if traced {
        Fill::idle(options.workspaces, NO_LIMIT)
    } else {
        Fill::backlog(options.requests, options.workspaces, NO_LIMIT)
    };
    backend.fill(&fill).await?;
    let store = backend.store(false).await?;
    if traced {
        enqueue(backend, &*store, options.requests).await?;
    }
    store.request_promote_due().await?;
    let observed = ObservedRun::begin(store, logs, level).await?;
    let engine = Arc::new(ObservedEngine::new(
        Arc::new(InstantEngine::endless()),
        &observed.telemetry,
    ));
    let dispatcher = dispatcher(&observed.store, engine, &observed.telemetry);
    let begun = Instant::now();
    let cycle = dispatcher.run_once(&CancellationToken::new()).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let dispatched = cycle.unwrap_or_default().dispatched;
    drop(dispatcher);
    observed.end().await?;
    ensure!(
        dispatched == u64::from(options.requests),
        "only {dispatched} requests were dispatched"
    );
    Ok(f64::from(options.requests) / seconds)
}

fn dispatcher(
    store: &Arc<dyn Store>,
    engine: Arc<ObservedEngine>,
    telemetry: &Telemetry,
) -> Dispatcher {
    let options = DispatcherOptions {
        telemetry: telemetry.clone(),
        ..DispatcherOptions::new("bench")
    };
    let circuit_breaker = CircuitBreaker::new(BreakerSettings {
        full: u32::try_from(options.concurrency).unwrap_or(u32::MAX),
        ..BreakerSettings::default()
    });
    Dispatcher::new(store.clone(), engine, Arc::new(circuit_breaker), options)
}

/// Enqueues requests with sampled traces.
async fn enqueue(backend: &mut dyn BenchBackend, store: &dyn Store, requests: u32) -> Result<()> {
    let tenants = backend.workspaces().await?;
    let each = requests.div_ceil(u32::try_from(tenants.len())?);
    let mut left = requests;
    for tenant in tenants {
        let count = each.min(left);
        left -= count;
        let request = |_| NewRequest {
            trace_context: Some(format!(
                "00-{:032x}-00f067aa0ba902b7-01",
                fastrand::u128(1..)
            )),
            ..NewRequest::new(leasehold_store::fresh_id(), tenant.definition, Value::Null)
        };
        let new: Vec<NewRequest> = (0..count).map(request).collect();
        for some in new.chunks(BATCH) {
            let call = Enqueue {
                workspace: tenant.workspace,
                requests: some.to_vec(),
                by: "bench".to_owned(),
            };
            store.request_enqueue(&call).await?;
        }
    }
    Ok(())
}

async fn drain(
    backend: &mut dyn BenchBackend,
    options: &Options,
    logs: &LogFile,
    level: TelemetryLevel,
) -> Result<f64> {
    let store = jobs::filled_store(backend, options.jobs, options.worker).await?;
    let observed = ObservedRun::begin(store, logs, level).await?;
    let begun = Instant::now();
    jobs::drain(&observed.store, options.jobs, options.worker).await?;
    let seconds = begun.elapsed().as_secs_f64();
    observed.end().await?;
    Ok(f64::from(options.jobs) / seconds)
}
