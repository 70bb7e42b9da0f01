//! Holding what an operation on graphs changes, in the one order that all keep: graphs, queues, pages of leases.

use super::change::Change;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::Open;
use futures::try_join;
use leasehold_core::graph::GraphState;
use leasehold_core::{ExecutionEnd, ExecutionId, JobId, Timestamp};
use leasehold_store::job::JobRef;
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap};
use tokio_postgres::Row;
use uuid::Uuid;

/// Graphs whose rows are held.
#[derive(Default)]
pub(super) struct Graphs {
    pub(super) all: Vec<Change>,
    /// Which graph a job belongs to, by its place in `all`, and which node of it it is.
    places: HashMap<JobId, (usize, usize)>,
}

impl Graphs {
    pub(super) fn place(&self, job: JobId) -> Option<(usize, usize)> {
        self.places.get(&job).copied()
    }
}

/// The state of a graph, as it is kept.
pub(super) fn state(row: &Row, context: &'static str) -> Result<GraphState> {
    let end = row::maybe_named::<ExecutionEnd>(row, "ended")?;
    let broken = || ErrorKind::Broken("the state of a graph makes no sense".to_owned());
    GraphState::read(row.get("state"), end).ok_or_else(|| Error::new(context, broken()))
}

async fn change(store: &PostgresStore, transaction: &Open<'_>, row: &Row) -> Result<Change> {
    let (workspace, version) = (row::id(row, "workspace_id"), row::id(row, "version_id"));
    let machine = store
        .machines
        .of_started(&transaction.inner, transaction.context, workspace, version)
        .await?;
    let state = state(row, transaction.context)?;
    let execution = row::id(row, "execution_id");
    let mut change = Change::of(execution, workspace, row.get("priority"), machine, state);
    change.trace_context = row.get("trace_context");
    Ok(change)
}

/// The graph of an execution with its deadline; none if it was never started.
pub(super) async fn graph(
    store: &PostgresStore,
    transaction: &Open<'_>,
    execution: ExecutionId,
) -> Result<Option<(Change, Option<Timestamp>)>> {
    let rows = transaction
        .many(sql!("graph/lock"), &[&[execution.0].as_slice()])
        .await?;
    match rows.first() {
        None => Ok(None),
        Some(row) => {
            let change = change(store, transaction, row).await?;
            Ok(Some((change, row::time(row, "deadline")?)))
        }
    }
}

/// The graphs that have these jobs as nodes.
pub(super) async fn graphs_of(
    store: &PostgresStore,
    transaction: &Open<'_>,
    jobs: &[i64],
) -> Result<Graphs> {
    let rows = transaction
        .many(sql!("graph/lock_of_jobs"), &[&jobs])
        .await?;
    read(store, transaction, &rows).await
}

async fn read(store: &PostgresStore, transaction: &Open<'_>, rows: &[Row]) -> Result<Graphs> {
    let mut graphs = Graphs::default();
    for row in rows {
        let (jobs, nodes): (Vec<i64>, Vec<i16>) = (row.get("jobs"), row.get("nodes"));
        let at = graphs.all.len();
        let places = jobs.into_iter().zip(nodes);
        graphs
            .places
            .extend(places.map(|(job, node)| (JobId(job), (at, place(node)))));
        graphs.all.push(change(store, transaction, row).await?);
    }
    Ok(graphs)
}

/// A node's place in its graph's list; the schema allows none below zero.
pub(super) fn place(node: i16) -> usize {
    usize::from(node.unsigned_abs())
}

/// The jobs of nodes that were begun and have not ended, and their queues, which are held: no claim takes one meanwhile.
#[derive(Default)]
pub(super) struct OpenNodes {
    jobs: HashMap<(ExecutionId, usize), i64>,
    queues: Vec<i32>,
}

impl OpenNodes {
    pub(super) fn job(&self, execution: ExecutionId, node: usize) -> Option<i64> {
        self.jobs.get(&(execution, node)).copied()
    }
}

