//! The claim: first requests that kept their execution, then one admission for each workspace in turn. An index lists the ready workspaces, so a claim scans no others.

use crate::error::Fault;
use crate::lock;
use crate::request::crash::crashes;
use crate::request::event::RequestRef;
use crate::request::promote;
use crate::row::{Columns, Text, blob, later, timestamp};
use crate::session::Session;
use leasehold_core::limits::CLAIM_MAX_BATCH;
use leasehold_core::{
    Crashes, DefinitionId, ExecutionId, FailureReason, JsonText, RequestId, RequestStatus,
    Timestamp, VersionId, WorkspaceId,
};
use leasehold_store::fresh_id;
use leasehold_store::request::{
    AtCapacity, Claim, ClaimOutcome, Claimed, ClaimedRequest, ExecutionOrigin, Orphaned, Rejected,
};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::BTreeSet;
use uuid::Uuid;

const UNREADABLE_PARAMS: &str =
    "the params cannot be read: they nest too deeply, or a number is too large";

const KEPT: &str = sql!("request/claim_kept");
const LOSE_EXECUTION: &str = sql!("request/lose_execution");
const READY: &str = sql!("workspace/ready");
const NEXT: &str = sql!("request/claim_next");
const CLAIM: &str = sql!("request/claim");
const REJECT: &str = sql!("request/reject");
const MORE: &str = sql!("request/more");
const TURN: &str = sql!("workspace/turn");
const MARK_FULL: &str = sql!("workspace/mark_full");
const AT_CAPACITY: &str = sql!("workspace/at_capacity");
const MARK_EMPTY: &str = sql!("workspace/mark_empty");
const EXECUTION_CREATE: &str = sql!("execution/create");
const EXECUTION_RESUME: &str = sql!("execution/resume");
const EXECUTION_CLEAR: &str = sql!("execution/delete_of_request");
const ADMISSION_LAST: &str = sql!("admission/last");
const ADMISSION_ADVANCE: &str = sql!("admission/advance");

pub(crate) fn claim(session: &Session<'_>, claim: &Claim) -> Result<ClaimOutcome, Fault> {
    if let Some(token) = &claim.lock
        && !lock::holds(session, token)?
    {
        return Ok(ClaimOutcome::LockLost);
    }
    promote::promote_batch(session)?;
    let first = session.one(ADMISSION_LAST, [], |row| Ok(row.get(0)?))?;
    let mut round = ClaimRound {
        session,
        claim,
        lease_expires_at: later(session.now, claim.lease),
        admission: first,
        admitting: BTreeSet::new(),
        claimed: Claimed::default(),
    };
    round.claim_kept()?;
    round.claim_in_turns()?;
    round.find_at_capacity()?;
    let ClaimRound {
        admission,
        mut claimed,
        ..
    } = round;
    if admission != first {
        session.run(ADMISSION_ADVANCE, [admission])?;
    }
    claimed.next_due_in = promote::next_due_in(session)?;
    claimed.more = session.one(MORE, [session.now], |row| Ok(row.get(0)?))?;
    Ok(ClaimOutcome::Claimed(claimed))
}

struct ClaimRound<'a> {
    session: &'a Session<'a>,
    claim: &'a Claim,
    lease_expires_at: i64,
    /// Number of the last admission.
    admission: i64,
    /// Workspaces with an admission in this claim.
    admitting: BTreeSet<WorkspaceId>,
    claimed: Claimed,
}

