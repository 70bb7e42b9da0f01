//! Cost of limits (B7): complete requests in many workspaces of mixed plans, compared with one workspace without a limit.

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT, StatementCost};
use crate::engine::Finisher;
use crate::printer::Printer;
use crate::report::{BenchResult, median};
use crate::usage::{Usage, UsageMeter};
use anyhow::{Result, bail};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::request::{Enqueue, Enqueued, NewRequest};
use leasehold_store::{Store, fresh_id};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Step between workspaces, so that plans are mixed. Coprime to round numbers.
const STRIDE: usize = 617;

/// Duration of an execution: long enough that its start is recorded before its end.
const EXECUTION_TIME: Duration = Duration::from_millis(20);

/// How requests are enqueued.
#[derive(Clone, Copy, Debug)]
struct EnqueueMode {
    name: &'static str,
    /// Requests per call.
    batch: u32,
    /// Concurrent calls.
    callers: u32,
    /// Requests per workspace.
    each: u32,
}

/// The workspaces of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkspaceKind {
    Plans,
    Unlimited,
}

struct Run {
    used: Usage,
    statements: Vec<StatementCost>,
}

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    printer: &mut Printer,
    options: &Options,
) -> Result<()> {
    printer.heading(&format!(
        "{}: requests per second from enqueue to finish, {} workspaces of mixed plans compared with one without a limit",
        backend.name(),
        options.workspaces
    ));
    let modes = [
        EnqueueMode {
            name: "batches",
            batch: options.batch,
            callers: 2,
            each: options.batch,
        },
        EnqueueMode {
            name: "one_by_one",
            batch: 1,
            callers: 8,
            each: options.singles,
        },
    ];
    for mode in modes {
        let requests = mode.each * options.workspaces;
        let (mut plans, mut unlimited) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            for (kind, runs) in [
                (WorkspaceKind::Plans, &mut plans),
                (WorkspaceKind::Unlimited, &mut unlimited),
            ] {
                printer.progress(&format!("{requests} requests on {}", backend.name()));
                runs.push(measure(backend, kind, mode, options).await?);
            }
        }
        let rates =
            |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.used.rate(requests)).collect() };
        let ratio = median(rates(&plans)) / median(rates(&unlimited));
        for (name, runs) in [("plans", &plans), ("unlimited", &unlimited)] {
            let mut outcome = BenchResult::default()
                .field("store", backend.name())
                .field("case", "limits")
                .field("enqueue", mode.name)
                .field("kind", name)
                .field("requests", requests)
                .metric("rate", median(rates(runs)), "requests/s")
                .metric("cost", if name == "plans" { 1.0 - ratio } else { 0.0 }, "");
            if let Some(run) = runs.last() {
                outcome = run.used.with_buffers(requests, outcome);
            }
            printer.row(&format!("{} {name}", mode.name.replace('_', " ")), &outcome);
            if let Some(run) = runs.last()
                && options.profile
            {
                printer.statements(&run.statements, requests);
            }
        }
    }
    Ok(())
}

async fn measure(
    backend: &mut dyn BenchBackend,
    kind: WorkspaceKind,
    mode: EnqueueMode,
    options: &Options,
) -> Result<Run> {
    let fill = match kind {
        WorkspaceKind::Plans => Fill::plans(options.workspaces),
        WorkspaceKind::Unlimited => Fill::idle(1, NO_LIMIT),
    };
    backend.fill(&fill).await?;
    let store = backend.store(false).await?;
    let tenants = backend.workspaces().await?;
    let (engine, finisher) = Finisher::start(
        store.clone(),
        tenants
            .iter()
            .map(|tenant| (tenant.workspace, EXECUTION_TIME))
            .collect(),
    );
    let mut runtime_options = RuntimeOptions::new("bench");
    runtime_options.dispatcher.batch_size = options.claim;
    let runtime = Runtime::start(store.clone(), Some(Arc::new(engine)), runtime_options);
    // Opens connections and lets the dispatcher become idle.
    enqueue(&*store, &tenants[0], 1).await?;
    finisher.wait_until(|all| all.finished() >= 1).await;
    let meter = backend.meter().await?;
    let requests = mode.each * options.workspaces;
    let usage = UsageMeter::begin(&*meter).await?;
    let enqueuing = enqueue_all(&store, &tenants, mode, requests / mode.batch);
    let finished = finisher.wait_until(|all| all.finished() > u64::from(requests));
    let (enqueued, ()) = futures::join!(enqueuing, finished);
    let used = usage.end().await?;
    enqueued?;
    runtime.stop().await;
    let statements = meter.statements().await?;
    Ok(Run { used, statements })
}

async fn enqueue_all(
    store: &Arc<dyn Store>,
    tenants: &[BenchWorkspace],
    mode: EnqueueMode,
    calls: u32,
) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let tenants: Arc<[BenchWorkspace]> = tenants.into();
    let callers = (0..mode.callers).map(|_| {
        let (store, tenants, next) = (store.clone(), tenants.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let call = next.fetch_add(1, Ordering::Relaxed);
                if call >= calls as usize {
                    return anyhow::Ok(());
                }
                enqueue(&*store, &tenants[call * STRIDE % tenants.len()], mode.batch).await?;
            }
        })
    });
    for caller in futures::future::join_all(callers).await {
        caller??;
    }
    Ok(())
}

async fn enqueue(store: &dyn Store, tenant: &BenchWorkspace, count: u32) -> Result<()> {
    let params = json!({"order": 12345, "customer": "abcdefgh", "lines": [1, 2, 3]});
    let enqueue = Enqueue {
        workspace: tenant.workspace,
        requests: (0..count)
            .map(|_| NewRequest::new(fresh_id(), tenant.definition, params.clone()))
            .collect(),
        by: "bench".to_owned(),
    };
    match store.request_enqueue(&enqueue).await? {
        Enqueued::All(_) => Ok(()),
        rejected => bail!("the store rejected the requests: {rejected:?}"),
    }
}
