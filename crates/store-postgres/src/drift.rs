//! Checks for drift and repairs it: a cheap query finds suspect workspaces, an exact one checks each of them. The port defines the kinds
//! of drift.

use crate::request::claim;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{OpenTransaction, connection};
use async_trait::async_trait;
use leasehold_core::{ExecutionStatus, WorkspaceId};
use leasehold_store::drift::{
    DRIFTS_MAX, Drift, DriftKind, DriftRepair, DriftReport, DriftStore, Repaired,
};
use leasehold_store::{Error, ErrorKind, Page, Result};
use tokio_postgres::Row;

const CHECK: &str = "drift_check";
const REPAIR: &str = "drift_repair";
/// How many requests of a workspace a check reads at most, newest first.
const MAX_REQUESTS: i64 = 100_000;

#[async_trait]
impl DriftStore for PostgresStore {
    async fn drift_check(&self, page: Page<WorkspaceId>) -> Result<DriftReport> {
        if page.after.is_none() {
            // Folding first leaves few unfolded events to add; the result is exact either way.
            claim::fold(self).await?;
        }
        let after = page.after.map(|id| id.0);
        let rows = self
            .many(CHECK, sql!("drift/find_suspects"), &[&after, &page.rows()])
            .await?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|rows| rows >= page.rows());
        let mut report = DriftReport {
            drifts: Vec::new(),
            last: rows
                .last()
                .filter(|_| is_full)
                .map(|last| row::id(last, "id")),
        };
        for checked in &rows {
            let workspace: WorkspaceId = row::id(checked, "id");
            if checked.get("suspect") {
                let rows = self
                    .many(
                        CHECK,
                        sql!("drift/check"),
                        &[&workspace.0, &max_drifts(), &MAX_REQUESTS],
                    )
                    .await?;
                for found in &rows {
                    report.drifts.push(drift(workspace, found)?);
                }
            }
        }
        Ok(report)
    }

    async fn drift_repair(&self, repair: &DriftRepair<'_>) -> Result<Repaired> {
        let mut client = connection(self, REPAIR).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        let outcome = match repair.drift.kind {
            DriftKind::RequestWithoutExecution => {
                restore_execution(self, &transaction, repair.drift).await
            }
            DriftKind::SlotWithoutExecution if repair.drift.execution.is_some() => {
                end_orphan(self, &transaction, repair).await
            }
            DriftKind::Counts => recount(&transaction, repair.drift).await,
            DriftKind::SlotWithoutExecution
            | DriftKind::ExecutionWithoutSlot
            | DriftKind::Limit => repair_turn_row(&transaction, repair.drift).await,
            DriftKind::EndedInEngine | DriftKind::UnknownToEngine => Ok(Repaired::Skipped),
        };
        let outcome = match outcome {
            // No slot is free for the execution, or the request has another execution.
            Err(error) if matches!(error.kind, ErrorKind::Constraint(_)) => {
                return Ok(Repaired::Skipped);
            }
            other => other?,
        };
        if outcome == Repaired::Repaired {
            let workspace = repair.drift.workspace.0;
            transaction
                .one(sql!("drift/reexamine"), &[&workspace])
                .await?;
            transaction.commit().await?;
            self.notifier.wake_for_work(true);
        }
        Ok(outcome)
    }
}

fn max_drifts() -> i64 {
    i64::try_from(DRIFTS_MAX).unwrap_or(i64::MAX)
}

fn drift(workspace: WorkspaceId, row: &Row) -> Result<Drift> {
    let name: &str = row.get("kind");
    let kind = DriftKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == name)
        .ok_or_else(|| {
            Error::new(
                CHECK,
                ErrorKind::Broken(format!("unknown kind of drift: {name}")),
            )
        })?;
    Ok(Drift {
        kind,
        workspace,
        request: row::maybe_id(row, "request_id"),
        execution: row::maybe_id(row, "execution_id"),
        text: row.get("detail"),
    })
}

/// Checks again whether the drift exists, now that the turn row is locked and nothing is admitted.
async fn still_exists(transaction: &OpenTransaction<'_>, drift: &Drift) -> Result<bool> {
    let rows = transaction
        .many(
            sql!("drift/check"),
            &[&drift.workspace.0, &max_drifts(), &MAX_REQUESTS],
        )
        .await?;
    for row in &rows {
        let found = self::drift(drift.workspace, row)?;
        if found.kind == drift.kind && found.execution == drift.execution {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes the turn row agree with the workspace and its executions.
async fn repair_turn_row(transaction: &OpenTransaction<'_>, drift: &Drift) -> Result<Repaired> {
    let workspace = drift.workspace.0;
    let locked = transaction
        .many(sql!("drift/lock_turn"), &[&workspace])
        .await?;
    if locked.is_empty() {
        return Ok(Repaired::Skipped);
    }
    if !still_exists(transaction, drift).await? {
        return Ok(Repaired::AlreadyConsistent);
    }
    match drift.kind {
        DriftKind::Limit => {
            transaction
                .execute(sql!("drift/sync_turn"), &[&workspace])
                .await?
        }
        DriftKind::ExecutionWithoutSlot => {
            transaction
                .execute(sql!("drift/rebuild_shortcuts"), &[&workspace])
                .await?
        }
        // The next fold sets `has_room`.
        _ => 0,
    };
    Ok(Repaired::Repaired)
}

/// Counts all requests of the workspace, however many, and records the difference for the next fold. Blocks neither folds nor claims.
async fn recount(transaction: &OpenTransaction<'_>, drift: &Drift) -> Result<Repaired> {
    let workspace = drift.workspace.0;
    let row = transaction
        .one(sql!("drift/recount"), &[&workspace])
        .await?;
    Ok(if row.get("was_wrong") {
        Repaired::Repaired
    } else {
        Repaired::AlreadyConsistent
    })
}

/// Ends an execution that no open request refers to, if the caller knows how it ended.
async fn end_orphan(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    repair: &DriftRepair<'_>,
) -> Result<Repaired> {
    let (Some(end), Some(execution)) = (repair.ended, repair.drift.execution) else {
        return Ok(Repaired::Skipped);
    };
    let status = ExecutionStatus::Running.after(end).as_str();
    let rows = transaction
        .many(
            sql!("drift/end_execution"),
            &[&store.given_now(), &execution.0, &status],
        )
        .await?;
    Ok(if rows.is_empty() {
        Repaired::AlreadyConsistent
    } else {
        Repaired::Repaired
    })
}

/// Sets the execution of an open request to RUNNING again. The engine then reports how it ended.
async fn restore_execution(
    store: &PostgresStore,
    transaction: &OpenTransaction<'_>,
    drift: &Drift,
) -> Result<Repaired> {
    let Some(request) = drift.request else {
        return Ok(Repaired::Skipped);
    };
    let rows = transaction
        .many(sql!("drift/lock_request"), &[&request.0])
        .await?;
    let Some(request_row) = rows.first() else {
        return Ok(Repaired::AlreadyConsistent);
    };
    let touched = if request_row.get("has_execution") {
        transaction
            .execute(sql!("drift/resume_execution"), &[&request.0])
            .await?
    } else {
        let now = store.given_now();
        transaction
            .execute(sql!("drift/recreate_execution"), &[&now, &request.0])
            .await?
    };
    Ok(if touched == 0 {
        Repaired::Skipped
    } else {
        Repaired::Repaired
    })
}