impl ClaimRound<'_> {
    fn is_full(&self) -> bool {
        let taken = self.claimed.requests.len() + self.claimed.rejected.len();
        let batch = self.claim.batch.min(CLAIM_MAX_BATCH);
        taken >= usize::try_from(batch).unwrap_or(usize::MAX)
    }

    /// Claims requests that kept their execution. They hold their slot already, so they need neither a turn nor a free slot.
    fn claim_kept(&mut self) -> Result<(), Fault> {
        let mut left = self.claim.kept_max.unwrap_or(u32::MAX);
        while left > 0 && !self.is_full() {
            let kept = self.session.optional(KEPT, [], |row| {
                let runs: bool = row.get("runs")?;
                Ok((candidate(row)?, row.id("execution_id")?, runs))
            })?;
            match kept {
                None => return Ok(()),
                Some((found, execution, true)) => {
                    let row = params![blob(execution), self.session.now];
                    self.session.run(EXECUTION_RESUME, row)?;
                    self.admit(found, execution, ExecutionOrigin::Kept)?;
                    left -= 1;
                }
                // The execution and its slot are unexpectedly missing: the request returns to the line.
                Some((Candidate { request, .. }, execution, false)) => {
                    self.session.run(LOSE_EXECUTION, [blob(request.id)])?;
                    self.claimed.orphaned.push(Orphaned {
                        request: request.id,
                        workspace: request.workspace,
                        execution,
                    });
                }
            }
        }
        Ok(())
    }

    fn claim_in_turns(&mut self) -> Result<(), Fault> {
        while !self.is_full() {
            let ready = self.session.optional(READY, [], |row| {
                let workspace: WorkspaceId = row.id("workspace_id")?;
                Ok((workspace, row.get::<_, bool>("deleted")?))
            })?;
            let Some((workspace, deleted)) = ready else {
                return Ok(());
            };
            let next = self.session.optional(NEXT, [blob(workspace)], |row| {
                let definition_found: bool = row.get("definition_found")?;
                let version_found: bool = row.get("version_found")?;
                let gone = match (deleted, definition_found, version_found) {
                    (true, _, _) => Some(FailureReason::WorkspaceNotFound),
                    (false, false, _) => Some(FailureReason::DefinitionNotFound),
                    (false, true, false) => Some(FailureReason::VersionNotFound),
                    (false, true, true) => None,
                };
                Ok((candidate(row)?, gone))
            })?;
            match next {
                None => self
                    .session
                    .run(MARK_EMPTY, [blob(workspace)])
                    .map(|_| ())?,
                Some((found, Some(reason))) => self.reject(&found, reason)?,
                Some((found, None)) => self.admit_new(found)?,
            }
        }
        Ok(())
    }

    /// Records the workspaces whose last slot was taken while more requests wait.
    fn find_at_capacity(&mut self) -> Result<(), Fault> {
        for workspace in &self.admitting {
            let full = self
                .session
                .optional(AT_CAPACITY, [blob(*workspace)], |row| {
                    let limit = row.get("concurrency_limit")?;
                    Ok(AtCapacity {
                        workspace: *workspace,
                        // Admission never exceeds the limit, so a full workspace runs exactly `limit`.
                        active: limit,
                        limit,
                    })
                })?;
            self.claimed.at_capacity.extend(full);
        }
        Ok(())
    }

    /// Creates the execution, which takes the slot, and claims the request.
    fn admit_new(&mut self, found: Candidate) -> Result<(), Fault> {
        let request = &found.request;
        let execution: ExecutionId = fresh_id();
        self.session.run(EXECUTION_CLEAR, [blob(request.id)])?;
        let row = params![
            blob(execution),
            blob(request.workspace),
            blob(request.id),
            blob(request.definition),
            blob(request.version),
            self.admission + 1,
            self.session.now
        ];
        match self.session.run(EXECUTION_CREATE, row) {
            Ok(_) => {}
            // `has_room` was wrong, for example after a manual update; the constraint rejected the execution.
            Err(fault) if fault.violates("workspace_limit") => {
                self.session.run(MARK_FULL, [blob(request.workspace)])?;
                return Ok(());
            }
            Err(fault) => return Err(fault),
        }
        self.admission += 1;
        self.admitting.insert(request.workspace);
        let origin = if found.execution_lost {
            ExecutionOrigin::Replaced
        } else {
            ExecutionOrigin::Created
        };
        self.admit(found, execution, origin)
    }

    fn admit(
        &mut self,
        found: Candidate,
        execution: ExecutionId,
        origin: ExecutionOrigin,
    ) -> Result<(), Fault> {
        let mut request = found.request;
        let row = params![
            blob(request.id),
            blob(execution),
            Text(&self.claim.owner),
            self.lease_expires_at,
            self.session.now
        ];
        self.session.run(CLAIM, row)?;
        subject(&request).log_transition(
            self.session,
            Some(RequestStatus::Pending),
            RequestStatus::Claimed,
            &self.claim.owner,
            None,
        )?;
        request.token += 1;
        request.execution = execution;
        request.origin = origin;
        request.lease_expires_at = timestamp(self.lease_expires_at)?;
        self.claimed.requests.push(request);
        Ok(())
    }

    /// Fails a request that cannot run. This uses the workspace's turn, so many such requests do not delay other workspaces.
    fn reject(&mut self, found: &Candidate, reason: FailureReason) -> Result<(), Fault> {
        let request = &found.request;
        fail_pending(
            self.session,
            subject(request),
            reason,
            &self.claim.owner,
            true,
        )?;
        self.admission += 1;
        self.session
            .run(TURN, params![blob(request.workspace), self.admission])?;
        self.note_rejected(request, reason);
        Ok(())
    }

    fn note_rejected(&mut self, request: &ClaimedRequest, reason: FailureReason) {
        self.claimed.rejected.push(Rejected {
            request: request.id,
            workspace: request.workspace,
            reason,
        });
    }
}

