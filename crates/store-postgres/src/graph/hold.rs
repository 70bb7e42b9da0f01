//! Holding what an operation on graphs changes, in the one order that all keep: graphs, queues, pages of leases.

use crate::error::unreadable;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::Open;
use futures::try_join;
use leasehold_core::graph::{GraphChange, GraphOrigin, GraphState, Machine};
use leasehold_core::job::JobRef;
use leasehold_core::{ExecutionEnd, ExecutionId, JobId, Timestamp, VersionId};
use leasehold_store::definition::CachedVersion;
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// The state of a graph, as it is kept.
pub(super) fn state(row: &Row, context: &'static str) -> Result<GraphState> {
    let end = row::maybe_named::<ExecutionEnd>(row, "ended")?;
    let broken = || ErrorKind::Broken("the state of a graph makes no sense".to_owned());
    GraphState::read(row.get("state"), end).ok_or_else(|| Error::new(context, broken()))
}

/// The machine of a version whose graph was started.
pub(super) fn machine(
    found: Option<Arc<CachedVersion>>,
    context: &'static str,
    version: VersionId,
) -> Result<Arc<Machine>> {
    let machine = found.map(|cached| cached.machine()).transpose();
    let machine = machine.map_err(|problem| unreadable(context, problem))?;
    let none = || ErrorKind::Broken(format!("the version {version} has no graph"));
    machine.flatten().ok_or_else(|| Error::new(context, none()))
}

async fn change(store: &PostgresStore, transaction: &Open<'_>, row: &Row) -> Result<GraphChange> {
    let (workspace, version) = (row::id(row, "workspace_id"), row::id(row, "version_id"));
    let context = transaction.context;
    let found = store
        .version_by(&transaction.inner, context, workspace, version)
        .await?;
    let machine = machine(found, context, version)?;
    let state = state(row, context)?;
    let execution = row::id(row, "execution_id");
    let origin = GraphOrigin {
        workspace,
        priority: row.get("priority"),
        trace_context: row.get("trace_context"),
    };
    Ok(GraphChange::of(execution, origin, machine, state))
}

/// The graph of an execution with its deadline; none if it was never started.
pub(super) async fn graph(
    store: &PostgresStore,
    transaction: &Open<'_>,
    execution: ExecutionId,
) -> Result<Option<(GraphChange, Option<Timestamp>)>> {
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

/// The graph that has this job as a node, and which node it is; none if its record is gone.
pub(super) async fn graph_of(
    store: &PostgresStore,
    transaction: &Open<'_>,
    job: JobId,
) -> Result<Option<(GraphChange, usize)>> {
    let rows = transaction
        .many(sql!("graph/lock_of_job"), &[&job.0])
        .await?;
    node(store, transaction, rows.first()).await
}

async fn node(
    store: &PostgresStore,
    transaction: &Open<'_>,
    row: Option<&Row>,
) -> Result<Option<(GraphChange, usize)>> {
    let Some(row) = row else {
        return Ok(None);
    };
    let change = change(store, transaction, row).await?;
    Ok(Some((change, place(row.get("node")))))
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

    /// The queues and the jobs.
    fn places(&self) -> (&[i32], Vec<i64>) {
        (&self.queues, self.jobs.values().copied().collect())
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
    open: Option<&OpenNodes>,
) -> Result<Leases> {
    let (queues, jobs) = open.map(OpenNodes::places).unwrap_or_default();
    let pages = transaction
        .many(sql!("job/lease_lock"), &[&tokens, &queues, &jobs])
        .await?;
    let now = transaction
        .one(sql!("clock/now"), &[&store.given_now()])
        .await?;
    Leases::read(&pages, &now)
}

/// The graph that has the job of this claim as a node, and the claim's page, at once: for an operation that gives up no node.
pub(super) async fn graph_and_lease(
    store: &PostgresStore,
    transaction: &Open<'_>,
    claim: JobRef,
) -> Result<(Option<(GraphChange, usize)>, Leases)> {
    let graph = transaction.prepare(sql!("graph/lock_of_job")).await?;
    let page = transaction.prepare(sql!("job/lease_lock")).await?;
    let clock = transaction.prepare(sql!("clock/now")).await?;
    let (no_queues, no_jobs): (&[i32], &[i64]) = (&[], &[]);
    let (tokens, now) = (vec![claim.token], store.given_now());
    let asked: (&Params<'_>, &Params<'_>, &Params<'_>) =
        (&[&claim.job.0], &[&tokens, &no_queues, &no_jobs], &[&now]);
    // One after the other in the server, in this order, without waiting for each answer.
    let (graph, page, now) = try_join!(
        transaction.query(&graph, asked.0),
        transaction.query(&page, asked.1),
        transaction.query(&clock, asked.2),
    )?;
    let none = || ErrorKind::Broken("the database has no time".to_owned());
    let now = now
        .first()
        .ok_or_else(|| Error::new(transaction.context, none()))?;
    let leases = Leases::read(&page, now)?;
    Ok((node(store, transaction, graph.first()).await?, leases))
}
