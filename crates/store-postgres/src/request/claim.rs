//! Claims requests: promotes due ones and folds events, then admits in one statement.

use crate::job::row::Json;
use crate::pool::{self, Connection};
use crate::row::{self, maybe_id, maybe_named, micros};
use crate::session::Session;
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::limits::{CLAIM_MAX_BATCH, PARAMS_MAX_BYTES};
use leasehold_core::{FailureReason, JsonText, RequestId, WorkspaceId};
use leasehold_store::request::{
    AtCapacity, Claim, ClaimOutcome, Claimed, ClaimedRequest, ExecutionOrigin, Orphaned, Promoted,
    Rejected,
};
use leasehold_store::{ErrorKind, Result, fresh_id};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

const CONTEXT: &str = "request_claim";
const UNREADABLE_PARAMS: &str =
    "the params cannot be read: they nest too deeply, or a number is out of range";
/// Due requests that one call promotes at most.
pub(crate) const PROMOTE_MAX: i32 = 1_000;
/// Turn rows of another cluster that one statement writes at most.
const TURNS_MAX: i64 = 1_000;
/// How often to repeat the claim while the workspaces it examined had no requests.
const MAX_ROUNDS: usize = 100;

pub(crate) async fn promote_due(store: &PostgresStore) -> Result<Promoted> {
    let client = pool::take(&store.pool, "request_promote_due").await?;
    Ok(promote_and_fold(store, client.session()).await?.0)
}

/// Promotes due requests and folds events, unless another transaction blocks it. Readers of the folded counts are exact without it, but
/// slower.
pub(crate) async fn fold(store: &PostgresStore) -> Result<()> {
    match promote_due(store).await {
        Err(error) if !matches!(error.kind, ErrorKind::Contended(_)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Promotes due requests and folds events. Also returns how long until the next request becomes due.
async fn promote_and_fold(
    store: &PostgresStore,
    session: Session<'_>,
) -> Result<(Promoted, Option<Duration>)> {
    let params: &Params<'_> = &[&store.given_now(), &PROMOTE_MAX];
    let row = session.one(sql!("request/promote_due"), params).await?;
    let promoted = Promoted {
        due: row::count(&row, "due")?,
        folded: row::count(&row, "folded")?,
        next_due: row::time(&row, "next_due")?,
    };
    let next: Option<i64> = row.get("next_due_in");
    let next_in = if promoted.due >= u64::from(PROMOTE_MAX.unsigned_abs()) {
        // More requests may be due.
        Some(Duration::ZERO)
    } else {
        next.map(|micros| Duration::from_micros(micros.max(0).unsigned_abs()))
    };
    Ok((promoted, next_in))
}

pub(crate) async fn claim(store: &PostgresStore, claim: &Claim) -> Result<ClaimOutcome> {
    let client = pool::take(&store.pool, CONTEXT).await?;
    let session = client.session();
    adopt_turns(store, &client).await?;
    let mut claimed = Claimed::default();
    for _ in 0..MAX_ROUNDS {
        claimed.next_due_in = promote_and_fold(store, session).await?.1;
        let rows = claim_once(store, &client, claim).await?;
        let Some(first) = rows.first() else { break };
        if !first.get::<_, bool>("lock_held") {
            return Ok(ClaimOutcome::LockLost);
        }
        let lost: i64 = first.get("lost_executions");
        let mut requeued = 0;
        if lost > 0 {
            match requeue_orphaned(session).await {
                Ok(orphaned) => {
                    requeued = orphaned.len();
                    claimed.orphaned.extend(orphaned);
                }
                // The claim is committed; a later one tries again.
                Err(error) if matches!(error.kind, ErrorKind::Contended(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, "failed to requeue requests without execution; retrying");
                }
            }
        }
        collect(&rows, &mut claimed)?;
        let examined: i64 = first.get("examined");
        claimed.more = examined > 0 || lost > 0 || !claimed.requests.is_empty();
        // All that is left is locked, and there are no other workspaces to examine.
        let stuck: i64 = first.get("stuck");
        let is_all = examined < i64::from(claim.batch.min(CLAIM_MAX_BATCH));
        let is_stuck = is_all && stuck == examined && requeued == 0;
        let is_empty = claimed.requests.is_empty() && claimed.rejected.is_empty();
        if !is_empty || !claimed.more || is_stuck {
            break;
        }
    }
    if !claimed.requests.is_empty() || !claimed.rejected.is_empty() {
        store.notifier.work_found();
    }
    Ok(ClaimOutcome::Claimed(claimed))
}

/// Makes workspaces claimable whose turn rows were last written in another cluster, a thousand in a transaction. Those that another transaction has locked
/// remain for a later claim.
async fn adopt_turns(store: &PostgresStore, client: &Connection) -> Result<()> {
    let is_adopted = store.turns_adopted.of(client.epoch_id());
    while !is_adopted.load(Ordering::Relaxed) {
        let params: &Params<'_> = &[&TURNS_MAX];
        let row = client.session().one(sql!("request/adopt_turns"), params);
        let row = row.await?;
        let (found, adopted): (i64, i64) = (row.get("found"), row.get("adopted"));
        is_adopted.store(found == 0, Ordering::Relaxed);
        if adopted == 0 {
            break;
        }
    }
    Ok(())
}

async fn claim_once(store: &PostgresStore, client: &Connection, claim: &Claim) -> Result<Vec<Row>> {
    let batch = claim.batch.min(CLAIM_MAX_BATCH);
    let executions: Vec<Uuid> = (0..batch).map(|_| fresh_id()).collect();
    let lock = claim.lock.as_ref();
    let kept_max = claim.kept_max.map_or(batch, |max| max.min(batch));
    client
        .session()
        .many(
            sql!("request/claim"),
            &[
                &store.given_now(),
                &i64::from(batch),
                &claim.owner,
                &micros(claim.lease),
                &executions,
                &lock.map(|lock| lock.name.as_str()),
                &lock.map(|lock| lock.owner.as_str()),
                &lock.map(|lock| lock.token),
                &i64::from(kept_max),
            ],
        )
        .await
}

async fn requeue_orphaned(session: Session<'_>) -> Result<Vec<Orphaned>> {
    let rows = session.many(sql!("request/orphan"), &[]).await?;
    let orphaned = rows.iter().map(|row| Orphaned {
        request: row::id(row, "id"),
        workspace: row::id(row, "workspace_id"),
        execution: row::id(row, "execution_id"),
    });
    Ok(orphaned.collect())
}

/// Sorts the rows of a claim.
fn collect(rows: &[Row], claimed: &mut Claimed) -> Result<()> {
    let replaced: HashSet<RequestId> = claimed.orphaned.iter().map(|o| o.request).collect();
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
        // PostgreSQL prints all digits of a number: `1e300` takes 301 bytes, and engines limit the size of an input.
        let params = params.map(|params| params.compacted_above(PARAMS_MAX_BYTES));
        let unreadable = params.is_none().then(|| UNREADABLE_PARAMS.to_owned());
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
            params: params.unwrap_or_default(),
            unreadable,
            attempt_count: row.get::<_, i32>("attempt_count").unsigned_abs(),
            dispatch_failures: row.get::<_, i32>("dispatch_failures").unsigned_abs(),
            cancel_requested: row.get("cancel_requested"),
            crashes: super::crash::crashes(row),
            trace_context: row.get("trace_context"),
            created_at: row::time(row, "created_at")?,
            run_at: row::time(row, "run_at")?,
            lease_expires_at: row::time(row, "lease_expires_at")?,
        });
    }
    Ok(())
}

/// Returns the workspaces that this claim filled; one of its rows lists them all.
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
