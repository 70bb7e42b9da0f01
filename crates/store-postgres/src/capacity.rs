//! Finding and mending drift in PostgreSQL: a cheap look at a page of workspaces, an exact one at each that is suspect. What may differ is told
//! in the port.

use crate::request::claim;
use crate::row;
use crate::store::{PostgresStore, sql};
use crate::transaction::{Open, connection};
use async_trait::async_trait;
use leasehold_core::{ExecutionStatus, WorkspaceId};
use leasehold_store::capacity::{
    CapacityAudit, CapacityRepair, CapacityStore, DRIFTS_MAX, Drift, DriftKind, Repaired,
};
use leasehold_store::{Error, ErrorKind, Page, Result};
use tokio_postgres::Row;

const AUDIT: &str = "capacity_audit";
const REPAIR: &str = "capacity_repair";
/// Requests of a workspace whose counts are wrong that are looked at, newest first.
const LOOKED_AT: i64 = 100_000;

#[async_trait]
impl CapacityStore for PostgresStore {
    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit> {
        if page.after.is_none() {
            // Folding first keeps what must be added to the folded counts small; without it the answer is as exact.
            claim::fold(self).await?;
        }
        let after = page.after.map(|id| id.0);
        let rows = self
            .many(AUDIT, sql!("capacity/suspects"), &[&after, &page.rows()])
            .await?;
        let is_full = i64::try_from(rows.len()).is_ok_and(|rows| rows >= page.rows());
        let mut audit = CapacityAudit {
            drifts: Vec::new(),
            last: rows
                .last()
                .filter(|_| is_full)
                .map(|last| row::id(last, "id")),
        };
        for seen in &rows {
            let workspace: WorkspaceId = row::id(seen, "id");
            if seen.get("suspect") {
                let rows = self
                    .many(
                        AUDIT,
                        sql!("capacity/look"),
                        &[&workspace.0, &most(), &LOOKED_AT],
                    )
                    .await?;
                for found in &rows {
                    audit.drifts.push(drift(workspace, found)?);
                }
            }
        }
        Ok(audit)
    }

    async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired> {
        let mut client = connection(self, REPAIR).await?;
        let transaction = Open::begin(&mut client, REPAIR).await?;
        let mended = match repair.drift.kind {
            DriftKind::RequestWithoutExecution => run_again(self, &transaction, repair.drift).await,
            DriftKind::SlotWithoutExecution if repair.drift.execution.is_some() => {
                forget(self, &transaction, repair).await
            }
            DriftKind::Counts => recount(&transaction, repair.drift).await,
            DriftKind::SlotWithoutExecution
            | DriftKind::ExecutionWithoutSlot
            | DriftKind::Limit => keep_anew(&transaction, repair.drift).await,
            DriftKind::EndedInEngine | DriftKind::UnknownToEngine => Ok(Repaired::Left),
        };
        let mended = match mended {
            // No slot is free for what should hold one, or another execution stands in its place.
            Err(error) if matches!(error.kind, ErrorKind::Constraint(_)) => {
                return Ok(Repaired::Left);
            }
            other => other?,
        };
        if mended == Repaired::Repaired {
            let workspace = repair.drift.workspace.0;
            transaction
                .one(sql!("capacity/anew"), &[&workspace])
                .await?;
            transaction.commit().await?;
            self.wakes.ring_for_work(true);
        }
        Ok(mended)
    }
}

fn most() -> i64 {
    i64::try_from(DRIFTS_MAX).unwrap_or(i64::MAX)
}

fn drift(workspace: WorkspaceId, row: &Row) -> Result<Drift> {
    let name: &str = row.get("kind");
    let kind = DriftKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == name)
        .ok_or_else(|| {
            Error::new(
                AUDIT,
                ErrorKind::Broken(format!("no drift is called {name}")),
            )
        })?;
    Ok(Drift {
        kind,
        workspace,
        request: row::maybe_id(row, "request_id"),
        execution: row::maybe_id(row, "execution_id"),
        text: row.get("says"),
    })
}

/// Whether it still differs, now that nothing is admitted in the workspace.
async fn still(transaction: &Open<'_>, drift: &Drift) -> Result<bool> {
    let rows = transaction
        .many(
            sql!("capacity/look"),
            &[&drift.workspace.0, &most(), &LOOKED_AT],
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

/// The kept record follows workspace and executions again.
async fn keep_anew(transaction: &Open<'_>, drift: &Drift) -> Result<Repaired> {
    let workspace = drift.workspace.0;
    let held = transaction
        .many(sql!("capacity/lock_turn"), &[&workspace])
        .await?;
    if held.is_empty() {
        return Ok(Repaired::Left);
    }
    if !still(transaction, drift).await? {
        return Ok(Repaired::Over);
    }
    match drift.kind {
        DriftKind::Limit => {
            transaction
                .execute(sql!("capacity/follow"), &[&workspace])
                .await?
        }
        DriftKind::ExecutionWithoutSlot => {
            transaction
                .execute(sql!("capacity/see_running"), &[&workspace])
                .await?
        }
        // To be looked at anew is all it needs.
        _ => 0,
    };
    Ok(Repaired::Repaired)
}

async fn recount(transaction: &Open<'_>, drift: &Drift) -> Result<Repaired> {
    let workspace = drift.workspace.0;
    transaction.many(sql!("capacity/lock_fold"), &[]).await?;
    transaction
        .many(sql!("capacity/lock_turn"), &[&workspace])
        .await?;
    if !still(transaction, drift).await? {
        return Ok(Repaired::Over);
    }
    // Claims wait meanwhile, so a long history is not counted. A request that is stuck may lie beyond what was looked at: that needs a person.
    let touched = transaction
        .execute(sql!("capacity/recount"), &[&workspace, &LOOKED_AT])
        .await?;
    Ok(if touched == 0 {
        Repaired::Left
    } else {
        Repaired::Repaired
    })
}

/// Ends an execution that its request has forgotten, if someone knows how it ended.
async fn forget(
    store: &PostgresStore,
    transaction: &Open<'_>,
    repair: &CapacityRepair<'_>,
) -> Result<Repaired> {
    let (Some(end), Some(execution)) = (repair.ended, repair.drift.execution) else {
        return Ok(Repaired::Left);
    };
    let status = ExecutionStatus::Running.after(end).as_str();
    let rows = transaction
        .many(
            sql!("capacity/forget"),
            &[&store.given_now(), &execution.0, &status],
        )
        .await?;
    Ok(if rows.is_empty() {
        Repaired::Over
    } else {
        Repaired::Repaired
    })
}

/// Has the execution of an open request RUNNING again. The engine's word then decides what becomes of it.
async fn run_again(
    store: &PostgresStore,
    transaction: &Open<'_>,
    drift: &Drift,
) -> Result<Repaired> {
    let Some(request) = drift.request else {
        return Ok(Repaired::Left);
    };
    let rows = transaction
        .many(sql!("capacity/stray"), &[&request.0])
        .await?;
    let Some(stray) = rows.first() else {
        return Ok(Repaired::Over);
    };
    let touched = if stray.get("there") {
        transaction
            .execute(sql!("capacity/run_again"), &[&request.0])
            .await?
    } else {
        let now = store.given_now();
        transaction
            .execute(sql!("capacity/run_anew"), &[&now, &request.0])
            .await?
    };
    Ok(if touched == 0 {
        Repaired::Left
    } else {
        Repaired::Repaired
    })
}
