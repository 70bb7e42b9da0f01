//! Starting a graph: its first state, and the nodes that wait for nothing.

use super::change::{Change, Source};
use super::write;
use crate::execution;
use crate::job::names;
use crate::job::row::Json;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{Open, connection};
use leasehold_core::ExecutionId;
use leasehold_core::graph::{Graph, Node, NodeKind};
use leasehold_core::queue::{DELAY_NODES, HTTP_NODES};
use leasehold_store::graph::{EndedExecution, GraphStarted};
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap};
use tokio_postgres::Row;

const CONTEXT: &str = "graph_start";
/// Who ends an execution whose first node cannot even be begun.
const BY: &str = "graph";

pub(crate) async fn start(store: &PostgresStore, execution: ExecutionId) -> Result<GraphStarted> {
    let found = store
        .maybe(CONTEXT, sql!("graph/origin"), &[&execution.0])
        .await?;
    let row = match answer(found.as_ref()) {
        Ok(row) => row,
        Err(answer) => return Ok(answer),
    };
    let (workspace, version) = (row::id(row, "workspace_id"), row::id(row, "version_id"));
    let client = connection(store, CONTEXT).await?;
    let machine = store.machines.of(&client, CONTEXT, workspace, version);
    let Some(machine) = machine.await? else {
        return Ok(GraphStarted::NotAGraph);
    };
    drop(client);
    let priority = row.get("priority");
    let mut source = Source {
        params: row.get::<_, Json>("params").0,
        outputs: HashMap::new(),
    };
    make_lines(store, machine.graph(), priority).await?;
    let (state, step) = machine.begin();
    let mut change = Change::of(execution, workspace, priority, machine, state);
    change.trace_context = row.get("trace_context");
    change.start(step, &mut source);
    if let Some(ended) = write(store, change).await? {
        return Ok(ended.map_or(GraphStarted::Started, GraphStarted::Ended));
    }
    let found = store
        .maybe(CONTEXT, sql!("graph/origin"), &[&execution.0])
        .await?;
    answer(found.as_ref()).map_or_else(Ok, |_| {
        let text = "the execution was changed again and again while its graph was started";
        Err(Error::new(CONTEXT, ErrorKind::Contended(text.to_owned())))
    })
}

/// What is known of an execution that runs and whose graph was not started, or what there is to say of it.
fn answer(row: Option<&Row>) -> std::result::Result<&Row, GraphStarted> {
    let row = row.ok_or(GraphStarted::NotFound)?;
    if row.get("started") {
        let ended = row.get("ended");
        return Err(GraphStarted::AlreadyStarted { ended });
    }
    let running: bool = row.get("running");
    running.then_some(row).ok_or(GraphStarted::NotFound)
}

/// Makes the lines that any node of the graph will need: whoever ends nodes holds locks, and would make them too late.
async fn make_lines(store: &PostgresStore, graph: &Graph, priority: i16) -> Result<()> {
    let queues: BTreeSet<&str> = graph.nodes.iter().map(queue).collect();
    let lines = queues.iter().map(|queue| (*queue, priority));
    names::ensure_lines(store, CONTEXT, lines).await.map(drop)
}

fn queue(node: &Node) -> &str {
    match &node.kind {
        NodeKind::Task { queue, .. } => queue,
        NodeKind::Http { .. } => HTTP_NODES,
        NodeKind::Delay { .. } => DELAY_NODES,
    }
}

/// Says whether it ended at once. None, and nothing was written, if the execution has ended, or its graph was started meanwhile.
async fn write(store: &PostgresStore, change: Change) -> Result<Option<Option<EndedExecution>>> {
    let mut client = connection(store, CONTEXT).await?;
    let transaction = Open::begin(&mut client, CONTEXT).await?;
    if change.has_ended() {
        // Whoever ends an execution holds its request before it; the graph's row, which refers to the execution, holds that.
        execution::hold(&transaction, change.execution).await?;
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
                &change.execution.0,
                &change.state.letters(),
                &change.state.end().map(|end| end.as_str()),
                &change.error,
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
