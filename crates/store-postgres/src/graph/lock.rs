//! Locks the rows that an operation on graphs changes, always in this order: graphs, queues, pages of leases.

use crate::error::unreadable;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::OpenTransaction;
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

/// Reads the state of a graph.
pub(super) fn state(row: &Row, context: &'static str) -> Result<GraphState> {
    let end = row::maybe_named::<ExecutionEnd>(row, "ended")?;
    let broken = || ErrorKind::Broken("invalid state of a graph".to_owned());
    GraphState::read(row.get("state"), end).ok_or_else(|| Error::new(context, broken()))
}

/// Returns the state machine of a version whose graph was started.
pub(super) fn machine(
    found: Option<Arc<CachedVersion>>,
    context: &'static str,
    version: VersionId,
) -> Result<Arc<Machine>> {
    let machine = found.map(|cached| cached.machine()).transpose();
    let machine = machine.map_err(|problem| unreadable(context, problem))?;
    let none = || ErrorKind::Broken(format!("version {version} has no graph"));
    machine.flatten().ok_or_else(|| Error::new(context, none()))
}

async fn change(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    row: &Row,
) -> Result<GraphChange> {
    let (workspace, version) = (row::id(row, "workspace_id"), row::id(row, "version_id"));
    let context = transaction.context;
    let found = store
        .version_by(transaction.session(), workspace, version)
        .await?;
    let machine = machine(found, context, version)?;
    let state = state(row, context)?;
    if !machine.fits(&state) {
        let text = format!("execution_graph.state does not fit the graph of version {version}");
        return Err(Error::new(context, ErrorKind::Broken(text)));
    }
    let execution = row::id(row, "execution_id");
    let origin = GraphOrigin {
        workspace,
        priority: row.get("priority"),
        trace_context: row.get("trace_context"),
        crashed: row.get("crashed"),
    };
    Ok(GraphChange::of(execution, origin, machine, state))
}

/// Locks the graph of an execution and returns it with its deadline; none if it was never started. The transaction waits for each lock at most `wait`.
pub(super) async fn graph(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    execution: ExecutionId,
    wait: &str,
) -> Result<Option<(GraphChange, Option<Timestamp>)>> {
    let rows = transaction
        .many(sql!("graph/lock"), &[&[execution.0].as_slice(), &wait])
        .await?;
    match rows.first() {
        None => Ok(None),
        Some(row) => {
            let change = change(store, transaction, row).await?;
            Ok(Some((change, row::time(row, "deadline")?)))
        }
    }
}

/// Locks the graph that this job belongs to, and returns it with the node's index; none if the graph was deleted. The transaction waits for each lock at
/// most `wait`.
pub(super) async fn graph_of(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    job: JobId,
    wait: &str,
) -> Result<Option<(GraphChange, usize)>> {
    let rows = transaction
        .many(sql!("graph/lock_of_job"), &[&job.0, &wait])
        .await?;
    node(store, transaction, rows.first()).await
}

async fn node(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    row: Option<&Row>,
) -> Result<Option<(GraphChange, usize)>> {
    let Some(row) = row else {
        return Ok(None);
    };
    let change = change(store, transaction, row).await?;
    Ok(Some((change, node_index(row.get("node")))))
}

/// Converts the column to a node's index in its graph; the schema allows no negative values.
pub(super) fn node_index(node: i16) -> usize {
    usize::from(node.unsigned_abs())
}

/// The jobs of nodes that started and have not ended, and their queues. The queues are locked, so no claim takes these jobs.
#[derive(Default)]
pub(super) struct OpenNodes {
    jobs: HashMap<(ExecutionId, usize), i64>,
    queues: Vec<i32>,
}

impl OpenNodes {
    pub(super) fn job(&self, execution: ExecutionId, node: usize) -> Option<i64> {
        self.jobs.get(&(execution, node)).copied()
    }

    fn queues_and_jobs(&self) -> (&[i32], Vec<i64>) {
        (&self.queues, self.jobs.values().copied().collect())
    }
}

/// Locks the queues of the open nodes of these executions, whose graphs are locked already. Claims of all tenants wait for these queues, so the
/// transaction waits for other locks only shortly from now on.
pub(super) async fn open_nodes(
    transaction: &OpenTransaction<'_>,
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
        let node = (row::id(row, "execution_id"), node_index(row.get("node")));
        jobs.insert(node, row.get("job_id"));
        queues.insert(row.get("queue_id"));
    }
    let queues: Vec<i32> = queues.into_iter().collect();
    transaction
        .execute(sql!("queue/lock_many"), &[&queues])
        .await?;
    Ok(OpenNodes { jobs, queues })
}

/// Locked pages of leases, and the time that was read after they were locked.
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

    /// Returns the attempt number of a claim; none if the worker does not hold the lease.
    pub(super) fn attempt(&self, worker: &str, claim: JobRef) -> Option<u32> {
        let page = self.pages.get(&claim.token)?;
        let at = page.ids.iter().position(|id| *id == claim.job.0)?;
        let held = page.worker == worker && *page.ends.get(at)? > self.moment;
        let attempt = page.attempts.get(at)?.unsigned_abs();
        held.then_some(attempt)
    }
}

/// Locks the pages of these tokens, and those that contain jobs of open nodes.
pub(super) async fn leases(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    tokens: &[i64],
    open: Option<&OpenNodes>,
) -> Result<Leases> {
    let (queues, jobs) = open.map(OpenNodes::queues_and_jobs).unwrap_or_default();
    let pages = transaction
        .many(sql!("job/lease_lock"), &[&tokens, &queues, &jobs])
        .await?;
    let now = transaction
        .one(sql!("clock/now"), &[&store.given_now()])
        .await?;
    Leases::read(&pages, &now)
}

/// Locks the graph of a claimed job and the claim's page in one round trip, for an operation that abandons no node. The transaction waits for each lock
/// at most `wait`.
pub(super) async fn graph_and_lease(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    claim: JobRef,
    wait: &str,
) -> Result<(Option<(GraphChange, usize)>, Leases)> {
    let (no_queues, no_jobs): (&[i32], &[i64]) = (&[], &[]);
    let (tokens, now) = (vec![claim.token], store.given_now());
    let params: (&Params<'_>, &Params<'_>, &Params<'_>) = (
        &[&claim.job.0, &wait],
        &[&tokens, &no_queues, &no_jobs],
        &[&now],
    );
    // Pipelined: the server runs them in this order.
    let (graph, page, now) = try_join!(
        transaction.many(sql!("graph/lock_of_job"), params.0),
        transaction.many(sql!("job/lease_lock"), params.1),
        transaction.many(sql!("clock/now"), params.2),
    )?;
    let none = || ErrorKind::Broken("the clock query returned no row".to_owned());
    let now = now
        .first()
        .ok_or_else(|| Error::new(transaction.context, none()))?;
    let leases = Leases::read(&page, now)?;
    Ok((node(store, transaction, graph.first()).await?, leases))
}
