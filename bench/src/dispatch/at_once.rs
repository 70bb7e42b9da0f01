//! Dispatch to an engine that answers at once: what the dispatcher and its store can do at most.

use super::{Options, drain};
use crate::engine::AtOnce;
use crate::ground::{Fill, Ground, NO_LIMIT};
use crate::report::{Outcome, median};
use crate::sheet::Sheet;
use crate::usage::{Usage, Used};
use anyhow::{Result, ensure};
use std::sync::Arc;

pub(super) async fn run(
    grounds: &mut [Box<dyn Ground>],
    sheet: &mut Sheet,
    options: &Options,
) -> Result<()> {
    sheet.heading("Dispatches a second to an engine that answers at once");
    let requests = options.requests;
    for ground in grounds {
        let mut runs: Vec<Used> = Vec::new();
        for _ in 0..options.rounds {
            sheet.progress(&format!("dispatching {requests} on {}", ground.name()));
            let fill = Fill::backlog(requests, options.workspaces, NO_LIMIT);
            runs.push(measure(&mut **ground, &fill, options).await?);
        }
        let rate = median(runs.iter().map(|used| used.rate(requests)).collect());
        let Some(last) = runs.last() else { continue };
        let outcome = Outcome::default()
            .field("store", ground.name())
            .field("case", "at_once")
            .field("requests", requests)
            .field("workspaces", options.workspaces)
            .metric("rate", rate, "requests/s");
        let outcome = last.with_buffers(requests, outcome);
        sheet.row(ground.name(), &outcome);
    }
    Ok(())
}

async fn measure(ground: &mut dyn Ground, fill: &Fill, options: &Options) -> Result<Used> {
    ground.fill(fill).await?;
    let store = ground.store(false).await?;
    let meter = ground.meter().await?;
    // The first call connects.
    store.request_settle().await?;
    let usage = Usage::begin(&*meter).await?;
    let dispatched = drain(store, Arc::new(AtOnce::endless()), options).await?;
    let used = usage.end().await?;
    ensure!(
        dispatched == options.requests,
        "only {dispatched} were dispatched"
    );
    Ok(used)
}
