//! Reads graphs and their nodes. Writes nothing.

use crate::error::Fault;
use crate::graph::open;
use crate::job::read::LeaseIndex;
use crate::row::{Columns, NodeIndex, blob};
use crate::session::Session;
use leasehold_core::graph::{NodeRun, NodeState};
use leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES;
use leasehold_core::{ExecutionId, JobId, JsonText};
use leasehold_store::definition::VersionCache;
use leasehold_store::graph::GraphRun;
use leasehold_store::sql;
use rusqlite::{Row, params};

const GET: &str = sql!("graph/get");
const NODES: &str = sql!("node/list");

pub(super) fn get(
    session: &Session<'_>,
    execution: ExecutionId,
) -> Result<Option<GraphRun>, Fault> {
    session.optional(GET, [blob(execution)], |row| {
        Ok(GraphRun {
            execution,
            state: open::state(row)?,
            error: row.get("error")?,
            started_at: row.time("started_at")?,
            finished_at: row.time_or_none("finished_at")?,
        })
    })
}

pub(super) fn nodes(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<Vec<NodeRun>>, Fault> {
    session.in_snapshot(|session| {
        let Some((state, machine)) = open::find(session, versions, execution)? else {
            return Ok(None);
        };
        let mut nodes = NodeRun::all(machine.graph(), &state);
        let row = params![blob(execution), NODE_OUTPUTS_MAX_BYTES];
        session.all(NODES, row, |row| {
            match nodes.get_mut(row.get::<_, NodeIndex>("node")?.0) {
                Some(node) => fill_node(row, node),
                None => Ok(()),
            }
        })?;
        let mut leases = LeaseIndex::new();
        for node in &mut nodes {
            if let (NodeState::Running, Some(job)) = (node.state, node.job)
                && let Some(job) = leases.job(session, job)?
            {
                node.attempts = job.attempts;
                node.error = job.last_error;
            }
        }
        if state.end().is_some() {
            let graph = get(session, execution)?;
            NodeRun::end_cancelled(&mut nodes, graph.and_then(|graph| graph.finished_at));
        }
        Ok(Some(nodes))
    })
}

/// Fills in the stored columns of a started node.
fn fill_node(row: &Row<'_>, node: &mut NodeRun) -> Result<(), Fault> {
    let output: Option<String> = row.get("output")?;
    node.job = row.get::<_, Option<i64>>("job_id")?.map(JobId);
    node.attempts = row.get("attempts")?;
    node.output = output.map(JsonText::trusted);
    node.output_omitted = row.get("omitted")?;
    node.error = row.get("error")?;
    node.started_at = Some(row.time("started_at")?);
    node.finished_at = row.time_or_none("finished_at")?;
    Ok(())
}
