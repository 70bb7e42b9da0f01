//! Graphs that run on the WorkQueue: starts and stops them, and advances them when a node ends. The core decides what happens next. The
//! lock order is in `docs/adr/0007-graphs-on-the-workqueue.md`.

mod expire;
mod finish;
pub(crate) mod input;
mod lock;
mod refusal;
mod start;
mod stop;
mod write;

pub(crate) use expire::UnendedExecutions;
pub(crate) use finish::{NodeFinished, finish as finish_node};

use crate::epoch;
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
        epoch::repeated(|| start::start(self, start)).await
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        let context = "graph_get";
        let found = self
            .maybe(context, sql!("graph/get"), &[&execution.0])
            .await?;
        let run = |row: Row| {
            Ok(GraphRun {
                execution,
                state: lock::state(&row, context)?,
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
        let machine = lock::machine(found, context, version)?;
        let state = lock::state(graph, context)?;
        let mut nodes = NodeRun::all(machine.graph(), &state);
        for row in &rows {
            let index = row.get::<_, Option<i16>>("node").map(lock::node_index);
            if let Some(node) = index.and_then(|index| nodes.get_mut(index)) {
                fill(row, node)?;
            }
        }
        NodeRun::end_cancelled(&mut nodes, time(graph, "graph_finished_at")?);
        Ok(Some(nodes))
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        // Graphs have far fewer nodes than `i16::MAX`.
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

    async fn graph_expire(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        expire::expire(self, by, limit).await
    }
}

/// Fills in the stored data of a node that was started.
fn fill(row: &Row, node: &mut NodeRun) -> Result<()> {
    node.job = row.get::<_, Option<i64>>("job_id").map(JobId);
    node.attempts = count(row.get("attempts"));
    node.output = maybe_json(row, "output");
    node.output_omitted = row.get("omitted");
    node.error = row.get("error");
    node.started_at = time(row, "started_at")?;
    node.finished_at = time(row, "finished_at")?;
    Ok(())
}
