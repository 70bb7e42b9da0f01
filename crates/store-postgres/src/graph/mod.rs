//! Graphs that run on the WorkQueue: starting, stopping, and what the end of a node leads to. The core decides, this carries out; the order of
//! locks is in `docs/adr/0007-graphs-on-the-workqueue.md`.

mod finish;
mod given;
mod hold;
mod settle;
mod start;
mod stop;
mod write;

pub(crate) use finish::{NodeFinished, finish as finish_node};

use crate::job::row::{count, maybe_json};
use crate::row::{self, time};
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES;
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::Result;
use leasehold_store::graph::{
    EndedExecution, GraphRun, GraphStart, GraphStarted, GraphStopped, GraphStore,
};
use tokio_postgres::Row;

#[async_trait]
impl GraphStore for PostgresStore {
    async fn graph_start(&self, start: &GraphStart) -> Result<GraphStarted> {
        start::start(self, start).await
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        let context = "graph_get";
        let found = self
            .maybe(context, sql!("graph/get"), &[&execution.0])
            .await?;
        let run = |row: Row| {
            Ok(GraphRun {
                execution,
                state: hold::state(&row, context)?,
                error: row.get("error"),
                started_at: time(&row, "started_at")?,
                finished_at: time(&row, "finished_at")?,
            })
        };
        found.map(run).transpose()
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        let context = "graph_nodes";
        let rows = self
            .many(
                context,
                sql!("node/list"),
                &[&execution.0, &i64::from(NODE_OUTPUTS_MAX_BYTES)],
            )
            .await?;
        let Some(graph) = rows.first() else {
            return Ok(None);
        };
        let (workspace, version) = (row::id(graph, "workspace_id"), row::id(graph, "version_id"));
        let found = self.version(context, workspace, version).await?;
        let machine = hold::machine(found, context, version)?;
        let state = hold::state(graph, context)?;
        let mut nodes = NodeRun::all(machine.graph(), &state);
        for row in &rows {
            let place = row.get::<_, Option<i16>>("node").map(hold::place);
            if let Some(node) = place.and_then(|place| nodes.get_mut(place)) {
                tell(row, node)?;
            }
        }
        Ok(Some(nodes))
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        // No graph has more nodes than that.
        let Ok(node) = i16::try_from(node) else {
            return Ok(None);
        };
        let row = self
            .maybe("graph_output", sql!("node/output"), &[&execution.0, &node])
            .await?;
        Ok(row.and_then(|row| maybe_json(&row, "output")))
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        stop::stop(self, execution, stop, by, reason).await
    }

    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        settle::settle(self, by, limit).await
    }
}

/// Adds what is kept of a node that was begun.
fn tell(row: &Row, node: &mut NodeRun) -> Result<()> {
    node.job = row.get::<_, Option<i64>>("job_id").map(JobId);
    node.attempts = count(row.get("attempts"));
    node.output = maybe_json(row, "output");
    node.output_omitted = row.get("omitted");
    node.error = row.get("error");
    node.started_at = time(row, "started_at")?;
    node.finished_at = time(row, "finished_at")?;
    Ok(())
}
