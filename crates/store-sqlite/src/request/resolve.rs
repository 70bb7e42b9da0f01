//! Resolves claims: renew, mark dispatched, release or fail by the claim's owner; recover after the lease expires.

use crate::error::Fault;
use crate::request::event::RequestRef;
use crate::row::{Columns, Text, blob, later};
use crate::session::Session;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, FailureReason, Named, RequestId, RequestStatus};
use leasehold_store::ErrorKind;
use leasehold_store::notification::Notification;
use leasehold_store::request::{
    ClaimRef, Dispatched, Fail, Recovered, Release, ReleaseKind, Released,
};
use leasehold_store::sql;
use rusqlite::params;
use std::collections::HashSet;
use std::time::Duration;

/// How many requests that cannot be recovered one call passes.
const MAX_BROKEN: usize = 1_000;

const STATE: &str = sql!("request/state");
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
    claim: ClaimRef,
) -> Result<Dispatched, Fault> {
    let Some(found) = find(session, claim.request)? else {
        return Ok(Dispatched::LeaseLost);
    };
    if found.is_held(owner, claim) {
        mark_dispatched(session, found.subject, owner)?;
        if found.cancel_requested {
            session.notify(Notification::Cancel);
        }
        return Ok(found.dispatched());
    }
    Ok(match found.status.known() {
        // Finished, whichever dispatcher claimed it last.
        Some(RequestStatus::Completed | RequestStatus::Failed) => Dispatched::AlreadyFinished,
        Some(RequestStatus::Dispatched) if found.token == claim.token => found.dispatched(),
        Some(RequestStatus::Dispatched | RequestStatus::Pending | RequestStatus::Claimed)
        | None => Dispatched::LeaseLost,
    })
}

/// CLAIMED → DISPATCHED.
pub(crate) fn mark_dispatched(
    session: &Session<'_>,
    subject: RequestRef,
    by: &str,
) -> Result<(), Fault> {
    session.run(DISPATCHED, params![blob(subject.request), session.now])?;
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Dispatched);
    subject.log_transition(session, Some(from), to, by, None)
}

pub(crate) fn release(
    session: &Session<'_>,
    owner: &str,
    release: &Release,
) -> Result<Released, Fault> {
    let Some(held) = held_claim(session, owner, release.claim)? else {
        return Ok(Released::LeaseLost);
    };
    let error = release.error.as_deref();
    let (word, failures) = match release.kind {
        ReleaseKind::Unknown => {
            return_to_pending(session, owner, &held, release, "unknown")?;
            return Ok(Released::Pending);
        }
        ReleaseKind::NotStarted => ("not_started", held.dispatch_failures),
        ReleaseKind::Refused { .. } => ("refused", held.dispatch_failures.saturating_add(1)),
    };
    let held = ClaimState {
        dispatch_failures: failures,
        ..held
    };
    if held.cancel_requested {
        fail_claimed(session, owner, &held, FailureReason::Cancelled, error)?;
        return Ok(Released::Cancelled);
    }
    if let ReleaseKind::Refused { max_attempts } = release.kind
        && failures >= max_attempts
    {
        fail_claimed(
            session,
            owner,
            &held,
            FailureReason::DispatchExhausted,
            error,
        )?;
        return Ok(Released::Exhausted);
    }
    held.delete_execution(session)?;
    return_to_pending(session, owner, &held, release, word)?;
    Ok(Released::Pending)
}

fn return_to_pending(
    session: &Session<'_>,
    owner: &str,
    held: &ClaimState,
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
    session.notify(Notification::Work);
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Pending);
    held.subject
        .log_transition(session, Some(from), to, owner, Some(word))
}

pub(crate) fn fail(session: &Session<'_>, owner: &str, fail: &Fail) -> Result<bool, Fault> {
    let Some(held) = held_claim(session, owner, fail.claim)? else {
        return Ok(false);
    };
    fail_claimed(session, owner, &held, fail.reason, fail.error.as_deref())?;
    Ok(true)
}

