//! Ending graphs because of the time: a node's job lost its last lease, or the execution's timeout has passed.

use super::{hold, stop};
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{Open, connection};
use leasehold_core::graph::{GraphChange, GraphStop, NodeEnd, NodeOutcome, NodeSource};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_store::Result;
use leasehold_store::graph::{EndedExecution, TIMED_OUT};

const CONTEXT: &str = "graph_settle";

pub(crate) async fn settle(
    store: &PostgresStore,
    by: &str,
    limit: u32,
) -> Result<Vec<EndedExecution>> {
    let limit = i64::from(limit.min(SWEEP_MAX_BATCH));
    let due = store
        .many(CONTEXT, sql!("graph/due"), &[&store.given_now(), &limit])
        .await?;
    let mut settled = Vec::new();
    for row in due.iter().take(usize::try_from(limit).unwrap_or_default()) {
        settled.extend(settle_one(store, by, row::id(row, "execution_id")).await?);
    }
    Ok(settled)
}

/// None if there is nothing to end: another was faster, or the graph has ended or is gone.
async fn settle_one(
    store: &PostgresStore,
    by: &str,
    execution: ExecutionId,
) -> Result<Option<EndedExecution>> {
    let mut client = connection(store, CONTEXT).await?;
    let transaction = Open::begin(&mut client, CONTEXT).await?;
    let found = hold::graph(store, &transaction, execution).await?;
    let spent = transaction
        .many(sql!("node/spent"), &[&execution.0])
        .await?;
    let ends = spent.iter().map(|row| NodeEnd {
        node: hold::place(row.get("node")),
        attempts: row.get::<_, i32>("attempts").unsigned_abs(),
        outcome: NodeOutcome::Failed(row.get("error")),
    });
    let now = transaction
        .one(sql!("clock/now"), &[&store.given_now()])
        .await?;
    let now: Timestamp = row::time(&now, "now")?;
    let Some((mut change, deadline)) = found else {
        transaction.commit().await?;
        return Ok(None);
    };
    let over = deadline.is_some_and(|deadline| deadline <= now);
    if !settles(&mut change, ends, over) {
        transaction.commit().await?;
        return Ok(None);
    }
    stop::end(store, transaction, by, change).await
}

fn settles(change: &mut GraphChange, ends: impl Iterator<Item = NodeEnd>, over: bool) -> bool {
    for end in ends {
        // A node that failed begins none, so that nothing is made of this.
        if change.node_ended(end, NodeSource::default()) {
            return true;
        }
    }
    over && change.stop(GraphStop::TimedOut, TIMED_OUT)
}
