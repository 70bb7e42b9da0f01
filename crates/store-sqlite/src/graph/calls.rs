//! Graphs as the port asks for them: each call hands its verb's function to the writer or to a reader. Knows no SQL.

use crate::SqliteStore;
use crate::graph::finish::{self, NodeFinished};
use crate::graph::{read, settle, start, stop};
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::JobFinish;
use leasehold_core::{ExecutionId, JsonText};
use leasehold_store::Result;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped};
use std::sync::Arc;

pub(crate) async fn start(store: &SqliteStore, execution: ExecutionId) -> Result<GraphStarted> {
    let machines = Arc::clone(&store.machines);
    store
        .write("graph_start", move |s| {
            start::start(s, &machines, execution)
        })
        .await
}

pub(crate) async fn get(store: &SqliteStore, execution: ExecutionId) -> Result<Option<GraphRun>> {
    store
        .read("graph_get", move |s| read::get(s, execution))
        .await
}

pub(crate) async fn nodes(
    store: &SqliteStore,
    execution: ExecutionId,
) -> Result<Option<Vec<NodeRun>>> {
    let machines = Arc::clone(&store.machines);
    store
        .read("graph_nodes", move |s| read::nodes(s, &machines, execution))
        .await
}

pub(crate) async fn output(
    store: &SqliteStore,
    execution: ExecutionId,
    node: usize,
) -> Result<Option<JsonText>> {
    store
        .read("graph_output", move |s| read::output(s, execution, node))
        .await
}

pub(crate) async fn stop(
    store: &SqliteStore,
    execution: ExecutionId,
    why: GraphStop,
    by: &str,
    reason: &str,
) -> Result<GraphStopped> {
    let machines = Arc::clone(&store.machines);
    let (by, reason) = (by.to_owned(), reason.to_owned());
    store
        .write("graph_stop", move |s| {
            stop::stop(s, &machines, execution, why, &by, &reason)
        })
        .await
}

pub(crate) async fn settle(
    store: &SqliteStore,
    by: &str,
    limit: u32,
) -> Result<Vec<EndedExecution>> {
    let (machines, by) = (Arc::clone(&store.machines), by.to_owned());
    store
        .write("graph_settle", move |s| {
            settle::settle(s, &machines, &by, limit)
        })
        .await
}

/// Ends the claim of a node.
pub(crate) async fn finish(
    store: &SqliteStore,
    worker: &str,
    finish: &JobFinish,
) -> Result<NodeFinished> {
    let machines = Arc::clone(&store.machines);
    let (worker, finish) = (worker.to_owned(), finish.clone());
    let finished = store
        .write("job_finish", move |s| {
            finish::finish(s, &machines, &worker, &finish)
        })
        .await?;
    reach("job_finish/committed");
    Ok(finished)
}
