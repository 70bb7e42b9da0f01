//! Executions in PostgreSQL: reads them, and ends them together with their requests.

use crate::error::busy;
use crate::lock_wait::BRIEF_PAUSES;
use crate::pool;
use crate::row::{self, PgRecord};
use crate::session::Session;
use crate::store::{PostgresStore, sql};
use crate::transaction::OpenTransaction;
use async_trait::async_trait;
use leasehold_core::limits::POISONED_AFTER_CRASHES;
use leasehold_core::{ExecutionId, ExecutionStatus, RequestStatus, Timestamp, WorkspaceId};
use leasehold_store::execution::{
    ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished, ExecutionStore,
};
use leasehold_store::graph::EndedExecution;
use leasehold_store::{Error, ErrorKind, Page, Result};
use std::collections::{HashMap, HashSet};
use tokio::time::sleep;
use uuid::Uuid;

const CONTEXT: &str = "execution_finish";

/// The arrays that `execution/finish.sql` takes, one entry for each execution.
#[derive(Default)]
struct FinishColumns<'a> {
    ids: Vec<Uuid>,
    execution_statuses: Vec<&'static str>,
    request_statuses: Vec<&'static str>,
    reasons: Vec<Option<&'static str>>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> FinishColumns<'a> {
    fn push(&mut self, finish: &'a ExecutionFinish) {
        let reason = finish.end.failure_reason();
        let status = if reason.is_none() {
            RequestStatus::Completed
        } else {
            RequestStatus::Failed
        };
        self.ids.push(finish.execution.0);
        self.execution_statuses
            .push(ExecutionStatus::Running.after(finish.end).as_str());
        self.request_statuses.push(status.as_str());
        self.reasons.push(reason.map(|reason| reason.as_str()));
        self.errors.push(finish.error.as_deref());
    }
}

type FinishOutcomes = HashMap<Uuid, ExecutionFinished>;

#[async_trait]
impl ExecutionStore for PostgresStore {
    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        let row = self
            .maybe(
                "execution_get",
                sql!("execution/get"),
                &[&workspace.0, &id.0],
            )
            .await?;
        row.map(|row| Execution::read(&PgRecord(&row))).transpose()
    }

    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>> {
        let row = self
            .maybe("execution_find", sql!("execution/find"), &[&id.0])
            .await?;
        row.map(|row| Execution::read(&PgRecord(&row))).transpose()
    }

    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        page: Page<i64>,
    ) -> Result<Vec<Execution>> {
        // RUNNING executions have an index of their own, so the scan does not pass ended ones.
        let statement = match filter.status {
            Some(ExecutionStatus::Running) => sql!("execution/list_of_running"),
            _ => sql!("execution/list"),
        };
        let rows = self
            .many(
                "execution_list",
                statement,
                &[
                    &filter.workspace.0,
                    &page.after.unwrap_or(i64::MAX),
                    &filter.status.map(|status| status.as_str()),
                    &filter.definition.map(Uuid::from),
                    &page.rows(),
                ],
            )
            .await?;
        rows.iter()
            .map(|row| Execution::read(&PgRecord(row)))
            .collect()
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        let mut ends = FinishColumns::default();
        let mut seen = HashSet::new();
        for finish in finishes {
            if seen.insert(finish.execution) {
                ends.push(finish);
            }
        }
        let (mut finished, mut known) = self.finish_once(by, &ends).await?;
        for pause in BRIEF_PAUSES {
            if known.values().all(|one| *one != ExecutionFinished::Busy) {
                break;
            }
            sleep(pause).await;
            // Those that have ended are not found any more.
            let (more, still) = self.finish_once(by, &ends).await?;
            known = still;
            known.retain(|id, _| !finished.contains_key(id));
            finished.extend(more);
        }
        self.notifier.wake_for_work(!finished.is_empty());
        // The first of equal ids gets the outcome; the later ones get `AlreadyFinished`.
        Ok(finishes
            .iter()
            .map(|finish| match finished.get_mut(&finish.execution.0) {
                Some(outcome) => std::mem::replace(outcome, ExecutionFinished::AlreadyFinished),
                None => known
                    .get(&finish.execution.0)
                    .copied()
                    .unwrap_or(ExecutionFinished::NotFound),
            })
            .collect())
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = self
            .many(
                "execution_list_running",
                sql!("execution/list_running"),
                &[&ids],
            )
            .await?;
        rows.iter()
            .map(|row| Execution::read(&PgRecord(row)))
            .collect()
    }

    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>> {
        let workspace = page.after.map(|key| key.workspace.0);
        let admission = page.after.map(|key| key.admission);
        let rows = self
            .many(
                "execution_list_active",
                sql!("execution/list_active"),
                &[&workspace, &admission, &page.rows()],
            )
            .await?;
        rows.iter()
            .map(|row| Execution::read(&PgRecord(row)))
            .collect()
    }
}

