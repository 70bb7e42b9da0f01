//! Graphs that run in the store. The core's machine decides; the files here load where a graph is, and write what follows.
//!
//! An operation opens the graphs it needs (`open`), tells them what happened, and writes all of it at its end (`write`).

pub(crate) mod finish;
mod open;
mod read;
mod settle;
mod start;
mod stop;
mod write;

use crate::SqliteStore;
use crate::graph::finish::NodeFinished;
use crate::row::{Place, blob};
use crate::writer::{Effect, Reply};
use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::JobFinish;
use leasehold_core::{ExecutionId, JsonText};
use leasehold_store::Result;
use leasehold_store::graph::{
    EndedExecution, GraphRun, GraphStart, GraphStarted, GraphStopped, GraphStore,
};
use leasehold_store::sql;
use rusqlite::params;
use std::sync::Arc;

const OUTPUT: &str = sql!("node/output");

#[async_trait]
impl GraphStore for SqliteStore {
    async fn graph_start(&self, start: &GraphStart) -> Result<GraphStarted> {
        let (versions, start) = (Arc::clone(&self.versions), start.clone());
        self.write("graph_start", move |s| start::start(s, &versions, start))
            .await
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        self.read("graph_get", move |s| read::get(s, execution))
            .await
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        let versions = Arc::clone(&self.versions);
        self.read("graph_nodes", move |s| read::nodes(s, &versions, execution))
            .await
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        self.read("graph_output", move |s| {
            s.maybe(OUTPUT, params![blob(execution), Place(node)], |row| {
                Ok(JsonText::trusted(row.get(0)?))
            })
        })
        .await
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        why: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        let versions = Arc::clone(&self.versions);
        let (by, reason) = (by.to_owned(), reason.to_owned());
        self.write("graph_stop", move |s| {
            stop::stop(s, &versions, execution, why, &by, &reason)
        })
        .await
    }

    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        let (versions, by) = (Arc::clone(&self.versions), by.to_owned());
        self.write("graph_settle", move |s| {
            settle::settle(s, &versions, &by, limit)
        })
        .await
    }
}

impl SqliteStore {
    /// Puts the end of a node's claim into the writer's line.
    pub(crate) async fn send_finish_node(
        &self,
        worker: &str,
        finish: &JobFinish,
    ) -> Result<Reply<NodeFinished>> {
        let versions = Arc::clone(&self.versions);
        let (worker, finish) = (worker.to_owned(), finish.clone());
        self.writer
            .send("job_finish", move |s| {
                finish::finish(s, &versions, &worker, &finish).map(Effect::Keep)
            })
            .await
    }
}
