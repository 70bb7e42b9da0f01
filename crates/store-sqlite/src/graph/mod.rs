//! Graphs that run in the store. The core's state machine decides; these modules load a graph's state and write the changes.
//!
//! An operation loads the graphs it needs (`open`), applies events to them, and writes all changes at its end (`write`).

mod expire;
pub(crate) mod finish;
pub(crate) mod open;
mod read;
mod start;
mod stop;
mod write;

use crate::SqliteStore;
use crate::graph::finish::NodeFinished;
use crate::row::{NodeIndex, blob};
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
        let markers = self.crash_markers.clone();
        self.write("graph_start", move |s| {
            start::start(s, &versions, &markers, start)
        })
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
            s.optional(OUTPUT, params![blob(execution), NodeIndex(node)], |row| {
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

    async fn graph_expire(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        let (versions, by) = (Arc::clone(&self.versions), by.to_owned());
        let markers = self.crash_markers.clone();
        self.write("graph_expire", move |s| {
            expire::expire(s, &versions, &markers, &by, limit)
        })
        .await
    }
}

impl SqliteStore {
    /// Queues the finish of a node's job with the writer.
    pub(crate) async fn send_finish_node(
        &self,
        worker: &str,
        finish: &JobFinish,
    ) -> Result<Reply<NodeFinished>> {
        let (versions, markers) = (Arc::clone(&self.versions), self.crash_markers.clone());
        let (worker, finish) = (worker.to_owned(), finish.clone());
        self.writer
            .send("job_finish", move |s| {
                finish::finish(s, &versions, &markers, &worker, &finish).map(Effect::Commit)
            })
            .await
    }
}