/// CLAIMED → FAILED for a start that definitely did not happen. Frees the slot.
fn fail_claimed(
    session: &Session<'_>,
    owner: &str,
    held: &ClaimState,
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
    session.notify(Notification::Work);
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Failed);
    held.subject
        .log_transition(session, Some(from), to, owner, Some(reason.as_str()))
}

pub(crate) fn recover(
    session: &Session<'_>,
    by: &str,
    limit: u32,
) -> Result<Vec<Recovered>, Fault> {
    let most = usize::try_from(limit.min(SWEEP_MAX_BATCH)).unwrap_or(usize::MAX);
    let (mut recovered, mut tried) = (Vec::new(), HashSet::new());
    // Requests that cannot be recovered do not hide others, and do not count towards the limit.
    while recovered.len() < most && tried.len() < most + MAX_BROKEN {
        let rows = most - recovered.len() + tried.len();
        let row = params![session.now, i64::try_from(rows).unwrap_or(i64::MAX)];
        let mut expired: Vec<RequestId> = session.all(EXPIRED, row, |row| row.id("id"))?;
        expired.retain(|request| !tried.contains(request));
        if expired.is_empty() {
            break;
        }
        let some = session
            .isolated_if_one_fails(&expired, |request| recover_one(session, by, *request))?;
        recovered.extend(some.into_iter().flatten());
        tried.extend(expired);
        if recovered.len() == tried.len() {
            // None is broken, so there are no others behind them.
            break;
        }
    }
    Ok(recovered)
}

/// CLAIMED → PENDING.
fn recover_one(session: &Session<'_>, by: &str, request: RequestId) -> Result<Recovered, Fault> {
    let found = session.one(RECOVER, [blob(request)], |row| {
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok(Recovered {
            request,
            workspace: row.id("workspace_id")?,
            execution: execution.ok_or_else(|| {
                ErrorKind::Broken("a CLAIMED request has no execution".to_owned())
            })?,
        })
    })?;
    session.notify(Notification::Work);
    let subject = RequestRef {
        request,
        workspace: found.workspace,
    };
    let (from, to) = (RequestStatus::Claimed, RequestStatus::Pending);
    subject.log_transition(session, Some(from), to, by, Some("lease_expired"))?;
    Ok(found)
}

/// The state of a claimed request.
struct ClaimState {
    subject: RequestRef,
    status: Named<RequestStatus>,
    claimed_by: Option<String>,
    /// Fencing token of the last claim.
    token: i64,
    execution: Option<ExecutionId>,
    dispatch_failures: u32,
    cancel_requested: bool,
}

impl ClaimState {
    fn is_held(&self, owner: &str, claim: ClaimRef) -> bool {
        self.status == RequestStatus::Claimed
            && self.claimed_by.as_deref() == Some(owner)
            && self.token == claim.token
    }

    /// Returns the claimer's answer once the request is DISPATCHED.
    fn dispatched(&self) -> Dispatched {
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

/// Returns the claim if its owner still holds it.
fn held_claim(
    session: &Session<'_>,
    owner: &str,
    claim: ClaimRef,
) -> Result<Option<ClaimState>, Fault> {
    Ok(find(session, claim.request)?.filter(|found| found.is_held(owner, claim)))
}

fn find(session: &Session<'_>, request: RequestId) -> Result<Option<ClaimState>, Fault> {
    session.optional(STATE, [blob(request)], |row| {
        Ok(ClaimState {
            subject: RequestRef {
                request: row.id("id")?,
                workspace: row.id("workspace_id")?,
            },
            status: row.parsed("status")?,
            claimed_by: row.get("claimed_by")?,
            token: row.get("claim_token")?,
            execution: row.id_or_none("execution_id")?,
            dispatch_failures: row.get("dispatch_failures")?,
            cancel_requested: row.get("cancel_requested")?,
        })
    })
}
