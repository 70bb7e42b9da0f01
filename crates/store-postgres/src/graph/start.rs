//! Starting a graph: its first state, and the nodes that wait for nothing.

use super::{hold, write};
use crate::error::unreadable;
use crate::execution;
use crate::job::names;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{Open, connection};
use leasehold_core::VersionId;
use leasehold_core::graph::{Graph, GraphChange};
use leasehold_store::Result;
use leasehold_store::graph::{EndedExecution, GraphStart, GraphStarted};
use std::collections::BTreeSet;

const CONTEXT: &str = "graph_start";
/// Who ends an execution whose first node cannot even be begun.
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
    make_lines(store, machine.graph(), start.origin.priority).await?;
    let (origin, params) = (start.origin.clone(), start.params.clone());
    let change = GraphChange::start(start.execution, origin, machine, params);
    if let Some(ended) = write(store, start.version, change).await? {
        return Ok(ended.map_or(GraphStarted::Started, GraphStarted::Ended));
    }
    let found = store
        .maybe(CONTEXT, sql!("graph/get"), &[&start.execution.0])
        .await?;
    Ok(match found {
        Some(row) => GraphStarted::AlreadyStarted {
            ended: hold::state(&row, CONTEXT)?.end().is_some(),
        },
        None => GraphStarted::NotFound,
    })
}

/// Makes the lines that any node of the graph will need: whoever ends nodes holds locks, and would make them too late.
async fn make_lines(store: &PostgresStore, graph: &Graph, priority: i16) -> Result<()> {
    let queues: BTreeSet<&str> = graph.nodes.iter().map(|node| node.kind.queue()).collect();
    let lines = queues.iter().map(|queue| (*queue, priority));
    names::ensure_lines(store, CONTEXT, lines).await.map(drop)
}

/// Says whether it ended at once. None, and nothing was written, if the execution does not run that version, or its graph was started before.
async fn write(
    store: &PostgresStore,
    version: VersionId,
    change: GraphChange,
) -> Result<Option<Option<EndedExecution>>> {
    let mut client = connection(store, CONTEXT).await?;
    let transaction = Open::begin(&mut client, CONTEXT).await?;
    if change.has_ended() {
        // Whoever ends an execution holds its request before it; the graph's row, which refers to the execution, holds that.
        execution::hold(&transaction, change.execution()).await?;
    }
    let now = transaction
        .one(sql!("clock/now"), &[&store.given_now()])
        .await?;
    let now = row::time(&now, "now")?;
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
        return Ok(None);
    }
    let mut changes = [change];
    write::record(&transaction, now, &changes).await?;
    let begun = write::begin(&transaction, now, &mut changes).await?;
    let ended = write::end(&transaction, now, BY, &changes).await?.pop();
    transaction.commit().await?;
    if begun {
        store.job_wakes.ring();
    }
    store.wakes.ring_for_work(ended.is_some());
    Ok(Some(ended))
}
