//! Writes changes of graphs: abandoned jobs, nodes and states, jobs of the nodes that follow, ends of executions. Decides nothing.

use super::input::{self, node_number};
use super::lock::OpenNodes;
use crate::execution;
use crate::job::row::JsonIn;
use crate::row::micros;
use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use leasehold_core::graph::{GraphChange, NodeEnd};
use leasehold_core::job::bounded_wait;
use leasehold_core::{ExecutionId, Timestamp, WorkspaceId};
use leasehold_store::Result;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::graph::{ABANDONED, EndedExecution, charge_of, finish_of, jobs_of};
use leasehold_store::job::{JobStart, NewJob};
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;
use uuid::Uuid;

/// Ends the jobs of abandoned nodes, which revokes their leases, and ends the nodes whose job was claimed before. Returns whether there were
/// any.
pub(super) async fn abandon(
    transaction: &OpenTransaction<'_>,
    moment: Timestamp,
    changes: &mut [GraphChange],
    open: &OpenNodes,
) -> Result<bool> {
    let abandoned = |change: &GraphChange| {
        let jobs = change.abandoned().iter();
        let jobs = jobs.filter_map(|&node| open.job(change.execution(), node));
        jobs.collect::<Vec<i64>>()
    };
    let jobs: Vec<i64> = changes.iter().flat_map(abandoned).collect();
    let mut attempts: HashMap<i64, i32> = HashMap::new();
    if !jobs.is_empty() {
        let rows = transaction
            .many(
                sql!("job/abandon"),
                &[&moment, &jobs, &ABANDONED, &transaction.job_xid_offset],
            )
            .await?;
        let attempt = |row: &Row| -> (i64, i32) { (row.get("id"), row.get("attempts")) };
        attempts.extend(rows.iter().map(attempt));
    }
    for change in changes {
        let execution = change.execution();
        change.end_abandoned(|node| {
            let count = open.job(execution, node).and_then(|job| attempts.get(&job));
            count.map(|count| count.unsigned_abs())
        });
    }
    Ok(!jobs.is_empty())
}

/// Writes the states of graphs and the ends of their nodes.
pub(super) async fn record(
    transaction: &OpenTransaction<'_>,
    moment: Timestamp,
    changes: &[GraphChange],
) -> Result<()> {
    let old = |change: &&GraphChange| change.has_changed() && !change.is_new();
    let old: Vec<&GraphChange> = changes.iter().filter(old).collect();
    let ends: Vec<(ExecutionId, &NodeEnd)> = changes
        .iter()
        .flat_map(|change| change.ended().iter().map(|end| (change.execution(), end)))
        .collect();
    if old.is_empty() && ends.is_empty() {
        return Ok(());
    }
    fn column<'a, A, T>(of: &'a [A], get: impl Fn(&'a A) -> T) -> Vec<T> {
        of.iter().map(get).collect()
    }
    let ended = |change: &GraphChange| change.state().end().map(|end| end.as_str());
    transaction
        .execute(
            sql!("graph/record"),
            &[
                &moment,
                &column(&old, |change| change.execution().0),
                &column(&old, |change| change.state().letters()),
                &column(&old, |change| ended(change)),
                &column(&old, |change| change.error()),
                &column(&ends, |(execution, _)| execution.0),
                &column(&ends, |(_, end)| node_number(end.node)),
                &column(&ends, |(_, end)| end.attempts.cast_signed()),
                &column(&ends, |(_, end)| end.output().map(JsonIn)),
                &column(&ends, |(_, end)| end.error()),
            ],
        )
        .await
        .map(drop)
}

/// Charges what is written to the workspaces. Locks requests; a caller that holds the lock of an execution must have locked its request first.
async fn charge(transaction: &OpenTransaction<'_>, changes: &[GraphChange]) -> Result<()> {
    for change in changes {
        if let Some(bytes) = charge_of(change) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            transaction
                .execute(sql!("graph/charge"), &[&change.execution().0, &bytes])
                .await?;
        }
    }
    Ok(())
}

