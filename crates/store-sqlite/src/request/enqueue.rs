//! Enqueue: all of a call's requests or none, each idempotency key held by one request at a time.

use crate::error::Fault;
use crate::request::event::Subject;
use crate::row::{Columns, Text, blob, json_text, later};
use crate::session::Session;
use crate::workspace;
use crate::writer::Effect;
use leasehold_core::{DefinitionId, RequestId, RequestStatus, VersionId, WorkspaceId};
use leasehold_store::ErrorKind;
use leasehold_store::request::{Enqueue, Enqueued, EnqueuedRequest, Idempotency};
use leasehold_store::sql;
use leasehold_store::wake::Wake;
use rusqlite::params;
use serde_json::Value;
use std::collections::HashMap;

const DEFINITION: &str = sql!("definition/to_enqueue");
const KEY_HOLDER: &str = sql!("request/key_holder");
const KEY_CLEAR: &str = sql!("request/key_clear");
const ENQUEUE: &str = sql!("request/enqueue");

/// An enqueue call made ready outside the writer: documents are text already.
pub(crate) struct Call {
    workspace: WorkspaceId,
    by: String,
    requests: Vec<New>,
}

struct New {
    id: RequestId,
    definition: DefinitionId,
    params: String,
    priority: i16,
    run_at: Option<i64>,
    idempotency: Option<Idempotency>,
    trace_context: Option<String>,
    checked_against: Option<VersionId>,
}

impl Call {
    pub(crate) fn prepare(enqueue: &Enqueue) -> Result<Self, ErrorKind> {
        let requests = enqueue.requests.iter().map(|new| {
            Ok(New {
                id: new.id,
                definition: new.definition,
                params: json_text(&new.params)?,
                priority: new.priority,
                run_at: new.run_at.map(|at| at.as_microsecond()),
                idempotency: new.idempotency.clone(),
                trace_context: new.trace_context.clone(),
                checked_against: new.checked_against,
            })
        });
        Ok(Self {
            workspace: enqueue.workspace,
            by: enqueue.by.clone(),
            requests: requests.collect::<Result<_, ErrorKind>>()?,
        })
    }
}

pub(crate) fn enqueue(session: &Session<'_>, call: &Call) -> Result<Effect<Enqueued>, Fault> {
    if !workspace::is_open(session, call.workspace)? {
        return Ok(Effect::Undo(Enqueued::WorkspaceNotFound));
    }
    let mut versions = HashMap::new();
    let mut answers = Vec::with_capacity(call.requests.len());
    for new in &call.requests {
        let version = match versions.get(&new.definition) {
            Some(version) => *version,
            None => match current_version(session, call.workspace, new.definition)? {
                Ok(version) => *versions.entry(new.definition).or_insert(version),
                Err(refusal) => return Ok(Effect::Undo(refusal)),
            },
        };
        if new
            .checked_against
            .is_some_and(|checked| checked != version)
        {
            return Ok(Effect::Undo(Enqueued::VersionMoved(new.definition)));
        }
        match holder(session, call.workspace, new)? {
            None => {
                insert(session, call, new, version)?;
                answers.push(EnqueuedRequest {
                    id: new.id,
                    inserted: true,
                });
            }
            Some(holder) if holder.is_same => answers.push(EnqueuedRequest {
                id: holder.id,
                inserted: false,
            }),
            Some(holder) => {
                return Ok(Effect::Undo(Enqueued::KeyConflict {
                    key: holder.key,
                    held_by: holder.id,
                }));
            }
        }
    }
    Ok(Effect::Keep(Enqueued::All(answers)))
}

fn current_version(
    session: &Session<'_>,
    workspace: WorkspaceId,
    definition: DefinitionId,
) -> Result<Result<VersionId, Enqueued>, Fault> {
    let found = session.maybe(DEFINITION, [blob(definition)], |row| {
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

struct Holder {
    id: RequestId,
    key: String,
    is_same: bool,
}

/// Who holds the request's key. A holder whose window has passed loses it here.
fn holder(
    session: &Session<'_>,
    workspace: WorkspaceId,
    new: &New,
) -> Result<Option<Holder>, Fault> {
    let Some(Idempotency { key, .. }) = &new.idempotency else {
        return Ok(None);
    };
    let found = session.maybe(KEY_HOLDER, params![blob(workspace), Text(key)], |row| {
        let definition: DefinitionId = row.id("definition_id")?;
        let params: String = row.get("params")?;
        let holder = Holder {
            id: row.id("id")?,
            key: key.clone(),
            is_same: definition == new.definition && same_document(&params, &new.params),
        };
        Ok((holder, row.get::<_, Option<i64>>("dedupe_until")?))
    })?;
    match found {
        Some((holder, Some(until))) if until <= session.now => {
            session.run(KEY_CLEAR, [blob(holder.id)])?;
            Ok(None)
        }
        Some((holder, _)) => Ok(Some(holder)),
        None => Ok(None),
    }
}

/// Equal as documents: the order of fields does not matter.
fn same_document(one: &str, other: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    one == other || read(one).is_some_and(|one| Some(one) == read(other))
}

fn insert(session: &Session<'_>, call: &Call, new: &New, version: VersionId) -> Result<(), Fault> {
    let key = new.idempotency.as_ref().map(|held| Text(&held.key));
    let window = new.idempotency.as_ref().and_then(|held| held.window);
    let row = params![
        blob(new.id),
        blob(call.workspace),
        blob(new.definition),
        blob(version),
        new.priority,
        new.params,
        new.run_at.unwrap_or(session.now),
        key,
        window.map(|window| later(session.now, window)),
        new.trace_context.as_deref().map(Text),
        session.now
    ];
    session.run(ENQUEUE, row)?;
    session.ring(Wake::Work);
    let subject = Subject {
        request: new.id,
        workspace: call.workspace,
    };
    subject.moved(session, None, RequestStatus::Pending, &call.by, None)
}
