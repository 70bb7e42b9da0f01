//! Graphs and their nodes as readers see them. Changes nothing.

use super::hold;
use crate::job::row::{count, maybe_json};
use crate::row::{self, time};
use crate::store::{PostgresStore, sql};
use crate::transaction::connection;
use leasehold_core::graph::NodeRun;
use leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES;
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::Result;
use leasehold_store::graph::GraphRun;
use tokio_postgres::Row;

pub(crate) async fn get(store: &PostgresStore, execution: ExecutionId) -> Result<Option<GraphRun>> {
    let context = "graph_get";
    let found = store
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

pub(crate) async fn nodes(
    store: &PostgresStore,
    execution: ExecutionId,
) -> Result<Option<Vec<NodeRun>>> {
    let context = "graph_nodes";
    let rows = store
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
    let client = connection(store, context).await?;
    let machine = store
        .machines
        .of_started(&client, context, workspace, version)
        .await?;
    drop(client);
    let state = hold::state(graph, context)?;
    let states = machine.graph().nodes.iter().zip(state.nodes());
    let mut nodes: Vec<NodeRun> = states
        .map(|(node, state)| NodeRun {
            state: *state,
            ..NodeRun::waiting(node.id())
        })
        .collect();
    for row in &rows {
        let place = row.get::<_, Option<i16>>("node").map(hold::place);
        if let Some(node) = place.and_then(|place| nodes.get_mut(place)) {
            tell(row, node)?;
        }
    }
    Ok(Some(nodes))
}

pub(crate) async fn output(
    store: &PostgresStore,
    execution: ExecutionId,
    node: usize,
) -> Result<Option<JsonText>> {
    // No graph has more nodes than that.
    let Ok(node) = i16::try_from(node) else {
        return Ok(None);
    };
    let row = store
        .maybe("graph_output", sql!("node/output"), &[&execution.0, &node])
        .await?;
    Ok(row.and_then(|row| maybe_json(&row, "output")))
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