impl PostgresStore {
    /// Ends the executions that nobody has locked. Returns which ended, and why others did not.
    async fn finish_once(
        &self,
        by: &str,
        ends: &FinishColumns<'_>,
    ) -> Result<(FinishOutcomes, FinishOutcomes)> {
        let mut client = pool::take(&self.pool, CONTEXT).await?;
        let now = self.given_now();
        let mut finished = end_dispatched(now, client.session(), by, ends).await?;
        if finished.len() < ends.ids.len() {
            let transaction = OpenTransaction::begin(&mut client).await?;
            let lock = sql!("execution/lock_free");
            finished.extend(end_any(now, transaction.session(), lock, by, ends).await?);
            transaction.commit().await?;
        }
        let known = if finished.len() < ends.ids.len() {
            unfinished(client.session(), ends, &finished).await?
        } else {
            HashMap::new()
        };
        Ok((finished, known))
    }
}

/// Ends executions like `execution_finish`, inside the caller's transaction. Each execution may occur once. Returns which ended; if any
/// did, the caller wakes the dispatcher after its commit. Fails if another transaction keeps one locked: the caller holds other locks, so it must
/// roll back and retry.
pub(crate) async fn finish_within(
    transaction: &OpenTransaction<'_>,
    moment: Timestamp,
    by: &str,
    finishes: &[ExecutionFinish],
) -> Result<Vec<EndedExecution>> {
    let mut ends = FinishColumns::default();
    finishes.iter().for_each(|finish| ends.push(finish));
    let session = transaction.session();
    let now = Some(moment);
    if ends.ids.len() > 1 {
        // Locks all requests first, in one order whatever their status.
        session.many(sql!("execution/lock"), &[&ends.ids]).await?;
    }
    let mut finished = end_dispatched(now, session, by, &ends).await?;
    if finished.len() < ends.ids.len() {
        let lock = sql!("execution/lock");
        finished.extend(end_any(now, session, lock, by, &ends).await?);
    }
    if finished.len() < ends.ids.len() {
        let known = unfinished(session, &ends, &finished).await?;
        if known.values().any(|one| *one == ExecutionFinished::Busy) {
            return Err(busy(CONTEXT));
        }
    }
    let ended = finishes.iter().filter_map(|finish| {
        let outcome = finished.get(&finish.execution.0)?;
        EndedExecution::of(finish, outcome)
    });
    Ok(ended.collect())
}

/// Locks the request of an execution; in the lock order it comes before the execution.
pub(crate) async fn lock_request(
    transaction: &OpenTransaction<'_>,
    execution: ExecutionId,
) -> Result<()> {
    let ids: &[Uuid] = &[execution.0];
    transaction
        .many(sql!("execution/lock"), &[&ids])
        .await
        .map(drop)
}

/// Ends RUNNING executions whatever the status of their requests. `lock` is the statement that locks the requests first.
async fn end_any(
    now: Option<Timestamp>,
    session: Session<'_>,
    lock: &'static str,
    by: &str,
    ends: &FinishColumns<'_>,
) -> Result<FinishOutcomes> {
    session.many(lock, &[&ends.ids]).await?;
    for step in [
        sql!("execution/pass_claimed"),
        sql!("execution/pass_dispatched"),
    ] {
        session.execute(step, &[&now, &by, &ends.ids]).await?;
    }
    end_dispatched(now, session, by, ends).await
}

/// Returns why executions were not finished; those that do not exist are left out. One that still runs is locked, or belongs to no request: an
/// error.
async fn unfinished(
    session: Session<'_>,
    ends: &FinishColumns<'_>,
    finished: &FinishOutcomes,
) -> Result<FinishOutcomes> {
    let rows = session.many(sql!("execution/exists"), &[&ends.ids]).await?;
    rows.iter()
        .filter(|row| !finished.contains_key(&row.get::<_, Uuid>("id")))
        .map(
            |row| match (row.get("id"), row.get("ended"), row.get("is_wanted")) {
                (id, true, _) => Ok((id, ExecutionFinished::AlreadyFinished)),
                (id, false, true) => Ok((id, ExecutionFinished::Busy)),
                (id, false, false) => {
                    let text =
                        format!("execution {id} is RUNNING, but its request has another execution");
                    Err(Error::new(CONTEXT, ErrorKind::Broken(text)))
                }
            },
        )
        .collect()
}

async fn end_dispatched(
    now: Option<Timestamp>,
    session: Session<'_>,
    by: &str,
    ends: &FinishColumns<'_>,
) -> Result<FinishOutcomes> {
    let rows = session
        .many(
            sql!("execution/finish"),
            &[
                &now,
                &by,
                &ends.ids,
                &ends.execution_statuses,
                &ends.request_statuses,
                &ends.reasons,
                &ends.errors,
                &POISONED_AFTER_CRASHES.cast_signed(),
            ],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let outcome = ExecutionFinished::Finished {
                request: row::id(row, "id"),
                status: row::named(row, "status")?,
                reason: row::maybe_named(row, "failure_reason")?,
            };
            Ok((row.get("execution_id"), outcome))
        })
        .collect()
}
