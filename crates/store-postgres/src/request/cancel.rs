//! Cancels open requests, and redrives failed ones.

use crate::error::busy;
use crate::lock_wait::LockWait;
use crate::row::{self, maybe_id, named};
use crate::store::{PostgresStore, sql};
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

pub(crate) async fn redrive_many(
    store: &PostgresStore,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>> {
    let limit = redrive.limit.min(SWEEP_MAX_BATCH);
    let ids: Vec<Uuid> = (0..limit).map(|_| fresh_id()).collect();
    let rows = store
        .many(
            "request_redrive_many",
            sql!("request/redrive_many"),
            &[
                &store.given_now(),
                &redrive.workspace.0,
                &redrive.reason.map(|reason| reason.as_str()),
                &i64::from(limit),
                &ids,
                &redrive.by,
                &redrive.definition.map(Uuid::from),
                &i64::try_from(redrive.max_bytes).unwrap_or(i64::MAX),
            ],
        )
        .await?;
    store.notifier.wake_for_work(!rows.is_empty());
    Ok(rows
        .iter()
        .map(|row| (row::id(row, "redrive_of"), row::id(row, "id")))
        .collect())
}
