//! Writes what happened to graphs: jobs that are no longer wanted, nodes and states, jobs of the nodes that follow, ends of executions. Decides nothing.

use super::change::{Change, NodeEnd, Outcome};
use super::given::number;
use super::hold::OpenNodes;
use crate::execution;
use crate::job::row::JsonIn;
use crate::row::micros;
use crate::store::sql;
use crate::transaction::Open;
use leasehold_core::job::bounded_wait;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::graph::{ABANDONED, EndedExecution, job_of};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// Fails the jobs of nodes that are no longer wanted; whoever has one has lost its lease. The nodes end with it.
pub(super) async fn abandon(
    transaction: &Open<'_>,
    moment: Timestamp,
    changes: &mut [Change],
    open: &OpenNodes,
) -> Result<bool> {
    let wanted = |change: &Change| {
        let jobs = change.abandon.iter();
        let jobs = jobs.filter_map(|&node| open.job(change.execution, node));
        jobs.collect::<Vec<i64>>()
    };
    let jobs: Vec<i64> = changes.iter().flat_map(wanted).collect();
    let mut attempts: HashMap<i64, i32> = HashMap::new();
    if !jobs.is_empty() {
        let rows = transaction
            .many(sql!("job/abandon"), &[&moment, &jobs, &ABANDONED])
            .await?;
        let tried = |row: &Row| -> (i64, i32) { (row.get("id"), row.get("attempts")) };
        attempts.extend(rows.iter().map(tried));
    }
    for change in changes {
        for node in std::mem::take(&mut change.abandon) {
            let job = open.job(change.execution, node);
            let tried = job.and_then(|job| attempts.get(&job));
            change.ended.push(NodeEnd {
                node,
                attempts: tried.map_or(0, |tried| tried.unsigned_abs()),
                outcome: Outcome::Abandoned,
            });
        }
    }
    Ok(!jobs.is_empty())
}

/// Where graphs are now, and how their nodes ended.
pub(super) async fn record(
    transaction: &Open<'_>,
    moment: Timestamp,
    changes: &[Change],
) -> Result<()> {
    let old = |change: &&Change| change.has_changed && !change.is_new;
    let old: Vec<&Change> = changes.iter().filter(old).collect();
    let ends: Vec<(ExecutionId, &NodeEnd)> = changes
        .iter()
        .flat_map(|change| change.ended.iter().map(|end| (change.execution, end)))
        .collect();
    if old.is_empty() && ends.is_empty() {
        return Ok(());
    }
    fn column<'a, A, T>(of: &'a [A], get: impl Fn(&'a A) -> T) -> Vec<T> {
        of.iter().map(get).collect()
    }
    let ended = |change: &Change| change.state.end().map(|end| end.as_str());
    transaction
        .execute(
            sql!("graph/record"),
            &[
                &moment,
                &column(&old, |change| change.execution.0),
                &column(&old, |change| change.state.letters()),
                &column(&old, |change| ended(change)),
                &column(&old, |change| change.error.as_deref()),
                &column(&ends, |(execution, _)| execution.0),
                &column(&ends, |(_, end)| number(end.node)),
                &column(&ends, |(_, end)| end.attempts.cast_signed()),
                &column(&ends, |(_, end)| match &end.outcome {
                    Outcome::Completed(output) => Some(JsonIn(output)),
                    Outcome::Failed(_) | Outcome::Abandoned => None,
                }),
                &column(&ends, |(_, end)| match &end.outcome {
                    Outcome::Failed(error) => Some(error.as_str()),
                    Outcome::Completed(_) | Outcome::Abandoned => None,
                }),
            ],
        )
        .await
        .map(drop)
}

/// A job that is to be made for a node.
struct Begun {
    execution: Uuid,
    node: i16,
    job: NewJob,
}

/// The jobs of the nodes that follow; says whether there are any. Their queues and lines were made when the graph was started.
pub(super) async fn begin(
    transaction: &Open<'_>,
    moment: Timestamp,
    changes: &mut [Change],
) -> Result<bool> {
    let begun: Vec<Begun> = changes
        .iter_mut()
        .flat_map(|change| {
            let begin = std::mem::take(&mut change.begin).into_iter();
            let change = &*change;
            begin.map(move |(node, work)| Begun {
                execution: change.execution.0,
                node: number(node),
                job: job_of(work, change.priority, change.trace_context.as_deref()),
            })
        })
        .collect();
    if begun.is_empty() {
        return Ok(false);
    }
    fn column<'a, T>(begun: &'a [Begun], of: impl Fn(&'a Begun) -> T) -> Vec<T> {
        begun.iter().map(of).collect()
    }
    let row = transaction
        .one(
            sql!("node/begin"),
            &[
                &moment,
                &column(&begun, |b| b.execution),
                &column(&begun, |b| b.node),
                &column(&begun, |b| b.job.queue.as_str()),
                &column(&begun, |b| b.job.priority),
                &column(&begun, |b| b.job.kind.as_str()),
                &column(&begun, |b| JsonIn(&b.job.payload)),
                &column(&begun, |b| match b.job.start {
                    JobStart::In(wait) => Some(micros(bounded_wait(wait))),
                    JobStart::Now | JobStart::At(_) => None,
                }),
                &column(&begun, |b| b.job.max_attempts.map(|max| max.cast_signed())),
                &column(&begun, |b| b.job.timeout.map(micros)),
                &column(&begun, |b| b.job.backoff.map(|b| micros(b.base))),
                &column(&begun, |b| b.job.backoff.map(|b| micros(b.max))),
                &column(&begun, |b| b.job.backoff.map(|b| b.factor)),
                &column(&begun, |b| b.job.backoff.map(|b| b.jitter)),
                &column(&begun, |b| b.job.trace_context.as_deref()),
            ],
        )
        .await?;
    if usize::try_from(row.get::<_, i64>("begun")).ok() == Some(begun.len()) {
        return Ok(true);
    }
    let text = "a queue of a graph that was started is gone";
    Err(Error::new(
        transaction.context,
        ErrorKind::Broken(text.to_owned()),
    ))
}

/// The ends of executions whose graphs have ended, with requests and slots; says which ended.
pub(super) async fn end(
    transaction: &Open<'_>,
    moment: Timestamp,
    by: &str,
    changes: &[Change],
) -> Result<Vec<EndedExecution>> {
    let changed = changes.iter().filter(|change| change.has_changed);
    let finish = |change: &Change| {
        Some(ExecutionFinish {
            execution: change.execution,
            end: change.state.end()?,
            error: change.error.clone(),
        })
    };
    let finishes: Vec<ExecutionFinish> = changed.filter_map(finish).collect();
    if finishes.is_empty() {
        return Ok(Vec::new());
    }
    execution::finish_within(transaction, moment, by, &finishes).await
}
