//! Ends graphs that ran out of time: a node's job lost its last lease, or the execution's timeout has passed.

use super::{lock, stop};
use crate::error::is_lock_timeout;
use crate::lock_wait::SHORT_LOCK_TIMEOUT;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{OpenTransaction, connection};
use leasehold_core::graph::{GraphChange, GraphStop, NodeEnd, NodeOutcome, NodeSource};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, Timestamp};
use leasehold_store::graph::{EndedExecution, TIMED_OUT};
use leasehold_store::{ErrorKind, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

const CONTEXT: &str = "graph_expire";
/// How often a failure to end the same execution is logged.
const REMIND_EVERY: Duration = Duration::from_secs(60);
/// How many waits for locked rows one call gives up.
const MAX_WAITS: usize = 100;
/// How many graphs one call passes without ending them.
const MAX_PASSED: usize = 20_000;

/// The executions that recently failed to end, and when each was logged.
#[derive(Debug, Default)]
pub(crate) struct UnendedExecutions(Mutex<HashMap<ExecutionId, Instant>>);

impl UnendedExecutions {
    /// Whether this failure is to be logged: the first one, and one a minute after that.
    fn is_new(&self, execution: ExecutionId) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, at| at.elapsed() < REMIND_EVERY);
        if logged.contains_key(&execution) {
            return false;
        }
        logged.insert(execution, Instant::now());
        true
    }
}

/// Ends graphs one by one. One that fails, because another transaction has locked it or because it cannot be read, does not block the others, unless the
/// database is unavailable. The next call tries it again. After the first wait for a locked row, one query finds the others that are locked.
pub(crate) async fn expire(
    store: &PostgresStore,
    by: &str,
    limit: u32,
) -> Result<Vec<EndedExecution>> {
    let limit = i64::from(limit.min(SWEEP_MAX_BATCH));
    let (mut ended, mut passed): (Vec<EndedExecution>, Vec<Uuid>) = (Vec::new(), Vec::new());
    let mut waits = 0;
    loop {
        let due = store
            .many(
                CONTEXT,
                sql!("graph/due"),
                &[&store.given_now(), &limit, &passed],
            )
            .await?;
        let passed_before = passed.len();
        let due = due.iter().take(usize::try_from(limit).unwrap_or_default());
        let mut due: VecDeque<Uuid> = due.map(|row| row.get("execution_id")).collect();
        if waits > 0 {
            set_aside_locked(store, &mut due, &mut passed).await?;
        }
        while let Some(id) = due.pop_front() {
            let execution = ExecutionId(id);
            match expire_one(store, by, execution).await {
                Ok(Some(one)) => ended.push(one),
                // Another process has ended it.
                Ok(None) => passed.push(id),
                Err(error) if matches!(error.kind, ErrorKind::Unavailable(_)) => return Err(error),
                Err(error) => {
                    if store.unended.is_new(execution) {
                        tracing::warn!(%execution, %error, "failed to end an execution; retrying");
                    }
                    passed.push(id);
                    if is_lock_timeout(&error) {
                        waits += 1;
                        if waits == 1 {
                            set_aside_locked(store, &mut due, &mut passed).await?;
                        }
                    }
                }
            }
        }
        // Those that did not end may have hidden others.
        let is_full = i64::try_from(ended.len()).is_ok_and(|ended| ended >= limit);
        let is_last = waits >= MAX_WAITS || passed.len() >= MAX_PASSED || is_full;
        if passed.len() == passed_before || is_last {
            return Ok(ended);
        }
    }
}

/// Moves the executions with locked rows from `due` to `passed`.
async fn set_aside_locked(
    store: &PostgresStore,
    due: &mut VecDeque<Uuid>,
    passed: &mut Vec<Uuid>,
) -> Result<()> {
    let executions: Vec<Uuid> = due.iter().copied().collect();
    let locked = store
        .many(CONTEXT, sql!("graph/locked"), &[&executions])
        .await?;
    let locked: HashSet<Uuid> = locked.iter().map(|row| row.get("id")).collect();
    due.retain(|execution| !locked.contains(execution));
    let mut is_new = false;
    for execution in &locked {
        is_new |= store.unended.is_new(ExecutionId(*execution));
    }
    if is_new {
        let executions = locked.len();
        tracing::warn!(
            executions,
            "executions are locked in the store; they cannot be ended yet"
        );
    }
    passed.extend(locked);
    Ok(())
}

/// Returns none if there is nothing to end: another process ended the graph, or it was deleted.
async fn expire_one(
    store: &PostgresStore,
    by: &str,
    execution: ExecutionId,
) -> Result<Option<EndedExecution>> {
    let mut client = connection(store, CONTEXT).await?;
    let transaction = OpenTransaction::begin(&mut client).await?;
    let found = lock::graph(store, &transaction, execution, SHORT_LOCK_TIMEOUT).await?;
    let spent = transaction
        .many(sql!("node/spent"), &[&execution.0])
        .await?;
    let ends = spent.iter().map(|row| NodeEnd {
        node: lock::node_index(row.get("node")),
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
    let is_overdue = deadline.is_some_and(|deadline| deadline <= now);
    if !apply(&mut change, ends, is_overdue) {
        transaction.commit().await?;
        return Ok(None);
    }
    stop::end(store, transaction, by, change).await
}

/// Fails the spent nodes and applies the timeout. Returns whether the graph ended.
fn apply(change: &mut GraphChange, ends: impl Iterator<Item = NodeEnd>, is_overdue: bool) -> bool {
    for end in ends {
        // A failed node starts no others, so no input is needed.
        if change.node_ended(end, NodeSource::default()) {
            return true;
        }
    }
    is_overdue && change.stop(GraphStop::TimedOut, TIMED_OUT)
}