/// PENDING → FAILED. `counts` says whether it counts as an attempt; a cancellation does not.
pub(crate) fn fail_pending(
    session: &Session<'_>,
    subject: RequestRef,
    reason: FailureReason,
    by: &str,
    counts: bool,
) -> Result<(), Fault> {
    let row = params![blob(subject.request), reason.as_str(), session.now, counts];
    session.run(REJECT, row)?;
    subject.log_transition(
        session,
        Some(RequestStatus::Pending),
        RequestStatus::Failed,
        by,
        Some(reason.as_str()),
    )
}

/// A request that may be admitted, with the claim's token, execution and lease not set yet.
struct Candidate {
    request: ClaimedRequest,
    execution_lost: bool,
}

fn subject(request: &ClaimedRequest) -> RequestRef {
    RequestRef {
        request: request.id,
        workspace: request.workspace,
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Fault> {
    let (id, workspace) = (row.id("id")?, row.id("workspace_id")?);
    let request = match request(row, id, workspace) {
        Ok(request) if request.params.is_readable() => request,
        Ok(request) => ClaimedRequest {
            params: JsonText::default(),
            unreadable: Some(UNREADABLE_PARAMS.to_owned()),
            ..request
        },
        Err(fault) if fault.is_of_store() => return Err(fault),
        Err(fault) => ClaimedRequest {
            unreadable: Some(format!("the request cannot be read: {}", fault.kind())),
            ..nothing_of(id, workspace, row.get("claim_token")?)
        },
    };
    Ok(Candidate {
        request,
        execution_lost: row.get("execution_lost")?,
    })
}

fn request(row: &Row<'_>, id: RequestId, workspace: WorkspaceId) -> Result<ClaimedRequest, Fault> {
    Ok(ClaimedRequest {
        definition: row.id("definition_id")?,
        version: row.id("version_id")?,
        priority: row.get("priority")?,
        params: JsonText::trusted(row.get("params")?),
        attempt_count: row.get("attempt_count")?,
        dispatch_failures: row.get("dispatch_failures")?,
        cancel_requested: row.get("cancel_requested")?,
        crashes: crashes(row)?,
        trace_context: row.get("trace_context")?,
        created_at: row.time("created_at")?,
        run_at: row.time("run_at")?,
        ..nothing_of(id, workspace, row.get("claim_token")?)
    })
}

/// A request without its columns.
fn nothing_of(id: RequestId, workspace: WorkspaceId, token: i64) -> ClaimedRequest {
    ClaimedRequest {
        id,
        token,
        workspace,
        definition: DefinitionId(Uuid::nil()),
        version: VersionId(Uuid::nil()),
        execution: ExecutionId(Uuid::nil()),
        origin: ExecutionOrigin::Created,
        priority: 0,
        params: JsonText::default(),
        unreadable: None,
        attempt_count: 0,
        dispatch_failures: 0,
        cancel_requested: false,
        crashes: Crashes::default(),
        trace_context: None,
        created_at: Timestamp::UNIX_EPOCH,
        run_at: Timestamp::UNIX_EPOCH,
        lease_expires_at: Timestamp::UNIX_EPOCH,
    }
}