/// Holds the queues of the open nodes of these executions, whose graphs are held.
pub(super) async fn open_nodes(
    transaction: &Open<'_>,
    executions: &[ExecutionId],
) -> Result<OpenNodes> {
    if executions.is_empty() {
        return Ok(OpenNodes::default());
    }
    let ids: Vec<Uuid> = executions.iter().map(|id| id.0).collect();
    let rows = transaction.many(sql!("node/open"), &[&ids]).await?;
    let mut queues = BTreeSet::new();
    let mut jobs = HashMap::with_capacity(rows.len());
    for row in &rows {
        let node = (row::id(row, "execution_id"), place(row.get("node")));
        jobs.insert(node, row.get("job_id"));
        queues.insert(row.get("queue_id"));
    }
    let queues: Vec<i32> = queues.into_iter().collect();
    transaction
        .execute(sql!("queue/lock_many"), &[&queues])
        .await?;
    Ok(OpenNodes { jobs, queues })
}

/// Pages that are held, and the time that judges their leases, read after that.
pub(super) struct Leases {
    pages: HashMap<i64, Page>,
    pub(super) moment: Timestamp,
}

struct Page {
    worker: String,
    ids: Vec<i64>,
    ends: Vec<Timestamp>,
    attempts: Vec<i32>,
}

impl Leases {
    fn read(pages: &[Row], now: &Row) -> Result<Self> {
        let page = |row: &Row| {
            let page = Page {
                worker: row.get("worker"),
                ids: row.get("ids"),
                ends: row::time(row, "ends")?,
                attempts: row.get("attempts"),
            };
            Ok((row.get("token"), page))
        };
        Ok(Self {
            pages: pages.iter().map(page).collect::<Result<_>>()?,
            moment: row::time(now, "now")?,
        })
    }

    /// Which attempt a claim is, if the worker holds it.
    pub(super) fn attempt(&self, worker: &str, claim: JobRef) -> Option<u32> {
        let page = self.pages.get(&claim.token)?;
        let at = page.ids.iter().position(|id| *id == claim.job.0)?;
        let held = page.worker == worker && *page.ends.get(at)? > self.moment;
        let attempt = page.attempts.get(at)?.unsigned_abs();
        held.then_some(attempt)
    }
}

/// Holds the pages of these tokens, and those that have jobs of open nodes.
pub(super) async fn leases(
    store: &PostgresStore,
    transaction: &Open<'_>,
    tokens: &[i64],
    open: &OpenNodes,
) -> Result<Leases> {
    let jobs: Vec<i64> = open.jobs.values().copied().collect();
    let pages = transaction
        .many(sql!("job/lease_lock"), &[&tokens, &open.queues, &jobs])
        .await?;
    let now = transaction
        .one(sql!("clock/now"), &[&store.given_now()])
        .await?;
    Leases::read(&pages, &now)
}

/// The graphs that have these jobs as nodes, and the pages of these tokens, at once: for an operation that gives up no node.
pub(super) async fn graphs_and_leases(
    store: &PostgresStore,
    transaction: &Open<'_>,
    jobs: &[i64],
    tokens: &[i64],
) -> Result<(Graphs, Leases)> {
    let graphs = transaction.prepare(sql!("graph/lock_of_jobs")).await?;
    let pages = transaction.prepare(sql!("job/lease_lock")).await?;
    let clock = transaction.prepare(sql!("clock/now")).await?;
    let (no_queues, no_jobs): (&[i32], &[i64]) = (&[], &[]);
    let now = store.given_now();
    let asked: (&Params<'_>, &Params<'_>, &Params<'_>) =
        (&[&jobs], &[&tokens, &no_queues, &no_jobs], &[&now]);
    // One after the other in the server, in this order, without waiting for each answer.
    let (graphs, pages, now) = try_join!(
        transaction.query(&graphs, asked.0),
        transaction.query(&pages, asked.1),
        transaction.query(&clock, asked.2),
    )?;
    let none = || ErrorKind::Broken("the database has no time".to_owned());
    let now = now
        .first()
        .ok_or_else(|| Error::new(transaction.context, none()))?;
    let leases = Leases::read(&pages, now)?;
    Ok((read(store, transaction, &graphs).await?, leases))
}
