//! The model's enqueue and redrive.

use super::state::{RequestRow, State, constraint_error};
use leasehold_core::limits::{PRIORITY_RANGE, SWEEP_MAX_BATCH};
use leasehold_core::{Crashes, RequestId, RequestStatus, Timestamp, WorkspaceId};
use leasehold_store::Result;
use leasehold_store::request::{
    Enqueue, Enqueued, EnqueuedRequest, KeyHolder, NewRequest, Redrive, RedriveMany, Redriven,
    Request,
};

impl State {
    pub(super) fn enqueue(&mut self, enqueue: &Enqueue, now: Timestamp) -> Result<Enqueued> {
        if !self.exists(enqueue.workspace) {
            return Ok(Enqueued::WorkspaceNotFound);
        }
        // All or none: work on a copy and keep it at the end.
        let mut next = self.clone();
        let mut answers = Vec::new();
        for new in &enqueue.requests {
            match next.enqueue_one(enqueue, new, now)? {
                Ok(answer) => answers.push(answer),
                Err(refusal) => return Ok(refusal),
            }
        }
        *self = next;
        Ok(Enqueued::All(answers))
    }

    fn enqueue_one(
        &mut self,
        enqueue: &Enqueue,
        new: &NewRequest,
        now: Timestamp,
    ) -> Result<Result<EnqueuedRequest, Enqueued>> {
        let definition = match self.definitions.get(&new.definition) {
            Some(d) if self.deleted_definitions.contains(&d.id) => None,
            other => other,
        };
        let Some(definition) = definition else {
            return Ok(Err(Enqueued::DefinitionNotFound(new.definition)));
        };
        if definition.workspace != enqueue.workspace {
            return Ok(Err(Enqueued::DefinitionForbidden(new.definition)));
        }
        let Some(version) = definition.current_version else {
            return Ok(Err(Enqueued::NotPublished(new.definition)));
        };
        if new
            .checked_against
            .is_some_and(|checked| checked != version)
        {
            return Ok(Err(Enqueued::VersionMoved(new.definition)));
        }
        if let Some(held) = self.key_holder(enqueue, new, now) {
            return Ok(held);
        }
        if !PRIORITY_RANGE.contains(&new.priority) {
            return Err(constraint_error("request_priority"));
        }
        if self.requests.contains_key(&new.id) {
            return Err(constraint_error("request_pkey"));
        }
        let window = new.idempotency.as_ref().and_then(|i| i.window);
        let request = Request::enqueued(enqueue.workspace, new, version, now);
        self.insert(request, window.map(|w| now + w), now, &enqueue.by, None);
        Ok(Ok(EnqueuedRequest {
            id: new.id,
            inserted: true,
        }))
    }

    /// The outcome if the key is held. Releases a key whose window has passed first.
    fn key_holder(
        &mut self,
        enqueue: &Enqueue,
        new: &NewRequest,
        now: Timestamp,
    ) -> Option<Result<EnqueuedRequest, Enqueued>> {
        let key = &new.idempotency.as_ref()?.key;
        let found = self.current_key_holder(enqueue.workspace, new, now);
        let expired = self.requests.values_mut().find(|row| {
            found.is_none()
                && row.request.workspace == enqueue.workspace
                && row.request.idempotency_key.as_ref() == Some(key)
        });
        if let Some(row) = expired {
            row.request.idempotency_key = None;
            row.dedupe_until = None;
        }
        found.map(|holder| held(key, holder))
    }

