//! What the holder of a claim says became of it: renewed, dispatched, released, failed; and what time says: expired.

use crate::error::Fault;
use crate::request::event::Subject;
use crate::row::{Columns, Text, blob, later};
use crate::session::Session;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_store::ErrorKind;
use leasehold_store::request::{
    ClaimRef, Dispatched, Fail, Recovered, Release, ReleaseKind, Released,
};
use leasehold_store::sql;
use leasehold_store::wake::Wake;
use rusqlite::params;
use std::time::Duration;

const HELD: &str = sql!("request/held");
const RENEW: &str = sql!("request/renew");
const DISPATCHED: &str = sql!("request/dispatched");
const RELEASE: &str = sql!("request/release");
const FAIL: &str = sql!("request/fail");
const EXPIRED: &str = sql!("request/expired");
const RECOVER: &str = sql!("request/recover");
const EXECUTION_DELETE: &str = sql!("execution/delete");

pub(crate) fn renew(
    session: &Session<'_>,
    owner: &str,
    claims: &[ClaimRef],
    lease: Duration,
) -> Result<Vec<RequestId>, Fault> {
    let until = later(session.now, lease);
    let mut renewed = Vec::new();
    for claim in claims {
        let row = params![blob(claim.request), Text(owner), claim.token, until];
        if session.run(RENEW, row)? > 0 {
            renewed.push(claim.request);
        }
    }
    Ok(renewed)
}

pub(crate) fn dispatched(
    session: &Session<'_>,
    owner: &str,
    claims: &[ClaimRef],
) -> Result<Vec<Dispatched>, Fault> {
    claims
        .iter()
        .map(|claim| dispatched_one(session, owner, *claim))
        .collect()
}

fn dispatched_one(
    session: &Session<'_>,
    owner: &str,
    claim: ClaimRef,
) -> Result<Dispatched, Fault> {
    let Some(found) = find(session, claim.request)? else {
        return Ok(Dispatched::LeaseLost);
    };
    if found.is_held(owner, claim) {
        mark_dispatched(session, found.subject, owner)?;
        if found.cancel_requested {
            session.ring(Wake::Cancel);
        }
        return Ok(found.marked());
    }
    Ok(match found.status {
        // Whoever claimed it last: there is nothing left to mark.
        RequestStatus::Completed | RequestStatus::Failed => Dispatched::AlreadyFinished,
        RequestStatus::Dispatched if found.token == claim.token => found.marked(),
        RequestStatus::Dispatched | RequestStatus::Pending | RequestStatus::Claimed => {
            Dispatched::LeaseLost
        }
    })
}

/// CLAIMED → DISPATCHED.
pub(crate) fn mark_dispatched(
    session: &Session<'_>,
    subject: Subject,
    by: &str,
) -> Result<(), Fault> {
    session.run(DISPATCHED, params![blob(subject.request), session.now])?;
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Dispatched);
    subject.moved(session, Some(from), to, by, None)
}

pub(crate) fn release(
    session: &Session<'_>,
    owner: &str,
    releases: &[Release],
) -> Result<Vec<Released>, Fault> {
    releases
        .iter()
        .map(|release| release_one(session, owner, release))
        .collect()
}

fn release_one(session: &Session<'_>, owner: &str, release: &Release) -> Result<Released, Fault> {
    let Some(held) = held(session, owner, release.claim)? else {
        return Ok(Released::LeaseLost);
    };
    let error = release.error.as_deref();
    let (word, failures) = match release.kind {
        ReleaseKind::Unknown => {
            back_to_pending(session, owner, &held, release, "unknown")?;
            return Ok(Released::Pending);
        }
        ReleaseKind::NotStarted => ("not_started", held.dispatch_failures),
        ReleaseKind::Refused { .. } => ("refused", held.dispatch_failures.saturating_add(1)),
    };
    let held = Held {
        dispatch_failures: failures,
        ..held
    };
    if held.cancel_requested {
        give_up(session, owner, &held, FailureReason::Cancelled, error)?;
        return Ok(Released::Cancelled);
    }
    if let ReleaseKind::Refused { max_attempts } = release.kind
        && failures >= max_attempts
    {
        give_up(
            session,
            owner,
            &held,
            FailureReason::DispatchExhausted,
            error,
        )?;
        return Ok(Released::Exhausted);
    }
    held.delete_execution(session)?;
    back_to_pending(session, owner, &held, release, word)?;
    Ok(Released::Pending)
}

