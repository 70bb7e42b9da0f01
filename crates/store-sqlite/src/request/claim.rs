//! The claim: kept executions first, then workspaces in turn, one admission each. Who is ready is known by an index; nobody is scanned past.

use crate::error::Fault;
use crate::lock;
use crate::request::event::Subject;
use crate::request::{resolve, settle};
use crate::row::{Columns, Text, blob, later, moment};
use crate::session::Session;
use leasehold_core::limits::CLAIM_MAX_BATCH;
use leasehold_core::{ExecutionId, FailureReason, JsonText, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::request::{
    AtCapacity, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, ExecutionOrigin, Fail,
    Orphaned, Rejected,
};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::BTreeSet;

const KEPT: &str = sql!("request/claim_kept");
const LOSE_EXECUTION: &str = sql!("request/lose_execution");
const READY: &str = sql!("workspace/ready");
const NEXT: &str = sql!("request/claim_next");
const CLAIM: &str = sql!("request/claim");
const REJECT: &str = sql!("request/reject");
const MORE: &str = sql!("request/more");
const TURN: &str = sql!("workspace/turn");
const FULL: &str = sql!("workspace/full");
const FILLED: &str = sql!("workspace/filled");
const EMPTY: &str = sql!("workspace/empty");
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
    settle::promote(session)?;
    let first = session.one(ADMISSION_LAST, [], |row| Ok(row.get(0)?))?;
    let mut round = Round {
        session,
        claim,
        lease_expires_at: later(session.now, claim.lease),
        admission: first,
        admitting: BTreeSet::new(),
        claimed: Claimed::default(),
    };
    round.take_kept()?;
    round.take_turns()?;
    round.find_filled()?;
    let Round {
        admission,
        mut claimed,
        ..
    } = round;
    if admission != first {
        session.run(ADMISSION_ADVANCE, [admission])?;
    }
    claimed.next_due_in = settle::next_due_in(session)?;
    claimed.more = session.one(MORE, [session.now], |row| Ok(row.get(0)?))?;
    Ok(ClaimOutcome::Claimed(claimed))
}

struct Round<'a> {
    session: &'a Session<'a>,
    claim: &'a Claim,
    lease_expires_at: i64,
    /// The number of the last admission.
    admission: i64,
    /// Workspaces that something was admitted of.
    admitting: BTreeSet<WorkspaceId>,
    claimed: Claimed,
}

