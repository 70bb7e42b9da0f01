//! Writes what happened to graphs: jobs that are no longer wanted, nodes and states, jobs of the nodes that follow, ends of executions. Decides nothing.

use super::given::number;
use super::hold::OpenNodes;
use crate::execution;
use crate::job::row::JsonIn;
use crate::row::micros;
use crate::store::sql;
use crate::transaction::Open;
use leasehold_core::graph::{GraphChange, NodeEnd};
use leasehold_core::job::bounded_wait;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::graph::{ABANDONED, EndedExecution, finish_of, jobs_of};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashMap;
use tokio_postgres::Row;
use uuid::Uuid;

/// Fails the jobs of nodes that are no longer wanted; whoever has one has lost its lease. The nodes end with it.
pub(super) async fn abandon(
    transaction: &Open<'_>,
    moment: Timestamp,
    changes: &mut [GraphChange],
    open: &OpenNodes,
) -> Result<bool> {
    let wanted = |change: &GraphChange| {
        let jobs = change.abandoned().iter();
        let jobs = jobs.filter_map(|&node| open.job(change.execution(), node));
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
        let execution = change.execution();
        change.end_abandoned(|node| {
            let tried = open.job(execution, node).and_then(|job| attempts.get(&job));
            tried.map_or(0, |tried| tried.unsigned_abs())
        });
    }
    Ok(!jobs.is_empty())
}

/// Where graphs are now, and how their nodes ended.
pub(super) async fn record(
    transaction: &Open<'_>,
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
                &column(&ends, |(_, end)| number(end.node)),
                &column(&ends, |(_, end)| end.attempts.cast_signed()),
                &column(&ends, |(_, end)| end.output().map(JsonIn)),
                &column(&ends, |(_, end)| end.error()),
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
    changes: &mut [GraphChange],
) -> Result<bool> {
    let begun: Vec<Begun> = changes
        .iter_mut()
        .flat_map(|change| {
            let execution = change.execution().0;
            let jobs = jobs_of(change).into_iter();
            jobs.map(move |(node, job)| Begun {
                execution,
                node: number(node),
                job,
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
    changes: &[GraphChange],
) -> Result<Vec<EndedExecution>> {
    let finishes: Vec<ExecutionFinish> = changes.iter().filter_map(finish_of).collect();
    if finishes.is_empty() {
        return Ok(Vec::new());
    }
    execution::finish_within(transaction, moment, by, &finishes).await
}
