//! Finds the holders of idempotency keys and compares them with requests. Writes nothing.

use super::enqueue::{EnqueueBatch, PreparedRequest};
use super::key_digests::{KEYS_PER_READ, KeyDigests};
use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use leasehold_core::{DefinitionId, JsonText, RequestId, WorkspaceId};
use leasehold_store::request::{Idempotency, KeyHolder};
use leasehold_store::{Result, sql};
use rusqlite::params;
use std::sync::Arc;

const KEY_HOLDER: &str = sql!("request/key_holder");
const KEPT_KEY: &str = sql!("request/kept_key");

/// What is stored for a key.
pub(super) enum StoredKey {
    /// A request holds it, perhaps a pruned one.
    Held(KeyHolder),
    /// Its window has passed, and this request still has it.
    Expired(RequestId),
}

/// Returns who holds the key of each request of a batch.
pub(super) async fn find_all(
    store: &SqliteStore,
    batch: Arc<EnqueueBatch>,
) -> Result<Vec<Option<KeyHolder>>> {
    let mut holders = Vec::with_capacity(batch.requests.len());
    while holders.len() < batch.requests.len() {
        let (batch, from) = (Arc::clone(&batch), holders.len());
        let found = store.read("request_key_holders", move |session| {
            find_some(session, &batch, from)
        });
        holders.extend(found.await?);
    }
    Ok(holders)
}

/// Returns the holders from a position on, with as many keys as one read looks up.
fn find_some(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    from: usize,
) -> std::result::Result<Vec<Option<KeyHolder>>, Fault> {
    let (mut found, mut keys) = (Vec::new(), 0);
    for new in batch.requests.iter().skip(from) {
        if new.idempotency.is_some() {
            if keys == KEYS_PER_READ {
                break;
            }
            keys += 1;
        }
        found.push(
            match find(session, batch.workspace, new, &KeyDigests::new())? {
                Some(StoredKey::Held(holder)) => Some(holder),
                Some(StoredKey::Expired(_)) | None => None,
            },
        );
    }
    Ok(found)
}

/// Looks up the key of a request.
pub(super) fn find(
    session: &Session<'_>,
    workspace: WorkspaceId,
    new: &PreparedRequest,
    digests: &KeyDigests,
) -> std::result::Result<Option<StoredKey>, Fault> {
    let Some(Idempotency { key, .. }) = &new.idempotency else {
        return Ok(None);
    };
    let found = session.optional(KEY_HOLDER, params![blob(workspace), Text(key)], |row| {
        let definition: DefinitionId = row.id("definition_id")?;
        let id: RequestId = row.id("id")?;
        let until: Option<i64> = row.get("dedupe_until")?;
        if until.is_some_and(|until| until <= session.now) {
            return Ok(StoredKey::Expired(id));
        }
        let params = JsonText::trusted(row.get("params")?);
        Ok(StoredKey::Held(KeyHolder {
            request: id,
            is_same: definition == new.definition && has_params(new, id, &params, digests),
        }))
    })?;
    match found {
        Some(stored) => Ok(Some(stored)),
        None => pruned(session, workspace, new, key),
    }
}

/// Returns the pruned request for which the key is kept.
fn pruned(
    session: &Session<'_>,
    workspace: WorkspaceId,
    new: &PreparedRequest,
    key: &str,
) -> std::result::Result<Option<StoredKey>, Fault> {
    let row = params![blob(workspace), Text(key), session.now];
    session.optional(KEPT_KEY, row, |row| {
        let definition: DefinitionId = row.id("definition_id")?;
        let hash: [u8; 32] = row.get("params_hash")?;
        Ok(StoredKey::Held(KeyHolder {
            request: row.id("request_id")?,
            is_same: definition == new.definition && hash == new.params.document_hash(),
        }))
    })
}

/// Returns whether a request has the params of the holder of its key. Computes only digests that are missing.
pub(super) fn has_params(
    new: &PreparedRequest,
    holder: RequestId,
    params: &JsonText,
    digests: &KeyDigests,
) -> bool {
    let digest = |id: RequestId, text: &JsonText| match digests.get(&id) {
        Some(digest) => *digest,
        None => text.digest(),
    };
    *params == new.params
        || digest(holder, params).is_some_and(|held| digest(new.id, &new.params) == Some(held))
}