fn back_to_pending(
    session: &Session<'_>,
    owner: &str,
    held: &Held,
    release: &Release,
    word: &str,
) -> Result<(), Fault> {
    let row = params![
        blob(held.subject.request),
        later(session.now, release.delay),
        held.dispatch_failures,
        release.error.as_deref().map(Text),
        release.kind == ReleaseKind::Unknown,
        session.now
    ];
    session.run(RELEASE, row)?;
    session.ring(Wake::Work);
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Pending);
    held.subject
        .moved(session, Some(from), to, owner, Some(word))
}

pub(crate) fn fail(session: &Session<'_>, owner: &str, fail: &Fail) -> Result<bool, Fault> {
    let Some(held) = held(session, owner, fail.claim)? else {
        return Ok(false);
    };
    give_up(session, owner, &held, fail.reason, fail.error.as_deref())?;
    Ok(true)
}

/// CLAIMED → FAILED for a start that definitely did not happen: the slot is free.
fn give_up(
    session: &Session<'_>,
    owner: &str,
    held: &Held,
    reason: FailureReason,
    error: Option<&str>,
) -> Result<(), Fault> {
    held.delete_execution(session)?;
    let row = params![
        blob(held.subject.request),
        reason.as_str(),
        held.dispatch_failures,
        error.map(Text),
        session.now
    ];
    session.run(FAIL, row)?;
    session.ring(Wake::Work);
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Failed);
    held.subject
        .moved(session, Some(from), to, owner, Some(reason.as_str()))
}

pub(crate) fn recover(
    session: &Session<'_>,
    by: &str,
    limit: u32,
) -> Result<Vec<Recovered>, Fault> {
    let limit = limit.min(SWEEP_MAX_BATCH);
    let expired = session.all(EXPIRED, params![session.now, limit], |row| {
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok(Recovered {
            request: row.id("id")?,
            workspace: row.id("workspace_id")?,
            execution: execution.ok_or_else(|| {
                ErrorKind::Broken("a claimed request has no execution".to_owned())
            })?,
        })
    })?;
    for found in &expired {
        session.run(RECOVER, [blob(found.request)])?;
        session.ring(Wake::Work);
        let subject = Subject {
            request: found.request,
            workspace: found.workspace,
        };
        let (from, to) = (RequestStatus::Claimed, RequestStatus::Pending);
        subject.moved(session, Some(from), to, by, Some("lease_expired"))?;
    }
    Ok(expired)
}

/// What became of a request that somebody claimed.
struct Held {
    subject: Subject,
    status: RequestStatus,
    claimed_by: Option<String>,
    /// Of its last claim.
    token: i64,
    execution: Option<ExecutionId>,
    dispatch_failures: u32,
    cancel_requested: bool,
}

impl Held {
    fn is_held(&self, owner: &str, claim: ClaimRef) -> bool {
        self.status == RequestStatus::Claimed
            && self.claimed_by.as_deref() == Some(owner)
            && self.token == claim.token
    }

    /// What it is to its claimer once it is DISPATCHED.
    fn marked(&self) -> Dispatched {
        if self.cancel_requested {
            Dispatched::Cancelling
        } else {
            Dispatched::Dispatched
        }
    }

    fn delete_execution(&self, session: &Session<'_>) -> Result<(), Fault> {
        if let Some(execution) = self.execution {
            session.run(EXECUTION_DELETE, [blob(execution)])?;
        }
        Ok(())
    }
}

/// The claim, if its owner still has it.
fn held(session: &Session<'_>, owner: &str, claim: ClaimRef) -> Result<Option<Held>, Fault> {
    Ok(find(session, claim.request)?.filter(|found| found.is_held(owner, claim)))
}

fn find(session: &Session<'_>, request: RequestId) -> Result<Option<Held>, Fault> {
    session.maybe(HELD, [blob(request)], |row| {
        Ok(Held {
            subject: Subject {
                request: row.id("id")?,
                workspace: row.id("workspace_id")?,
            },
            status: row.word("status")?,
            claimed_by: row.get("claimed_by")?,
            token: row.get("claim_token")?,
            execution: row.id_or_none("execution_id")?,
            dispatch_failures: row.get("dispatch_failures")?,
            cancel_requested: row.get("cancel_requested")?,
        })
    })
}
