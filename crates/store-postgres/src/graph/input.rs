//! Reads what the inputs of nodes are built from: the params of the execution and the outputs of earlier nodes.

use super::lock::{machine, node_index};
use crate::job::row::Json;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_core::graph::{EndPreview, GraphChange, NodeSource};
use leasehold_core::limits::{PARAMS_MAX_BYTES, STEP_READ_MAX_BYTES};
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_crash_marker::Computation;
use leasehold_store::Result;
use leasehold_store::node_payload::ClaimedNodes;
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// Reads the params and outputs that the starting nodes need; reads nothing if none starts.
pub(super) async fn source(
    transaction: &OpenTransaction<'_>,
    execution: ExecutionId,
    preview: &EndPreview,
) -> Result<NodeSource> {
    if !preview.begins {
        return Ok(NodeSource::default());
    }
    let params = transaction
        .one(sql!("graph/params"), &[&execution.0])
        .await?;
    let mut source = NodeSource {
        params: params_of(&params),
        outputs: HashMap::new(),
    };
    if preview.needs.is_empty() {
        return Ok(source);
    }
    let max_bytes = i64::try_from(STEP_READ_MAX_BYTES).unwrap_or(i64::MAX);
    let needs: Vec<i16> = preview
        .needs
        .iter()
        .map(|&node| node_number(node))
        .collect();
    let rows = transaction
        .many(sql!("node/outputs"), &[&execution.0, &needs, &max_bytes])
        .await?;
    for row in rows {
        let output = row.get::<_, Json>("output").0;
        source.outputs.insert(node_index(row.get("node")), output);
    }
    Ok(source)
}

/// Returns the computation of the inputs of nodes that start.
pub(super) fn computation(change: &GraphChange) -> Computation {
    Computation {
        execution: change.execution(),
        crashed: change.origin().crashed,
    }
}

/// Reads the params, in the same form as the claim of a request gives them to the first nodes.
fn params_of(row: &Row) -> JsonText {
    let params = row.get::<_, Json>("params").0;
    params.compacted_above(PARAMS_MAX_BYTES)
}

/// Reads what the payloads of these claimed jobs are built from, by execution. The second list has the jobs that
/// exist and can be built.
pub(crate) async fn claimed_nodes(
    store: &PostgresStore,
    context: &'static str,
    jobs: &[JobId],
) -> Result<(Vec<ClaimedNodes>, Vec<JobId>)> {
    let ids: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    let rows = store
        .many(context, sql!("job/node_sources"), &[&ids])
        .await?;
    let (mut groups, mut existing) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let ids: Vec<i64> = row.get("ids");
        if row.get::<_, Option<Uuid>>("version_id").is_none() {
            existing.extend(ids.into_iter().map(JobId));
            continue;
        }
        let (workspace, version) = (row::id(row, "workspace_id"), row::id(row, "version_id"));
        let found = store.version(context, workspace, version).await?;
        let machine = match machine(found, context, version) {
            Ok(machine) => machine,
            // Other jobs of the claim are not concerned.
            Err(error) => {
                tracing::error!(%error, %version, "failed to build payloads; jobs withheld");
                continue;
            }
        };
        existing.extend(ids.iter().copied().map(JobId));
        let nodes: Vec<i16> = row.get("nodes");
        let jobs = ids
            .into_iter()
            .map(JobId)
            .zip(nodes.into_iter().map(node_index));
        groups.push(ClaimedNodes {
            execution: row::id(row, "execution_id"),
            workspace,
            machine,
            params: params_of(row),
            outputs: HashMap::new(),
            jobs: jobs.collect(),
        });
    }
    read_outputs(store, context, &mut groups).await?;
    Ok((groups, existing))
}

/// Reads the outputs that the nodes refer to; nothing if they refer to none.
async fn read_outputs(
    store: &PostgresStore,
    context: &'static str,
    groups: &mut [ClaimedNodes],
) -> Result<()> {
    let (mut executions, mut nodes): (Vec<Uuid>, Vec<i16>) = Default::default();
    for group in groups.iter() {
        let begun: Vec<usize> = group.jobs.iter().map(|(_, node)| *node).collect();
        for node in group.machine.needs(&begun) {
            executions.push(group.execution.0);
            nodes.push(node_number(node));
        }
    }
    if nodes.is_empty() {
        return Ok(());
    }
    let statement = sql!("node/outputs_of_many");
    let rows = store
        .many(context, statement, &[&executions, &nodes])
        .await?;
    let mut outputs: HashMap<ExecutionId, HashMap<usize, JsonText>> = HashMap::new();
    for row in &rows {
        let of = outputs.entry(row::id(row, "execution_id")).or_default();
        let output = row.get::<_, Json>("output").0;
        of.insert(node_index(row.get("node")), output);
    }
    for group in groups {
        group.outputs = outputs.remove(&group.execution).unwrap_or_default();
    }
    Ok(())
}

/// Converts a node's index to the column's type; graphs have far fewer nodes than `i16::MAX`.
pub(super) fn node_number(node: usize) -> i16 {
    i16::try_from(node).unwrap_or(i16::MAX)
}
