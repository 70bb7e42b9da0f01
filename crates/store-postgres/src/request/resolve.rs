//! Resolves claims: marks them dispatched, releases or fails them, and recovers claims whose lease expired.

use crate::row::{self, maybe_id, maybe_named, micros};
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_store::Result;
use leasehold_store::notification::Notification;
use leasehold_store::request::{
    ClaimRef, Dispatched, Fail, Recovered, Release, ReleaseKind, Released,
};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

pub(super) fn split(claims: impl Iterator<Item = ClaimRef>) -> (Vec<Uuid>, Vec<i64>) {
    claims.map(|claim| (claim.request.0, claim.token)).unzip()
}

pub(crate) async fn dispatched(
    store: &PostgresStore,
    owner: &str,
    claims: &[ClaimRef],
) -> Result<Vec<Dispatched>> {
    let (ids, tokens) = split(claims.iter().copied());
    let rows = store
        .many(
            "request_dispatched",
            sql!("request/dispatched"),
            &[&store.given_now(), &owner, &ids, &tokens],
        )
        .await?;
    let moved: HashMap<RequestId, Dispatched> = rows
        .iter()
        .map(|row| (row::id(row, "id"), marked(row)))
        .collect();
    if moved.values().any(|mark| *mark == Dispatched::Cancelling) {
        store.notifier.wake(Notification::Cancel);
    }
    let lost: Vec<Uuid> = ids
        .iter()
        .copied()
        .filter(|id| !moved.contains_key(&RequestId(*id)))
        .collect();
    let states = if lost.is_empty() {
        HashMap::new()
    } else {
        states(store, &lost).await?
    };
    Ok(claims
        .iter()
        .map(
            |claim| match (moved.get(&claim.request), states.get(&claim.request)) {
                (Some(marked), _) => *marked,
                (None, Some(state)) if state.status.is_finished() => Dispatched::AlreadyFinished,
                (None, Some(state))
                    if state.status == RequestStatus::Dispatched && state.token == claim.token =>
                {
                    state.marked
                }
                (None, _) => Dispatched::LeaseLost,
            },
        )
        .collect())
}

/// Returns how a request was marked DISPATCHED.
fn marked(row: &Row) -> Dispatched {
    if row.get("cancel_requested") {
        Dispatched::Cancelling
    } else {
        Dispatched::Dispatched
    }
}

/// The state of a request that was not marked.
struct State {
    status: RequestStatus,
    token: i64,
    marked: Dispatched,
}

async fn states(store: &PostgresStore, ids: &[Uuid]) -> Result<HashMap<RequestId, State>> {
    let rows = store
        .many("request_dispatched", sql!("request/state"), &[&ids])
        .await?;
    rows.iter()
        .map(|row| {
            let state = State {
                status: row::named(row, "status")?,
                token: row.get("claim_token"),
                marked: marked(row),
            };
            Ok((row::id(row, "id"), state))
        })
        .collect()
}

pub(crate) async fn release(
    store: &PostgresStore,
    owner: &str,
    releases: &[Release],
) -> Result<Vec<Released>> {
    let reasons = vec![None; releases.len()];
    let moved = release_claims(store, "request_release", owner, releases, &reasons).await?;
    Ok(releases
        .iter()
        .map(|release| match moved.get(&release.claim.request) {
            None => Released::LeaseLost,
            Some(None) => Released::Pending,
            Some(Some(FailureReason::Cancelled)) => Released::Cancelled,
            Some(Some(_)) => Released::Exhausted,
        })
        .collect())
}

pub(crate) async fn fail(store: &PostgresStore, owner: &str, fail: &Fail) -> Result<bool> {
    let release = Release {
        claim: fail.claim,
        kind: ReleaseKind::NotStarted,
        delay: Duration::ZERO,
        error: fail.error.clone(),
    };
    let moved = release_claims(
        store,
        "request_fail",
        owner,
        &[release],
        &[Some(fail.reason.as_str())],
    )
    .await?;
    Ok(!moved.is_empty())
}

async fn release_claims(
    store: &PostgresStore,
    context: &'static str,
    owner: &str,
    releases: &[Release],
    reasons: &[Option<&str>],
) -> Result<HashMap<RequestId, Option<FailureReason>>> {
    let (ids, tokens) = split(releases.iter().map(|release| release.claim));
    let keep: Vec<bool> = releases
        .iter()
        .map(|r| r.kind == ReleaseKind::Unknown)
        .collect();
    let counted: Vec<bool> = releases
        .iter()
        .map(|r| matches!(r.kind, ReleaseKind::Refused { .. }))
        .collect();
    let max_failures: Vec<i32> = releases
        .iter()
        .map(|release| match release.kind {
            ReleaseKind::Refused { max_attempts } => {
                i32::try_from(max_attempts).unwrap_or(i32::MAX)
            }
            ReleaseKind::Unknown | ReleaseKind::NotStarted => i32::MAX,
        })
        .collect();
    let reasons_logged: Vec<&str> = releases
        .iter()
        .map(|release| match release.kind {
            ReleaseKind::Refused { .. } => "refused",
            ReleaseKind::Unknown => "unknown",
            ReleaseKind::NotStarted => "not_started",
        })
        .collect();
    let delays: Vec<i64> = releases
        .iter()
        .map(|release| micros(release.delay))
        .collect();
    let errors: Vec<Option<&str>> = releases.iter().map(|r| r.error.as_deref()).collect();
    let rows = store
        .many(
            context,
            sql!("request/release"),
            &[
                &store.given_now(),
                &owner,
                &ids,
                &tokens,
                &keep,
                &counted,
                &max_failures,
                &delays,
                &errors,
                &reasons,
                &reasons_logged,
            ],
        )
        .await?;
    store.notifier.wake_for_work(!rows.is_empty());
    rows.iter()
        .map(|row| Ok((row::id(row, "id"), maybe_named(row, "failure_reason")?)))
        .collect()
}

pub(crate) async fn recover(store: &PostgresStore, by: &str, limit: u32) -> Result<Vec<Recovered>> {
    let limit = i64::from(limit.min(SWEEP_MAX_BATCH));
    let scan = || {
        let scan = store.request_expiry.lock();
        scan.unwrap_or_else(PoisonError::into_inner)
    };
    // With a manual clock every scan begins at the beginning.
    let from = match store.given_now() {
        Some(_) => None,
        None => scan().begin(),
    };
    let rows = store
        .many(
            "request_recover",
            sql!("request/recover"),
            &[&store.given_now(), &by, &limit, &from],
        )
        .await?;
    let recovered: Vec<Recovered> = rows
        .iter()
        .filter_map(|row| {
            Some(Recovered {
                request: maybe_id(row, "id")?,
                workspace: row::id(row, "workspace_id"),
                execution: row::id(row, "execution_id"),
            })
        })
        .collect();
    if let Some(first) = rows.first()
        && i64::try_from(recovered.len()).is_ok_and(|count| count < limit)
    {
        scan().complete(row::time(first, "now")?);
    }
    store.notifier.wake_for_work(!recovered.is_empty());
    Ok(recovered)
}
