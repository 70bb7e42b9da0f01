//! Graphs as the port asks for them: each call hands its verb's function to the writer or to a reader. Knows no SQL.

use crate::SqliteStore;
use crate::graph::{finish, read, settle, start, stop};
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::{ExecutionId, JsonText};
use leasehold_store::Result;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped, NodesFinished};
use leasehold_store::job::JobFinish;
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

pub(crate) async fn node_finish(
    store: &SqliteStore,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<NodesFinished> {
    let machines = Arc::clone(&store.machines);
    let (worker, finishes) = (worker.to_owned(), finishes.to_vec());
    let answers = store
        .write("node_finish", move |s| {
            finish::finish(s, &machines, &worker, &finishes)
        })
        .await?;
    reach("node_finish/committed");
    Ok(answers)
}
