//! Cancels open requests, and redrives failed ones.

use crate::error::busy;
use crate::lock_wait::LockWait;
use crate::row::{self, maybe_id, named};
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, RequestId, RequestStatus};
use leasehold_store::notification::Notification;
use leasehold_store::request::{Cancel, Cancelled, Redrive, RedriveMany, Redriven};
use leasehold_store::{Error, ErrorKind, Result, fresh_id};
use uuid::Uuid;

/// Cancels a request. Many callers may cancel one request whose row is locked, so each holds a connection only while it tries.
pub(crate) async fn cancel(store: &PostgresStore, cancel: &Cancel) -> Result<Cancelled> {
    let mut wait = LockWait::begin();
    loop {
        match try_cancel(store, cancel).await {
            Err(error) => wait.pause_after(error).await?,
            cancelled => return cancelled,
        }
    }
}

async fn try_cancel(store: &PostgresStore, cancel: &Cancel) -> Result<Cancelled> {
    const CONTEXT: &str = "request_cancel";
    let row = store
        .maybe(
            CONTEXT,
            sql!("request/cancel"),
            &[
                &store.given_now(),
                &cancel.workspace.0,
                &cancel.request.0,
                &cancel.by,
                &cancel.force,
            ],
        )
        .await?;
    let Some(row) = row else {
        return Ok(Cancelled::NotFound);
    };
    if row.get("is_busy") {
        return Err(busy(CONTEXT));
    }
    let execution = maybe_id::<ExecutionId>(&row, "execution_id");
    if row.get("is_unacknowledged") {
        store.notifier.wake(Notification::Cancel);
    }
    Ok(match (named(&row, "status")?, execution) {
        (RequestStatus::Pending, None) => Cancelled::Cancelled,
        (RequestStatus::Pending, Some(execution)) => {
            store.notifier.wake(Notification::Work);
            Cancelled::Requested(execution)
        }
        (RequestStatus::Claimed, Some(execution)) => Cancelled::Requested(execution),
        (RequestStatus::Dispatched, Some(execution)) => Cancelled::Running(execution),
        (RequestStatus::Completed | RequestStatus::Failed, _) => Cancelled::AlreadyFinished,
        (RequestStatus::Claimed | RequestStatus::Dispatched, None) => {
            let text = format!(
                "request {} is CLAIMED or DISPATCHED but has no execution",
                cancel.request
            );
            return Err(Error::new(CONTEXT, ErrorKind::Broken(text)));
        }
    })
}

pub(crate) async fn redrive(store: &PostgresStore, redrive: &Redrive) -> Result<Redriven> {
    let mut wait = LockWait::begin();
    loop {
        match try_redrive(store, redrive).await {
            Err(error) => wait.pause_after(error).await?,
            Ok(Some(redriven)) => return Ok(redriven),
            Ok(None) => {}
        }
    }
}

/// Returns none if a live redrive ended between two statements; then the caller tries again.
async fn try_redrive(store: &PostgresStore, redrive: &Redrive) -> Result<Option<Redriven>> {
    const CONTEXT: &str = "request_redrive";
    let row = store
        .maybe(
            CONTEXT,
            sql!("request/redrive"),
            &[
                &store.given_now(),
                &redrive.workspace.0,
                &redrive.failed.0,
                &redrive.id.0,
                &redrive.by,
            ],
        )
        .await?;
    let Some(row) = row else {
        return Ok(Some(Redriven::NotFound));
    };
    if let Some(new) = maybe_id(&row, "inserted") {
        store.notifier.wake(Notification::Work);
        return Ok(Some(Redriven::Enqueued(new)));
    }
    if named::<RequestStatus>(&row, "status")? != RequestStatus::Failed {
        return Ok(Some(Redriven::NotFailed));
    }
    if !row.get::<_, bool>("alive") {
        return Ok(Some(Redriven::DefinitionNotFound));
    }
    let live = store
        .maybe(CONTEXT, sql!("request/live_redrive"), &[&redrive.failed.0])
        .await?;
    if let Some(row) = live {
        return Ok(Some(Redriven::AlreadyLive(row::id(&row, "id"))));
    }
    if row.get("is_busy") {
        return Err(busy(CONTEXT));
    }
    Ok(None)
}

const REDRIVE_MANY: &str = "request_redrive_many";

/// Chooses requests without locking them, and redrives those that no other transaction has locked. If it can redrive none of them, it goes on with
/// later ones, so neither locked nor broken requests stop the others.
pub(crate) async fn redrive_many(
    store: &PostgresStore,
    many: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>> {
    let mut after = Uuid::nil();
    loop {
        let chosen = choose(store, many, after).await?;
        let Some(last) = chosen.last() else {
            return Ok(Vec::new());
        };
        let redriven = redrive_chosen(store, many, &chosen).await?;
        if !redriven.is_empty() {
            store.notifier.wake_for_work(true);
            return Ok(redriven);
        }
        after = *last;
    }
}

/// Returns the requests to redrive after this one, oldest first: as many as the limits of the call allow.
async fn choose(store: &PostgresStore, many: &RedriveMany, after: Uuid) -> Result<Vec<Uuid>> {
    let params: &Params<'_> = &[
        &many.workspace.0,
        &many.reason.map(|reason| reason.as_str()),
        &many.definition.map(Uuid::from),
        &i64::from(many.limit.min(SWEEP_MAX_BATCH)),
        &i64::try_from(many.max_bytes).unwrap_or(i64::MAX),
        &after,
    ];
    let rows = store
        .many(REDRIVE_MANY, sql!("request/redrivable"), params)
        .await?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Redrives the chosen requests in one transaction; only if one of them fails, each in its own.
async fn redrive_chosen(
    store: &PostgresStore,
    many: &RedriveMany,
    chosen: &[Uuid],
) -> Result<Vec<(RequestId, RequestId)>> {
    match redrive_at_once(store, many, chosen).await {
        Err(error) if error.kind.concerns_one_item() => {}
        redriven => return redriven,
    }
    let mut redriven = Vec::new();
    for failed in chosen {
        match redrive_at_once(store, many, &[*failed]).await {
            Ok(one) => redriven.extend(one),
            Err(error) if error.kind.concerns_one_item() => {
                tracing::warn!(request = %failed, %error, "failed to redrive a request");
            }
            // What was redriven is committed.
            Err(_) if !redriven.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(redriven)
}

async fn redrive_at_once(
    store: &PostgresStore,
    many: &RedriveMany,
    chosen: &[Uuid],
) -> Result<Vec<(RequestId, RequestId)>> {
    let ids: Vec<Uuid> = chosen.iter().map(|_| fresh_id()).collect();
    let now = store.given_now();
    let params: &Params<'_> = &[&now, &many.workspace.0, &chosen, &ids, &many.by];
    let rows = store
        .many(REDRIVE_MANY, sql!("request/redrive_many"), params)
        .await?;
    Ok(rows
        .iter()
        .map(|row| (row::id(row, "redrive_of"), row::id(row, "id")))
        .collect())
}
