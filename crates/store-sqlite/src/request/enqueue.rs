//! Enqueues requests: all requests of a call or none. One request at a time holds an idempotency key.

use crate::error::Fault;
use crate::request::event::RequestRef;
use crate::request::key_digests::KeyDigests;
use crate::request::key_holders::{self, StoredKey, has_params};
use crate::row::{Columns, Text, blob, checked_text, later};
use crate::session::Session;
use crate::workspace;
use crate::writer::Effect;
use leasehold_core::quota::request_bytes;
use leasehold_core::{DefinitionId, JsonText, RequestId, RequestStatus, VersionId, WorkspaceId};
use leasehold_store::ErrorKind;
use leasehold_store::notification::Notification;
use leasehold_store::request::{Enqueue, Enqueued, EnqueuedRequest, Idempotency, KeyHolder};
use leasehold_store::sql;
use rusqlite::params;
use std::collections::HashMap;

const DEFINITION: &str = sql!("definition/to_enqueue");
const KEY_CLEAR: &str = sql!("request/key_clear");
const ENQUEUE: &str = sql!("request/enqueue");

/// An enqueue call, prepared outside the writer thread: JSON documents are text already.
pub(crate) struct EnqueueBatch {
    pub(super) workspace: WorkspaceId,
    by: String,
    pub(super) requests: Vec<PreparedRequest>,
    /// The position of the first request with each key.
    first_uses: HashMap<String, usize>,
}

pub(super) struct PreparedRequest {
    pub(super) id: RequestId,
    pub(super) definition: DefinitionId,
    pub(super) params: JsonText,
    priority: i16,
    run_at: Option<i64>,
    pub(super) idempotency: Option<Idempotency>,
    trace_context: Option<String>,
    checked_against: Option<VersionId>,
}

impl EnqueueBatch {
    pub(crate) fn prepare(enqueue: &Enqueue) -> Result<Self, ErrorKind> {
        let requests = enqueue.requests.iter().map(|new| {
            Ok(PreparedRequest {
                id: new.id,
                definition: new.definition,
                params: checked_text(&new.params)?,
                priority: new.priority,
                run_at: new.run_at.map(|at| at.as_microsecond()),
                idempotency: new.idempotency.clone(),
                trace_context: new.trace_context.clone(),
                checked_against: new.checked_against,
            })
        });
        let requests: Vec<PreparedRequest> = requests.collect::<Result<_, ErrorKind>>()?;
        let mut first_uses = HashMap::new();
        for (position, new) in requests.iter().enumerate() {
            if let Some(Idempotency { key, .. }) = &new.idempotency {
                first_uses.entry(key.clone()).or_insert(position);
            }
        }
        Ok(Self {
            workspace: enqueue.workspace,
            by: enqueue.by.clone(),
            requests,
            first_uses,
        })
    }

    /// Returns the first request with a key.
    pub(super) fn first_use(&self, key: &str) -> Option<&PreparedRequest> {
        let position = self.first_uses.get(key)?;
        self.requests.get(*position)
    }

    /// Returns the request of the batch that holds the key of this one: the first with the key, unless this is the first.
    fn earlier_use(&self, new: &PreparedRequest, digests: &KeyDigests) -> Option<KeyHolder> {
        let key = &new.idempotency.as_ref()?.key;
        let first = self.first_use(key).filter(|first| first.id != new.id)?;
        Some(KeyHolder {
            request: first.id,
            is_same: first.definition == new.definition
                && has_params(new, first.id, &first.params, digests),
        })
    }
}

