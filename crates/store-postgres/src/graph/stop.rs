//! Ends graphs before their last node: on a stop request or a timeout.

use super::{lock, write};
use crate::lock_wait::{LOCK_TIMEOUT, LockWait};
use crate::store::PostgresStore;
use crate::transaction::{OpenTransaction, connection};
use leasehold_core::ExecutionId;
use leasehold_core::graph::{GraphChange, GraphStop};
use leasehold_store::Result;
use leasehold_store::graph::{EndedExecution, GraphStopped};

const CONTEXT: &str = "graph_stop";

/// Stops a graph. Waits for rows that another transaction has locked, without holding a connection.
pub(crate) async fn stop(
    store: &PostgresStore,
    execution: ExecutionId,
    why: GraphStop,
    by: &str,
    reason: &str,
) -> Result<GraphStopped> {
    let mut wait = LockWait::begin();
    loop {
        match try_stop(store, execution, why, by, reason).await {
            Err(error) => wait.pause_after(error).await?,
            stopped => return stopped,
        }
    }
}

async fn try_stop(
    store: &PostgresStore,
    execution: ExecutionId,
    why: GraphStop,
    by: &str,
    reason: &str,
) -> Result<GraphStopped> {
    let mut client = connection(store, CONTEXT).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    let found = lock::graph(store, &transaction, execution, LOCK_TIMEOUT).await?;
    let Some((mut change, _)) = found else {
        return Ok(GraphStopped::NotFound);
    };
    if !change.stop(why, reason) {
        return Ok(GraphStopped::AlreadyEnded);
    }
    let ended = end(store, transaction, by, change).await?;
    Ok(ended.map_or(GraphStopped::AlreadyEnded, GraphStopped::Stopped))
}

/// Writes the end of a locked graph, and commits. Returns none if its execution had ended already.
pub(super) async fn end(
    store: &PostgresStore,
    transaction: OpenTransaction<'_>,
    by: &str,
    change: GraphChange,
) -> Result<Option<EndedExecution>> {
    let open = lock::open_nodes(&transaction, &[change.execution()]).await?;
    let moment = lock::leases(store, &transaction, &[], Some(&open))
        .await?
        .moment;
    let mut changes = [change];
    let abandoned = write::abandon(&transaction, moment, &mut changes, &open).await?;
    write::record(&transaction, moment, &changes).await?;
    let ended = write::end(&transaction, moment, by, &changes).await?.pop();
    transaction.commit().await?;
    if abandoned {
        store.job_notifier.finished(false);
    }
    store.notifier.wake_for_work(ended.is_some());
    Ok(ended)
}