impl Round<'_> {
    fn is_full(&self) -> bool {
        let taken = self.claimed.requests.len() + self.claimed.rejected.len();
        let batch = self.claim.batch.min(CLAIM_MAX_BATCH);
        taken >= usize::try_from(batch).unwrap_or(usize::MAX)
    }

    /// Requests that kept their execution hold their slot already: they need no turn and no room.
    fn take_kept(&mut self) -> Result<(), Fault> {
        while !self.is_full() {
            let kept = self.session.maybe(KEPT, [], |row| {
                let runs: bool = row.get("runs")?;
                Ok((candidate(row)?, row.id("execution_id")?, runs))
            })?;
            match kept {
                None => return Ok(()),
                Some((found, execution, true)) => {
                    let row = params![blob(execution), self.session.now];
                    self.session.run(EXECUTION_RESUME, row)?;
                    self.admit(found, execution, ExecutionOrigin::Kept)?;
                }
                // Its execution is unexpectedly gone, and its slot with it: it goes back into the line.
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

    fn take_turns(&mut self) -> Result<(), Fault> {
        while !self.is_full() {
            let ready = self.session.maybe(READY, [], |row| {
                let workspace: WorkspaceId = row.id("workspace_id")?;
                Ok((workspace, row.get::<_, bool>("deleted")?))
            })?;
            let Some((workspace, deleted)) = ready else {
                return Ok(());
            };
            let next = self.session.maybe(NEXT, [blob(workspace)], |row| {
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
                None => self.session.run(EMPTY, [blob(workspace)]).map(|_| ())?,
                Some((found, Some(reason))) => self.reject(&found, reason)?,
                Some((found, None)) => self.start(found)?,
            }
        }
        Ok(())
    }

    /// Notes the workspaces whose last slot was taken while they have more waiting.
    fn find_filled(&mut self) -> Result<(), Fault> {
        for workspace in &self.admitting {
            let filled = self.session.maybe(FILLED, [blob(*workspace)], |row| {
                let limit = row.get("concurrency_limit")?;
                Ok(AtCapacity {
                    workspace: *workspace,
                    // One is never admitted beyond the limit, so a full workspace has just as many.
                    active: limit,
                    limit,
                })
            })?;
            self.claimed.at_capacity.extend(filled);
        }
        Ok(())
    }

    /// Creates the execution, which takes the slot, and claims the request.
    fn start(&mut self, found: Candidate) -> Result<(), Fault> {
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
            // The flag said room where there was none: someone wrote it by hand. The database stood firm.
            Err(fault) if fault.is_refused_by("workspace_limit") => {
                self.session.run(FULL, [blob(request.workspace)])?;
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
        let Candidate {
            mut request,
            readable,
            ..
        } = found;
        let row = params![
            blob(request.id),
            blob(execution),
            Text(&self.claim.owner),
            self.lease_expires_at,
            self.session.now
        ];
        self.session.run(CLAIM, row)?;
        subject(&request).moved(
            self.session,
            Some(RequestStatus::Pending),
            RequestStatus::Claimed,
            &self.claim.owner,
            None,
        )?;
        request.token += 1;
        if !readable {
            return self.give_up(&request);
        }
        request.execution = execution;
        request.origin = origin;
        request.lease_expires_at = moment(self.lease_expires_at)?;
        self.claimed.requests.push(request);
        Ok(())
    }

    /// Fails a request whose params no program can be given, so that it does not come back for ever. It was claimed first:
    /// from PENDING a request fails only for reasons that are known before it is admitted.
    fn give_up(&mut self, request: &ClaimedRequest) -> Result<(), Fault> {
        let reason = FailureReason::DispatchExhausted;
        let fail = Fail {
            claim: ClaimRef {
                request: request.id,
                token: request.token,
            },
            reason,
            error: Some(
                "the params cannot be read: they nest too deep, or a number is too large"
                    .to_owned(),
            ),
        };
        resolve::fail(self.session, &self.claim.owner, &fail)?;
        self.note_rejected(request, reason);
        Ok(())
    }

    /// Fails a request that could never run. Its workspace's turn is spent, else a thousand such would go before everybody.
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

/// PENDING → FAILED. A cancellation is nobody's failure and counts as no attempt.
pub(crate) fn fail_pending(
    session: &Session<'_>,
    subject: Subject,
    reason: FailureReason,
    by: &str,
    counts: bool,
) -> Result<(), Fault> {
    let row = params![blob(subject.request), reason.as_str(), session.now, counts];
    session.run(REJECT, row)?;
    subject.moved(
        session,
        Some(RequestStatus::Pending),
        RequestStatus::Failed,
        by,
        Some(reason.as_str()),
    )
}

/// A request that may be admitted: what its claimer will get, with token, execution and lease still to be set.
struct Candidate {
    request: ClaimedRequest,
    execution_lost: bool,
    /// Whether its params are those in the database: somebody can write there what this program cannot read.
    readable: bool,
}

fn subject(request: &ClaimedRequest) -> Subject {
    Subject {
        request: request.id,
        workspace: request.workspace,
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Fault> {
    let id: RequestId = row.id("id")?;
    let created_at = row.time("created_at")?;
    let params = row.get("params").ok().map(JsonText::trusted);
    let params = params.filter(JsonText::is_readable);
    let readable = params.is_some();
    let request = ClaimedRequest {
        id,
        token: row.get("claim_token")?,
        workspace: row.id("workspace_id")?,
        definition: row.id("definition_id")?,
        version: row.id("version_id")?,
        execution: ExecutionId(uuid::Uuid::nil()),
        origin: ExecutionOrigin::Created,
        priority: row.get("priority")?,
        params: params.unwrap_or_default(),
        attempt_count: row.get("attempt_count")?,
        dispatch_failures: row.get("dispatch_failures")?,
        cancel_requested: row.get("cancel_requested")?,
        trace_context: row.get("trace_context")?,
        created_at,
        run_at: row.time("run_at")?,
        lease_expires_at: created_at,
    };
    Ok(Candidate {
        request,
        execution_lost: row.get("execution_lost")?,
        readable,
    })
}
