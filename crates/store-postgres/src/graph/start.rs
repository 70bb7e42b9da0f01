//! Starts a graph: writes its initial state and the jobs of the nodes without predecessors.

use super::refusal::RefusedQueues;
use super::write::NodesBegun;
use super::{lock, write};
use crate::error::unreadable;
use crate::execution;
use crate::job::queue_cache;
use crate::lock_wait::{LOCK_TIMEOUT, LockWait};
use crate::pool::Connection;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{OpenTransaction, connection};
use leasehold_core::graph::{Graph, GraphChange, Machine};
use leasehold_core::{VersionId, WorkspaceId};
use leasehold_crash_marker::{Computation, reach_failpoint};
use leasehold_store::Result;
use leasehold_store::graph::{EndedExecution, GraphStart, GraphStarted, charge_of};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

const CONTEXT: &str = "graph_start";
/// The actor recorded when an execution ends because its first node cannot start.
const BY: &str = "graph";

pub(crate) async fn start(store: &PostgresStore, start: &GraphStart) -> Result<GraphStarted> {
    let workspace = start.origin.workspace;
    let Some(version) = store.version(CONTEXT, workspace, start.version).await? else {
        return Ok(GraphStarted::NotFound);
    };
    let machine = version.machine();
    let Some(machine) = machine.map_err(|problem| unreadable(CONTEXT, problem))? else {
        return Ok(GraphStarted::NotAGraph);
    };
    let mut refused = RefusedQueues::default();
    let mut wait = LockWait::begin();
    loop {
        let mut change = begin(store, start, Arc::clone(&machine));
        refused.apply(&mut change);
        let mut client = connection(store, CONTEXT).await?;
        create_lines(store, &client, machine.graph(), start.origin.priority).await?;
        let written = match write(store, &mut client, start.version, change).await {
            Err(error) => {
                drop(client);
                wait.pause_after(error).await?;
                continue;
            }
            Ok(written) => written,
        };
        match written {
            Written::Started => return Ok(GraphStarted::Started),
            Written::Ended(ended) => return Ok(GraphStarted::Ended(ended)),
            Written::Nothing => break,
            Written::Refused(workspace, queues) => {
                refused.add(client.session(), workspace, &queues).await?;
            }
        }
    }
    let found = store
        .maybe(CONTEXT, sql!("graph/get"), &[&start.execution.0])
        .await?;
    Ok(match found {
        Some(row) => GraphStarted::AlreadyStarted {
            ended: lock::state(&row, CONTEXT)?.end().is_some(),
        },
        None => GraphStarted::NotFound,
    })
}

/// Creates the lines that the nodes of the graph need. Finishing a node holds locks, so it is too late to create them then. Called on the connection
/// that starts the graph, because another server may not have the lines that are known.
async fn create_lines(
    store: &PostgresStore,
    client: &Connection,
    graph: &Graph,
    priority: i16,
) -> Result<()> {
    let queues: BTreeSet<&str> = graph.nodes.iter().map(|node| node.kind.queue()).collect();
    let lines = queues.iter().map(|queue| (*queue, priority));
    queue_cache::ensure_lines(store, client, lines)
        .await
        .map(drop)
}

/// Starts the graph, with a crash marker while its first inputs are computed.
fn begin(store: &PostgresStore, start: &GraphStart, machine: Arc<Machine>) -> GraphChange {
    let (origin, params) = (start.origin.clone(), start.params.clone());
    let computation = Computation {
        execution: start.execution,
        crashed: origin.crashed,
    };
    store.crash_markers.compute(computation, || {
        reach_failpoint(&params);
        GraphChange::start(start.execution, origin, machine, params)
    })
}

/// The outcome of writing a graph that starts.
enum Written {
    Started,
    /// It ended at once.
    Ended(EndedExecution),
    /// The execution does not run this version, or its graph was started before; nothing was written.
    Nothing,
    /// The workspace may not use one of these queues; nothing was written.
    Refused(WorkspaceId, HashSet<String>),
}

async fn write(
    store: &PostgresStore,
    client: &mut Connection,
    version: VersionId,
    change: GraphChange,
) -> Result<Written> {
    let transaction = OpenTransaction::begin(client).await?;
    let now = transaction
        .one(sql!("clock/begin"), &[&store.given_now(), &LOCK_TIMEOUT])
        .await?;
    let now = row::time(&now, "now")?;
    if change.has_ended() || charge_of(&change).is_some() {
        // Both write the request. The lock order is request, execution. Inserting the graph's row locks the execution through its foreign key.
        execution::lock_request(&transaction, change.execution()).await?;
    }
    let created = transaction
        .execute(
            sql!("graph/create"),
            &[
                &now,
                &change.execution().0,
                &change.state().letters(),
                &change.state().end().map(|end| end.as_str()),
                &change.error(),
                &version.0,
            ],
        )
        .await?;
    if created == 0 {
        return Ok(Written::Nothing);
    }
    let mut changes = [change];
    write::record(&transaction, now, &changes).await?;
    let started = match write::begin(store, &transaction, now, &mut changes).await? {
        NodesBegun::None => false,
        NodesBegun::All => true,
        NodesBegun::Refused(workspace, queues) => return Ok(Written::Refused(workspace, queues)),
    };
    let ended = write::end(&transaction, now, BY, &changes).await?.pop();
    transaction.commit().await?;
    if started {
        store.job_notifier.wake();
    }
    store.notifier.wake_for_work(ended.is_some());
    Ok(ended.map_or(Written::Started, Written::Ended))
}
