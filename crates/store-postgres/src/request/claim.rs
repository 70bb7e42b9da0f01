//! Claiming: settle, then one statement that does it all.

use crate::error::postgres;
use crate::job::row::Json;
use crate::pool;
use crate::row::{self, maybe_id, maybe_named, micros};
use crate::store::{PostgresStore, sql};
use deadpool_postgres::Object;
use leasehold_core::limits::{CLAIM_MAX_BATCH, PARAMS_MAX_BYTES};
use leasehold_core::{FailureReason, JsonText, RequestId, WorkspaceId};
use leasehold_store::request::{
    AtCapacity, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, ExecutionOrigin, Fail,
    Orphaned, Rejected, Settled,
};
use leasehold_store::{ErrorKind, Result, fresh_id};
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

const CONTEXT: &str = "request_claim";
/// Requests that may become due in one settling.
pub(crate) const RIPEN_AT_MOST: i32 = 1_000;
/// How often to look again when all that was looked at had nothing to give.
const LOOKS: usize = 100;

pub(crate) async fn settle(store: &PostgresStore) -> Result<Settled> {
    let client = pool::take(&store.pool, "request_settle").await?;
    Ok(settle_on(store, &client).await?.0)
}

/// Settles, unless another does it or keeps it from being done. What reads the folded counts is as exact without it, only slower.
pub(crate) async fn fold(store: &PostgresStore) -> Result<()> {
    match settle(store).await {
        Err(error) if !matches!(error.kind, ErrorKind::Contended(_)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Settles, and says how long until the next waiting request becomes due.
async fn settle_on(store: &PostgresStore, client: &Object) -> Result<(Settled, Option<Duration>)> {
    let statement = client
        .prepare_cached(sql!("request/settle"))
        .await
        .map_err(postgres("request_settle"))?;
    let row = client
        .query_one(&statement, &[&store.given_now(), &RIPEN_AT_MOST])
        .await
        .map_err(postgres("request_settle"))?;
    let settled = Settled {
        due: row::count(&row, "due")?,
        next_due: row::time(&row, "next_due")?,
    };
    let next: Option<i64> = row.get("next_due_in");
    let next_in = if settled.due >= u64::from(RIPEN_AT_MOST.unsigned_abs()) {
        // There may be more of them.
        Some(Duration::ZERO)
    } else {
        next.map(|micros| Duration::from_micros(micros.max(0).unsigned_abs()))
    };
    Ok((settled, next_in))
}

pub(crate) async fn claim(store: &PostgresStore, claim: &Claim) -> Result<ClaimOutcome> {
    let client = pool::take(&store.pool, CONTEXT).await?;
    let statement = client
        .prepare_cached(sql!("request/claim"))
        .await
        .map_err(postgres(CONTEXT))?;
    let mut claimed = Claimed::default();
    for _ in 0..LOOKS {
        claimed.next_due_in = settle_on(store, &client).await?.1;
        let rows = look(store, &client, &statement, claim).await?;
        let Some(first) = rows.first() else { break };
        if !first.get::<_, bool>("lock_held") {
            return Ok(ClaimOutcome::LockLost);
        }
        let gone: i64 = first.get("gone");
        if gone > 0 {
            claimed.orphaned.extend(put_back_in_line(&client).await?);
        }
        let unreadable = collect(&rows, &mut claimed)?;
        if !unreadable.is_empty() {
            give_up(store, claim, &unreadable).await?;
            let rejected = unreadable.iter().map(|(held, workspace)| Rejected {
                request: held.request,
                workspace: *workspace,
                reason: FailureReason::DispatchExhausted,
            });
            claimed.rejected.extend(rejected);
        }
        let looked_at: i64 = first.get("looked_at");
        claimed.more = looked_at > 0 || gone > 0 || !claimed.requests.is_empty();
        if !claimed.requests.is_empty() || !claimed.rejected.is_empty() || !claimed.more {
            break;
        }
    }
    if !claimed.requests.is_empty() || !claimed.rejected.is_empty() {
        store.wakes.awake();
    }
    Ok(ClaimOutcome::Claimed(claimed))
}

async fn look(
    store: &PostgresStore,
    client: &Object,
    statement: &tokio_postgres::Statement,
    claim: &Claim,
) -> Result<Vec<Row>> {
    let batch = claim.batch.min(CLAIM_MAX_BATCH);
    let executions: Vec<Uuid> = (0..batch).map(|_| fresh_id()).collect();
    let lock = claim.lock.as_ref();
    client
        .query(
            statement,
            &[
                &store.given_now(),
                &i64::from(batch),
                &claim.owner,
                &micros(claim.lease),
                &executions,
                &lock.map(|lock| lock.name.as_str()),
                &lock.map(|lock| lock.owner.as_str()),
                &lock.map(|lock| lock.token),
            ],
        )
        .await
        .map_err(postgres(CONTEXT))
}

async fn put_back_in_line(client: &Object) -> Result<Vec<Orphaned>> {
    let rows = client
        .query(sql!("request/orphan"), &[])
        .await
        .map_err(postgres(CONTEXT))?;
    let orphaned = rows.iter().map(|row| Orphaned {
        request: row::id(row, "id"),
        workspace: row::id(row, "workspace_id"),
        execution: row::id(row, "execution_id"),
    });
    Ok(orphaned.collect())
}

/// Fails requests whose params cannot be read, so that they do not come back for ever.
async fn give_up(
    store: &PostgresStore,
    claim: &Claim,
    unreadable: &[(ClaimRef, WorkspaceId)],
) -> Result<()> {
    for (held, _) in unreadable {
        let fail = Fail {
            claim: *held,
            reason: FailureReason::DispatchExhausted,
            error: Some(
                "the params cannot be read: they nest too deep, or a number is too large"
                    .to_owned(),
            ),
        };
        super::resolve::fail(store, &claim.owner, &fail).await?;
    }
    Ok(())
}

/// Sorts the rows of a claim; returns those whose params cannot be read.
fn collect(rows: &[Row], claimed: &mut Claimed) -> Result<Vec<(ClaimRef, WorkspaceId)>> {
    let replaced: HashSet<RequestId> = claimed.orphaned.iter().map(|o| o.request).collect();
    let mut unreadable = Vec::new();
    for row in rows {
        claimed.at_capacity.extend(at_capacity(row));
        let Some(id) = maybe_id::<RequestId>(row, "id") else {
            continue;
        };
        let workspace: WorkspaceId = row::id(row, "workspace_id");
        if let Some(reason) = maybe_named::<FailureReason>(row, "failure_reason")? {
            claimed.rejected.push(Rejected {
                request: id,
                workspace,
                reason,
            });
            continue;
        }
        let params = row.try_get::<_, Json>("params").ok();
        let params = params.map(|json| json.0).filter(JsonText::is_readable);
        // PostgreSQL writes all digits of a number: `1e300` takes 301 bytes, and an engine refuses an input that is too long.
        let params = params.map(|params| params.compacted_above(PARAMS_MAX_BYTES));
        let Some(params) = params else {
            let token = row.get("claim_token");
            unreadable.push((ClaimRef { request: id, token }, workspace));
            continue;
        };
        let origin = match (row.get::<_, bool>("kept"), replaced.contains(&id)) {
            (true, _) => ExecutionOrigin::Kept,
            (false, true) => ExecutionOrigin::Replaced,
            (false, false) => ExecutionOrigin::Created,
        };
        claimed.requests.push(ClaimedRequest {
            id,
            token: row.get("claim_token"),
            workspace,
            definition: row::id(row, "definition_id"),
            version: row::id(row, "version_id"),
            execution: row::id(row, "execution_id"),
            origin,
            priority: row.get("priority"),
            params,
            attempt_count: row.get::<_, i32>("attempt_count").unsigned_abs(),
            dispatch_failures: row.get::<_, i32>("dispatch_failures").unsigned_abs(),
            cancel_requested: row.get("cancel_requested"),
            trace_context: row.get("trace_context"),
            created_at: row::time(row, "created_at")?,
            run_at: row::time(row, "run_at")?,
            lease_expires_at: row::time(row, "lease_expires_at")?,
        });
    }
    Ok(unreadable)
}

/// The workspaces that the claim filled; all are in one of its rows.
fn at_capacity(row: &Row) -> Vec<AtCapacity> {
    let workspaces: Option<Vec<Uuid>> = row.get("full_workspaces");
    let active: Option<Vec<i64>> = row.get("full_active");
    let limits: Option<Vec<i32>> = row.get("full_limits");
    let each = workspaces.into_iter().flatten();
    each.zip(active.into_iter().flatten())
        .zip(limits.into_iter().flatten())
        .map(|((workspace, active), limit)| AtCapacity {
            workspace: WorkspaceId(workspace),
            active: u32::try_from(active).unwrap_or(u32::MAX),
            limit: limit.unsigned_abs(),
        })
        .collect()
}
