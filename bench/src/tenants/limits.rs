//! What limits cost (B7): requests through their whole life in many workspaces of mixed plans, and in one without limit.

use super::Options;
use crate::backend::{BenchBackend, BenchWorkspace, Fill, NO_LIMIT, StatementCost};
use crate::engine::Finisher;
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use crate::usage::{Usage, Used};
use anyhow::{Result, bail};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::request::{Enqueue, Enqueued, NewRequest};
use leasehold_store::{Store, fresh_id};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Workspaces come in an order that mixes the plans: this many further on each time. It shares no factor with round numbers.
const STEP: usize = 617;

/// How long an execution takes, as far as anybody notices: an end is seen at the next look, when its start has been written down.
const SEEN_AFTER: Duration = Duration::from_millis(20);

/// How requests are enqueued.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    /// Requests in a call.
    batch: u32,
    /// Calls under way at once.
    callers: u32,
    /// Requests of each workspace.
    each: u32,
}

/// Whose requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Plans,
    Unlimited,
}

struct Run {
    used: Used,
    statements: Vec<StatementCost>,
}

pub(super) async fn run(
    backend: &mut dyn BenchBackend,
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.heading(&format!(
        "{}: requests a second from enqueue to finish, {} workspaces of mixed plans, or one without limit",
        backend.name(),
        options.workspaces
    ));
    let ways = [
        Way {
            name: "batches",
            batch: options.batch,
            callers: 2,
            each: options.batch,
        },
        Way {
            name: "one_by_one",
            batch: 1,
            callers: 8,
            each: options.singles,
        },
    ];
    for way in ways {
        let requests = way.each * options.workspaces;
        let (mut plans, mut unlimited) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            for (whose, runs) in [
                (Whose::Plans, &mut plans),
                (Whose::Unlimited, &mut unlimited),
            ] {
                sheet.progress(&format!("{requests} requests on {}", backend.name()));
                runs.push(measure(backend, whose, way, options).await?);
            }
        }
        let rates =
            |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.used.rate(requests)).collect() };
        let ratio = median(rates(&plans)) / median(rates(&unlimited));
        for (name, runs) in [("plans", &plans), ("unlimited", &unlimited)] {
            let mut outcome = Outcome::default()
                .field("store", backend.name())
                .field("case", "limits")
                .field("enqueue", way.name)
                .field("whose", name)
                .field("requests", requests)
                .metric("rate", median(rates(runs)), "requests/s")
                .metric("cost", if name == "plans" { 1.0 - ratio } else { 0.0 }, "");
            if let Some(run) = runs.last() {
                outcome = run.used.with_buffers(requests, outcome);
            }
            sheet.row(&format!("{} {name}", way.name.replace('_', " ")), &outcome);
            if let Some(run) = runs.last()
                && options.profile
            {
                sheet.statements(&run.statements, requests);
            }
        }
    }
    Ok(())
}

async fn measure(
    backend: &mut dyn BenchBackend,
    whose: Whose,
    way: Way,
    options: &Options,
) -> Result<Run> {
    let fill = match whose {
        Whose::Plans => Fill::plans(options.workspaces),
        Whose::Unlimited => Fill::idle(1, NO_LIMIT),
    };
    backend.fill(&fill).await?;
    let store = backend.store(false).await?;
    let tenants = backend.workspaces().await?;
    let (engine, finisher) = Finisher::start(
        store.clone(),
        tenants
            .iter()
            .map(|tenant| (tenant.workspace, SEEN_AFTER))
            .collect(),
    );
    let mut how = RuntimeOptions::new("bench");
    how.dispatcher.batch_size = options.claim;
    let runtime = Runtime::start(store.clone(), Some(Arc::new(engine)), how);
    // Connects, and lets the dispatcher go to sleep as it would.
    enqueue(&*store, &tenants[0], 1).await?;
    finisher.until(|all| all.finished() >= 1).await;
    let meter = backend.meter().await?;
    let requests = way.each * options.workspaces;
    let usage = Usage::begin(&*meter).await?;
    let enqueuing = all_enqueued(&store, &tenants, way, requests / way.batch);
    let finished = finisher.until(|all| all.finished() > u64::from(requests));
    let (enqueued, ()) = futures::join!(enqueuing, finished);
    let used = usage.end().await?;
    enqueued?;
    runtime.stop().await;
    let statements = meter.statements().await?;
    Ok(Run { used, statements })
}

async fn all_enqueued(
    store: &Arc<dyn Store>,
    tenants: &[BenchWorkspace],
    way: Way,
    calls: u32,
) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let tenants: Arc<[BenchWorkspace]> = tenants.into();
    let callers = (0..way.callers).map(|_| {
        let (store, tenants, next) = (store.clone(), tenants.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let call = next.fetch_add(1, Ordering::Relaxed);
                if call >= calls as usize {
                    return anyhow::Ok(());
                }
                enqueue(&*store, &tenants[call * STEP % tenants.len()], way.batch).await?;
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
        refused => bail!("requests were not taken: {refused:?}"),
    }
}