pub(crate) fn enqueue(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    digests: &KeyDigests,
) -> Result<Effect<Enqueued>, Fault> {
    if !workspace::is_open(session, batch.workspace)? {
        return Ok(Effect::Rollback(Enqueued::WorkspaceNotFound));
    }
    let mut versions = HashMap::new();
    let mut checked = Vec::with_capacity(batch.requests.len());
    // Nothing is inserted before every request is known to be accepted: a conflict at the end of a batch must not cost the writer the whole batch.
    for new in &batch.requests {
        let version = match versions.get(&new.definition) {
            Some(version) => *version,
            None => match current_version(session, batch.workspace, new.definition)? {
                Ok(version) => *versions.entry(new.definition).or_insert(version),
                Err(refusal) => return Ok(Effect::Rollback(refusal)),
            },
        };
        if new
            .checked_against
            .is_some_and(|checked| checked != version)
        {
            return Ok(Effect::Rollback(Enqueued::VersionMoved(new.definition)));
        }
        let holder = match holder(session, batch.workspace, new, digests)? {
            Some(holder) => Some(holder),
            None => batch.earlier_use(new, digests),
        };
        match holder {
            Some(holder) if !holder.is_same => {
                let key = new.idempotency.as_ref().map(|held| held.key.clone());
                return Ok(Effect::Rollback(Enqueued::KeyConflict {
                    key: key.unwrap_or_default(),
                    held_by: holder.request,
                }));
            }
            holder => checked.push((new, version, holder)),
        }
    }
    let mut answers = Vec::with_capacity(batch.requests.len());
    for (new, version, holder) in checked {
        if holder.is_none() {
            insert(session, batch, new, version)?;
        }
        answers.push(EnqueuedRequest {
            id: holder.map_or(new.id, |holder| holder.request),
            inserted: holder.is_none(),
        });
    }
    Ok(Effect::Commit(Enqueued::All(answers)))
}

fn current_version(
    session: &Session<'_>,
    workspace: WorkspaceId,
    definition: DefinitionId,
) -> Result<Result<VersionId, Enqueued>, Fault> {
    let found = session.optional(DEFINITION, [blob(definition)], |row| {
        let owner: WorkspaceId = row.id("workspace_id")?;
        let deleted: bool = row.get("deleted")?;
        Ok((owner, deleted, row.id_or_none("current_version_id")?))
    })?;
    Ok(match found {
        Some((_, true, _)) | None => Err(Enqueued::DefinitionNotFound(definition)),
        Some((owner, ..)) if owner != workspace => Err(Enqueued::DefinitionForbidden(definition)),
        Some((_, _, None)) => Err(Enqueued::NotPublished(definition)),
        Some((_, _, Some(version))) => Ok(version),
    })
}

/// Returns the request that holds the key, also a pruned one. Clears the key first if its window has passed.
fn holder(
    session: &Session<'_>,
    workspace: WorkspaceId,
    new: &PreparedRequest,
    digests: &KeyDigests,
) -> Result<Option<KeyHolder>, Fault> {
    match key_holders::find(session, workspace, new, digests)? {
        Some(StoredKey::Held(holder)) => Ok(Some(holder)),
        Some(StoredKey::Expired(request)) => {
            session.run(KEY_CLEAR, [blob(request)])?;
            Ok(None)
        }
        None => Ok(None),
    }
}

fn insert(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    new: &PreparedRequest,
    version: VersionId,
) -> Result<(), Fault> {
    let key = new.idempotency.as_ref().map(|held| Text(&held.key));
    let window = new.idempotency.as_ref().and_then(|held| held.window);
    let row = params![
        blob(new.id),
        blob(batch.workspace),
        blob(new.definition),
        blob(version),
        new.priority,
        new.params.as_str(),
        new.run_at.unwrap_or(session.now),
        key,
        window.map(|window| later(session.now, window)),
        new.trace_context.as_deref().map(Text),
        session.now,
        i64::try_from(request_bytes(new.params.as_str().len())).unwrap_or(i64::MAX)
    ];
    session.run(ENQUEUE, row)?;
    session.notify(Notification::Work);
    let subject = RequestRef {
        request: new.id,
        workspace: batch.workspace,
    };
    subject.log_transition(session, None, RequestStatus::Pending, &batch.by, None)
}
