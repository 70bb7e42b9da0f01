//! What is measured while somebody looks, or nobody: dispatch, and the draining of jobs.

use super::Options;
use super::eyes::{Eyes, Logs, Looking};
use crate::backend::{BenchBackend, Fill, NO_LIMIT};
use crate::engine::AtOnce;
use crate::workqueue::watched as jobs;
use anyhow::{Result, ensure};
use leasehold_core::breaker::BreakerSettings;
use leasehold_runtime::{Dispatcher, DispatcherOptions, Gate};
use leasehold_store::Store;
use leasehold_store::request::{Enqueue, NewRequest};
use leasehold_telemetry::{ObservedEngine, Telemetry};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Requests in one call that enqueues.
const BATCH: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// No request is in a trace of its caller's.
    Dispatch,
    /// All are in traces that their callers have chosen to record.
    DispatchTraced,
    Jobs,
}

impl Case {
    pub(super) const ALL: [Self; 3] = [Self::Dispatch, Self::DispatchTraced, Self::Jobs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::DispatchTraced => "dispatch, every caller traces",
            Self::Jobs => "jobs",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Dispatch | Self::DispatchTraced => "requests/s",
            Self::Jobs => "jobs/s",
        }
    }

    /// The rate.
    pub(super) async fn run(
        self,
        backend: &mut dyn BenchBackend,
        options: &Options,
        logs: &Logs,
        eyes: Eyes,
    ) -> Result<f64> {
        match self {
            Self::Dispatch => dispatch(backend, options, logs, eyes, false).await,
            Self::DispatchTraced => dispatch(backend, options, logs, eyes, true).await,
            Self::Jobs => drain(backend, options, logs, eyes).await,
        }
    }
}

async fn dispatch(
    backend: &mut dyn BenchBackend,
    options: &Options,
    logs: &Logs,
    eyes: Eyes,
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
    store.request_settle().await?;
    let looking = Looking::begin(store, logs, eyes).await?;
    let engine = Arc::new(ObservedEngine::new(
        Arc::new(AtOnce::endless()),
        &looking.telemetry,
    ));
    let dispatcher = dispatcher(&looking.store, engine, &looking.telemetry);
    let begun = Instant::now();
    let cycle = dispatcher.run_once(&CancellationToken::new()).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let dispatched = cycle.unwrap_or_default().dispatched;
    drop(dispatcher);
    looking.end().await?;
    ensure!(
        dispatched == u64::from(options.requests),
        "only {dispatched} were dispatched"
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
    let gate = Gate::new(BreakerSettings {
        full: u32::try_from(options.concurrency).unwrap_or(u32::MAX),
        ..BreakerSettings::default()
    });
    Dispatcher::new(store.clone(), engine, Arc::new(gate), options)
}

/// Requests whose callers have chosen to record their traces.
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
    logs: &Logs,
    eyes: Eyes,
) -> Result<f64> {
    let store = jobs::filled(backend, options.jobs, options.hands).await?;
    let looking = Looking::begin(store, logs, eyes).await?;
    let begun = Instant::now();
    jobs::drain(&looking.store, options.jobs, options.hands).await?;
    let seconds = begun.elapsed().as_secs_f64();
    looking.end().await?;
    Ok(f64::from(options.jobs) / seconds)
}