/// A new job of a node.
struct NodeJob {
    workspace: Uuid,
    execution: Uuid,
    node: i16,
    job: NewJob,
}

/// Whether nodes started.
pub(super) enum NodesBegun {
    /// No node was to start.
    None,
    /// All of them.
    All,
    /// Not all: this workspace may not use one of these queues. The caller has to roll back.
    Refused(WorkspaceId, HashSet<String>),
}

/// Inserts the jobs of the nodes that follow. Starting the graph created their lines. Charges the workspaces for them and for the outputs of the
/// nodes that ended.
pub(super) async fn begin(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    moment: Timestamp,
    changes: &mut [GraphChange],
) -> Result<NodesBegun> {
    charge(transaction, changes).await?;
    let jobs: Vec<NodeJob> = changes
        .iter_mut()
        .filter(|change| change.begins_nodes())
        .flat_map(|change| {
            let (workspace, execution) = (change.origin().workspace.0, change.execution().0);
            let computation = input::computation(change);
            let new_jobs = store.crash_markers.compute(computation, || jobs_of(change));
            let new_jobs = new_jobs.into_iter();
            new_jobs.map(move |(node, job)| NodeJob {
                workspace,
                execution,
                node: node_number(node),
                job,
            })
        })
        .collect();
    if jobs.is_empty() {
        return Ok(NodesBegun::None);
    }
    fn column<'a, T>(jobs: &'a [NodeJob], of: impl Fn(&'a NodeJob) -> T) -> Vec<T> {
        jobs.iter().map(of).collect()
    }
    let row = transaction
        .one(
            sql!("node/begin"),
            &[
                &moment,
                &column(&jobs, |node| node.execution),
                &column(&jobs, |node| node.node),
                &column(&jobs, |node| node.job.queue.as_str()),
                &column(&jobs, |node| node.job.priority),
                &column(&jobs, |node| node.job.kind.as_str()),
                &column(&jobs, |node| JsonIn(&node.job.payload)),
                &column(&jobs, |node| match node.job.start {
                    JobStart::In(wait) => Some(micros(bounded_wait(wait))),
                    JobStart::Now | JobStart::At(_) => None,
                }),
                &column(&jobs, |node| {
                    node.job.max_attempts.map(|max| max.cast_signed())
                }),
                &column(&jobs, |node| node.job.timeout.map(micros)),
                &column(&jobs, |node| node.job.backoff.map(|b| micros(b.base))),
                &column(&jobs, |node| node.job.backoff.map(|b| micros(b.max))),
                &column(&jobs, |node| node.job.backoff.map(|b| b.factor)),
                &column(&jobs, |node| node.job.backoff.map(|b| b.jitter)),
                &column(&jobs, |node| node.job.trace_context.as_deref()),
                &column(&jobs, |node| node.workspace),
                &transaction.job_xid_offset,
            ],
        )
        .await?;
    if usize::try_from(row.get::<_, i64>("started")).ok() == Some(jobs.len()) {
        return Ok(NodesBegun::All);
    }
    let workspace = jobs[0].workspace.into();
    let queues = jobs.into_iter().map(|node| node.job.queue);
    Ok(NodesBegun::Refused(workspace, queues.collect()))
}

/// Resets the crashes of requests whose inputs were computed.
pub(super) async fn reset_crashes(
    transaction: &OpenTransaction<'_>,
    changes: &[GraphChange],
) -> Result<()> {
    for change in changes {
        transaction
            .execute(sql!("request/reset_crashes"), &[&change.execution().0])
            .await?;
    }
    Ok(())
}

/// Ends the executions whose graphs have ended, with their requests and slots. Returns which ended.
pub(super) async fn end(
    transaction: &OpenTransaction<'_>,
    moment: Timestamp,
    by: &str,
    changes: &[GraphChange],
) -> Result<Vec<EndedExecution>> {
    let finishes: Vec<ExecutionFinish> = changes.iter().filter_map(finish_of).collect();
    if finishes.is_empty() {
        return Ok(Vec::new());
    }
    execution::finish_within(transaction, moment, by, &finishes).await
}
