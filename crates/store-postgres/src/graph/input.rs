//! Reads what the inputs of nodes are built from: the params of the execution and the outputs of earlier nodes.

use super::lock::{machine, node_index};
use crate::job::row::Json;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_core::graph::{EndPreview, GraphChange, NodeEnd, NodeSource};
use leasehold_core::limits::{PARAMS_MAX_BYTES, STEP_READ_MAX_BYTES};
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_crash_marker::{Computation, CrashMarkers, reach_claim_failpoint, reach_failpoint};
use leasehold_store::node_payload::{self, ClaimedNodes, Payloads};
use leasehold_store::{Result, run_off_thread};
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

/// Ends a node after which others start: computes their inputs, with a crash marker. Looking up values in 16 MiB of outputs takes up to a tenth of a second,
/// so large inputs are computed off the serving threads. As many are computed at once as there are connections, because the caller holds one.
pub(super) async fn compute(
    markers: &CrashMarkers,
    mut change: GraphChange,
    end: NodeEnd,
    source: NodeSource,
) -> Result<GraphChange> {
    let outputs = source.outputs.values().chain(end.output());
    let bytes: usize = outputs.map(|output| output.as_str().len()).sum();
    let bytes = bytes + source.params.as_str().len();
    let (markers, computation) = (markers.clone(), computation(&change));
    let compute = move || {
        markers.compute(computation, || {
            reach_failpoint(&source.params);
            change.node_ended(end, source);
        });
        Ok(change)
    };
    run_off_thread("job_finish", bytes, compute).await
}

/// Builds the payloads of the jobs of one execution, with a crash marker.
pub(crate) fn payloads(markers: &CrashMarkers, nodes: &ClaimedNodes) -> Payloads {
    let computation = Computation {
        execution: nodes.execution,
        crashed: nodes.crashed,
    };
    markers.compute(computation, || {
        reach_claim_failpoint(&nodes.params);
        node_payload::payloads(nodes)
    })
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
            crashed: row.get("crashed"),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use futures::FutureExt;
    use leasehold_core::ExecutionEnd;
    use leasehold_core::graph::{GraphOrigin, GraphState, Machine, NodeOutcome, NodeState};
    use serde_json::json;
    use std::sync::Arc;

    /// A graph of two nodes, and the end of the first with an output of this size, which the second one refers to.
    fn end_with(bytes: usize) -> (GraphChange, NodeEnd) {
        let task = |id: &str, input| json!({"id": id, "type": "task", "queue": "q", "kind": "k", "input": input});
        let graph = json!({
            "nodes": [task("a", json!(1)), task("b", json!({"$from": "/nodes/a/found"}))],
            "edges": [{"from": "a", "to": "b"}],
        });
        let graph = serde_json::from_value(graph).unwrap();
        let machine = Arc::new(Machine::new(graph).unwrap());
        let origin = GraphOrigin {
            workspace: Uuid::nil().into(),
            priority: 0,
            trace_context: None,
            crashed: false,
        };
        let state = GraphState::read("rw", None::<ExecutionEnd>).unwrap();
        let change = GraphChange::of(Uuid::nil().into(), origin, machine, state);
        let output = json!({"padding": "x".repeat(bytes), "found": 1});
        let end = NodeEnd {
            node: 0,
            attempts: 1,
            outcome: NodeOutcome::Completed(output.into()),
        };
        (change, end)
    }

    #[test]
    fn large_inputs_are_computed_off_the_serving_thread() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        for (bytes, at_once) in [(1_000, true), (200_000, false)] {
            // The only thread for blocking work is busy until the first poll is over.
            let (release, busy) = std::sync::mpsc::channel::<()>();
            runtime.spawn_blocking(move || busy.recv());
            let (change, end) = end_with(bytes);
            let markers = CrashMarkers::default();
            let change = runtime.block_on(async {
                let computed = compute(&markers, change, end, NodeSource::default());
                let mut computed = Box::pin(computed);
                let ready = computed.as_mut().now_or_never();
                assert_eq!(ready.is_some(), at_once, "{bytes}");
                drop(release);
                match ready {
                    Some(change) => change.unwrap(),
                    None => computed.await.unwrap(),
                }
            });
            let states = [NodeState::Completed, NodeState::Running];
            assert_eq!(change.state().nodes(), states, "{:?}", change.error());
        }
    }
}