    /// Who holds the key of a request now.
    pub(super) fn current_key_holder(
        &self,
        workspace: WorkspaceId,
        new: &NewRequest,
        now: Timestamp,
    ) -> Option<KeyHolder> {
        let key = &new.idempotency.as_ref()?.key;
        let row = self.requests.values().find(|row| {
            row.request.workspace == workspace && row.request.idempotency_key.as_ref() == Some(key)
        });
        let (request, definition, params, until) = match row {
            Some(row) => {
                let held = &row.request;
                (held.id, held.definition, &held.params, row.dedupe_until)
            }
            None => {
                let kept = self.kept_keys.get(&(workspace, key.clone()))?;
                let until = Some(kept.dedupe_until);
                (kept.request, kept.definition, &kept.params, until)
            }
        };
        until.is_none_or(|until| until > now).then(|| KeyHolder {
            request,
            is_same: definition == new.definition && params.is_same_document(&new.params),
        })
    }

    fn insert(
        &mut self,
        request: Request,
        dedupe_until: Option<Timestamp>,
        now: Timestamp,
        by: &str,
        reason: Option<&str>,
    ) {
        let (id, workspace) = (request.id, request.workspace);
        let row = RequestRow {
            waits: request.run_at > now,
            request,
            token: 0,
            dedupe_until,
            cancel_force: false,
            cancel_acknowledged: false,
            crashes: Crashes::default(),
            crashed_process: None,
            execution_bytes: 0,
        };
        self.requests.insert(id, row);
        self.record(id, workspace, None, RequestStatus::Pending, now, by, reason);
    }

    pub(super) fn redrive(&mut self, redrive: &Redrive, now: Timestamp) -> Redriven {
        let Some(failed) = self.own(redrive.workspace, redrive.failed) else {
            return Redriven::NotFound;
        };
        if failed.request.status != RequestStatus::Failed {
            return Redriven::NotFailed;
        }
        if let Some(live) = self.live_redrive(redrive.failed) {
            return Redriven::AlreadyLive(live);
        }
        let old = failed.request.clone();
        if !self.exists(redrive.workspace) || self.deleted_definitions.contains(&old.definition) {
            return Redriven::DefinitionNotFound;
        }
        self.redriven.insert(old.id);
        let request = old.redriven(redrive.id, now);
        self.insert(request, None, now, &redrive.by, Some("redrive"));
        Redriven::Enqueued(redrive.id)
    }

    /// Redrives in bulk; `choose` returns the id of each new request.
    pub(super) fn redrive_many(
        &mut self,
        redrive: &RedriveMany,
        now: Timestamp,
        choose: &mut dyn FnMut(RequestId) -> RequestId,
    ) -> Vec<(RequestId, RequestId)> {
        let all = self.requests.values().map(|row| &row.request);
        let failed: Vec<RequestId> = all
            .filter(|r| {
                r.workspace == redrive.workspace
                    && r.status == RequestStatus::Failed
                    && redrive
                        .reason
                        .is_none_or(|x| r.failure_reason == Some(x.into()))
                    && redrive.definition.is_none_or(|x| r.definition == x)
                    && !self.redriven.contains(&r.id)
                    && !self.deleted_definitions.contains(&r.definition)
            })
            .map(|r| r.id)
            .collect();
        let mut pairs = Vec::new();
        let mut bytes = 0_u64;
        for failed in failed {
            if pairs.len() == redrive.limit.min(SWEEP_MAX_BATCH) as usize
                || bytes >= redrive.max_bytes
            {
                break;
            }
            let row = self.requests.get(&failed);
            bytes = bytes.saturating_add(row.map_or(0, |row| row.request.bytes));
            let one = Redrive {
                workspace: redrive.workspace,
                failed,
                id: choose(failed),
                by: redrive.by.clone(),
            };
            if let Redriven::Enqueued(id) = self.redrive(&one, now) {
                pairs.push((failed, id));
            }
        }
        pairs
    }
}

/// The outcome of a request whose key is held, by a request with the same definition and params or not.
fn held(key: &str, holder: KeyHolder) -> Result<EnqueuedRequest, Enqueued> {
    if holder.is_same {
        Ok(EnqueuedRequest {
            id: holder.request,
            inserted: false,
        })
    } else {
        Err(Enqueued::KeyConflict {
            key: key.to_owned(),
            held_by: holder.request,
        })
    }
}
