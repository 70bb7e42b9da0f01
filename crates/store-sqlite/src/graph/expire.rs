//! Expires graphs: a node's job lost its last lease, or the execution's timeout has passed.

use crate::error::Fault;
use crate::graph::{open, write};
use crate::row::{Columns, NodeIndex, blob};
use crate::session::Session;
use leasehold_core::ExecutionId;
use leasehold_core::graph::{GraphStop, NodeEnd, NodeOutcome};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::ErrorKind;
use leasehold_store::definition::VersionCache;
use leasehold_store::graph::{EndedExecution, TIMED_OUT};
use leasehold_store::sql;
use std::collections::{BTreeMap, HashSet};

/// How many executions that cannot be ended one call passes.
const MAX_BROKEN: usize = 1_000;

const SPENT: &str = sql!("node/spent_list");
const SPENT_EXECUTIONS: &str = sql!("node/spent_executions");
const SPENT_DELETE: &str = sql!("node/spent_delete");
const OVERDUE: &str = sql!("graph/overdue");

/// Ends graphs one by one. One that cannot be read or ended does not block the others, and does not count towards the limit. The next call tries it again.
pub(super) fn expire(
    session: &Session<'_>,
    versions: &VersionCache,
    markers: &CrashMarkers,
    by: &str,
    limit: u32,
) -> Result<Vec<EndedExecution>, Fault> {
    let most = usize::try_from(limit.min(SWEEP_MAX_BATCH)).unwrap_or(usize::MAX);
    let (mut ended, mut tried) = (Vec::new(), HashSet::new());
    while ended.len() < most && tried.len() < most + MAX_BROKEN {
        let due = due(session, most - ended.len(), &tried)?;
        if due.is_empty() {
            break;
        }
        for (execution, is_overdue) in due.into_iter().take(most - ended.len()) {
            let expired = session.isolated(format_args!("execution {execution}"), || {
                expire_one(session, versions, markers, by, execution, is_overdue)
            })?;
            ended.extend(expired.flatten());
            tried.insert(execution);
        }
    }
    Ok(ended)
}

/// Returns executions that were not tried yet and have spent nodes or have timed out, with whether they have.
fn due(
    session: &Session<'_>,
    most: usize,
    tried: &HashSet<ExecutionId>,
) -> Result<BTreeMap<ExecutionId, bool>, Fault> {
    let most = i64::try_from(most + tried.len()).unwrap_or(i64::MAX);
    let spent: Vec<ExecutionId> =
        session.all(SPENT_EXECUTIONS, [most], |row| row.id("execution_id"))?;
    let overdue: Vec<ExecutionId> =
        session.all(OVERDUE, [session.now, most], |row| row.id("execution_id"))?;
    let spent = spent.into_iter().map(|execution| (execution, false));
    let overdue = overdue.into_iter().map(|execution| (execution, true));
    let due = spent.chain(overdue);
    Ok(due
        .filter(|(execution, _)| !tried.contains(execution))
        .collect())
}

fn expire_one(
    session: &Session<'_>,
    versions: &VersionCache,
    markers: &CrashMarkers,
    by: &str,
    execution: ExecutionId,
    is_overdue: bool,
) -> Result<Option<EndedExecution>, Fault> {
    let spent = session.all(SPENT, [blob(execution)], |row| {
        Ok(NodeEnd {
            node: row.get::<_, NodeIndex>("node")?.0,
            attempts: row.get("attempts")?,
            outcome: NodeOutcome::Failed(row.get("error")?),
        })
    })?;
    let missing = || ErrorKind::Broken("its graph or its request is missing".to_owned());
    let mut graph = open::graph(session, versions, execution)?.ok_or_else(missing)?;
    for end in spent {
        if open::node_ended(session, markers, &mut graph, end)? {
            return Ok(write::all(session, by, &mut [graph])?.pop());
        }
    }
    session.run(SPENT_DELETE, [blob(execution)])?;
    if is_overdue && graph.stop(GraphStop::TimedOut, TIMED_OUT) {
        return Ok(write::all(session, by, &mut [graph])?.pop());
    }
    Ok(None)
}
