//! Expires graphs: a node's job lost its last lease, or the execution's timeout has passed.

use crate::error::Fault;
use crate::graph::{open, write};
use crate::row::{Columns, NodeIndex, blob};
use crate::session::Session;
use leasehold_core::ExecutionId;
use leasehold_core::graph::{GraphStop, NodeEnd, NodeOutcome};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::definition::VersionCache;
use leasehold_store::graph::{EndedExecution, TIMED_OUT};
use leasehold_store::sql;
use rusqlite::params;

const SPENT: &str = sql!("node/spent_list");
const SPENT_DELETE: &str = sql!("node/spent_delete");
const OVERDUE: &str = sql!("graph/overdue");

pub(super) fn expire(
    session: &Session<'_>,
    versions: &VersionCache,
    markers: &CrashMarkers,
    by: &str,
    limit: u32,
) -> Result<Vec<EndedExecution>, Fault> {
    let limit = limit.min(SWEEP_MAX_BATCH);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut ended = Vec::new();
    let spent = session.all(SPENT, [limit], |row| {
        let end = NodeEnd {
            node: row.get::<_, NodeIndex>("node")?.0,
            attempts: row.get("attempts")?,
            outcome: NodeOutcome::Failed(row.get("error")?),
        };
        Ok((row.id::<ExecutionId>("execution_id")?, end))
    })?;
    for (execution, end) in spent {
        let graph = open::graph(session, versions, execution)?;
        // Another node may have ended the graph already.
        let Some(mut graph) = graph.filter(|graph| !graph.has_ended()) else {
            continue;
        };
        if open::node_ended(session, markers, &mut graph, end)? {
            ended.extend(write::all(session, by, &mut [graph])?);
        } else {
            session.run(SPENT_DELETE, [blob(execution)])?;
        }
    }
    let left = u32::try_from(most - ended.len()).unwrap_or_default();
    let overdue: Vec<ExecutionId> = session.all(OVERDUE, params![session.now, left], |row| {
        row.id("execution_id")
    })?;
    for execution in overdue {
        if let Some(mut graph) = open::graph(session, versions, execution)?
            && graph.stop(GraphStop::TimedOut, TIMED_OUT)
        {
            ended.extend(write::all(session, by, &mut [graph])?);
        }
    }
    Ok(ended)
}
