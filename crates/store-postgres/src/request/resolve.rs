//! Resolves claims: marks them dispatched, releases or fails them, and recovers claims whose lease expired.

use crate::error;
use crate::lock_wait::BRIEF_PAUSES;
use crate::pool;
use crate::row::{self, maybe_id, maybe_named, micros};
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{FailureReason, Named, RequestId, RequestStatus};
use leasehold_store::Result;
use leasehold_store::notification::Notification;
use leasehold_store::request::{
    ClaimRef, Dispatched, Fail, Recovered, Release, ReleaseKind, Released, RequestsRenewed,
};
use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::sleep;
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
    let mut answers = mark(store, owner, claims).await?;
    for pause in BRIEF_PAUSES {
        let (places, busy) = busy_ones(claims, &answers, &Dispatched::Busy);
        if busy.is_empty() {
            break;
        }
        sleep(pause).await;
        let again = mark(store, owner, &busy).await?;
        places
            .iter()
            .zip(again)
            .for_each(|(&at, one)| answers[at] = one);
    }
    Ok(answers)
}

/// Returns the items that were locked, and their places.
fn busy_ones<T: Clone, A: PartialEq>(items: &[T], answers: &[A], busy: &A) -> (Vec<usize>, Vec<T>) {
    let all = items.iter().zip(answers).enumerate();
    let locked = all.filter(|(_, (_, answer))| *answer == busy);
    locked.map(|(at, (item, _))| (at, item.clone())).unzip()
}

async fn mark(store: &PostgresStore, owner: &str, claims: &[ClaimRef]) -> Result<Vec<Dispatched>> {
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
        states(store, "request_dispatched", &lost).await?
    };
    Ok(claims
        .iter()
        .map(
            |claim| match (moved.get(&claim.request), states.get(&claim.request)) {
                (Some(marked), _) => *marked,
                (None, Some(state)) if state.is_finished() => Dispatched::AlreadyFinished,
                (None, Some(state))
                    if state.status == RequestStatus::Dispatched && state.token == claim.token =>
                {
                    state.marked
                }
                (None, Some(state)) if state.is_held(owner, *claim) => Dispatched::Busy,
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

/// The state of a request that was not written.
struct State {
    status: Named<RequestStatus>,
    token: i64,
    holder: Option<String>,
    marked: Dispatched,
}

impl State {
    fn is_finished(&self) -> bool {
        self.status.known().is_some_and(RequestStatus::is_finished)
    }

    /// Whether the owner still holds this claim. Then the row was locked.
    fn is_held(&self, owner: &str, claim: ClaimRef) -> bool {
        self.status == RequestStatus::Claimed
            && self.token == claim.token
            && self.holder.as_deref() == Some(owner)
    }
}

async fn states(
    store: &PostgresStore,
    context: &'static str,
    ids: &[Uuid],
) -> Result<HashMap<RequestId, State>> {
    let state = sql!("request/state");
    let rows = store.heartbeat(context, state, &[&ids]).await?;
    rows.iter()
        .map(|row| {
            let state = State {
                status: row::named(row, "status")?,
                token: row.get("claim_token"),
                holder: row.get("claimed_by"),
                marked: marked(row),
            };
            Ok((row::id(row, "id"), state))
        })
        .collect()
}

/// Returns which of these claims, which a statement skipped, are still held: their rows were locked.
async fn busy(
    store: &PostgresStore,
    context: &'static str,
    owner: &str,
    skipped: Vec<ClaimRef>,
) -> Result<Vec<RequestId>> {
    if skipped.is_empty() {
        return Ok(Vec::new());
    }
    let (ids, _) = split(skipped.iter().copied());
    let states = states(store, context, &ids).await?;
    let is_held = |claim: &ClaimRef| {
        let state = states.get(&claim.request);
        state.is_some_and(|state| state.is_held(owner, *claim))
    };
    let held = skipped.into_iter().filter(is_held);
    Ok(held.map(|claim| claim.request).collect())
}

pub(crate) async fn renew(
    store: &PostgresStore,
    owner: &str,
    claims: &[ClaimRef],
    lease: Duration,
) -> Result<RequestsRenewed> {
    const CONTEXT: &str = "request_renew";
    let (ids, tokens) = split(claims.iter().copied());
    let rows = store
        .heartbeat(
            CONTEXT,
            sql!("request/renew"),
            &[&store.given_now(), &owner, &ids, &tokens, &micros(lease)],
        )
        .await?;
    let renewed: Vec<RequestId> = rows.iter().map(|row| row::id(row, "id")).collect();
    let known: HashSet<RequestId> = renewed.iter().copied().collect();
    let skipped = claims
        .iter()
        .filter(|claim| !known.contains(&claim.request));
    let skipped = skipped.copied().collect();
    Ok(RequestsRenewed {
        renewed,
        busy: busy(store, CONTEXT, owner, skipped).await?,
    })
}

pub(crate) async fn release(
    store: &PostgresStore,
    owner: &str,
    releases: &[Release],
) -> Result<Vec<Released>> {
    let mut answers = release_once(store, owner, releases).await?;
    for pause in BRIEF_PAUSES {
        let (places, busy) = busy_ones(releases, &answers, &Released::Busy);
        if busy.is_empty() {
            break;
        }
        sleep(pause).await;
        let again = release_once(store, owner, &busy).await?;
        places
            .iter()
            .zip(again)
            .for_each(|(&at, one)| answers[at] = one);
    }
    Ok(answers)
}

async fn release_once(
    store: &PostgresStore,
    owner: &str,
    releases: &[Release],
) -> Result<Vec<Released>> {
    let reasons = vec![None; releases.len()];
    const CONTEXT: &str = "request_release";
    let moved = release_claims(store, CONTEXT, owner, releases, &reasons).await?;
    let claims = releases.iter().map(|release| release.claim);
    let skipped = claims.filter(|claim| !moved.contains_key(&claim.request));
    let busy = busy(store, CONTEXT, owner, skipped.collect()).await?;
    Ok(releases
        .iter()
        .map(|release| match moved.get(&release.claim.request) {
            None if busy.contains(&release.claim.request) => Released::Busy,
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
    const CONTEXT: &str = "request_fail";
    let (releases, reasons) = ([release], [Some(fail.reason.as_str())]);
    let mut pauses = BRIEF_PAUSES.into_iter();
    loop {
        let moved = release_claims(store, CONTEXT, owner, &releases, &reasons).await?;
        if !moved.is_empty() {
            return Ok(true);
        }
        if busy(store, CONTEXT, owner, vec![fail.claim])
            .await?
            .is_empty()
        {
            return Ok(false);
        }
        match pauses.next() {
            Some(pause) => sleep(pause).await,
            None => return Err(error::busy(CONTEXT)),
        }
    }
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
    let client = pool::take(&store.pool, "request_recover").await?;
    let expiry = store.request_expiry.of(client.epoch_id());
    let scan = || expiry.lock().unwrap_or_else(PoisonError::into_inner);
    // With a manual clock every scan begins at the beginning.
    let from = match store.given_now() {
        Some(_) => None,
        None => scan().begin(),
    };
    let params: &Params<'_> = &[&store.given_now(), &by, &limit, &from];
    let rows = client
        .session()
        .many(sql!("request/recover"), params)
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
