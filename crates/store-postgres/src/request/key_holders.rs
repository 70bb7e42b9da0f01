//! Finds the holders of idempotency keys. Inserts nothing.

use super::enqueue;
use crate::job::row::JsonbIn;
use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::RequestId;
use leasehold_store::Result;
use leasehold_store::request::{Enqueue, KeyHolder, NewRequest};
use uuid::Uuid;

const CONTEXT: &str = "request_key_holders";

pub(super) async fn find(
    store: &PostgresStore,
    enqueue: &Enqueue,
) -> Result<Vec<Option<KeyHolder>>> {
    let mut holders = vec![None; enqueue.requests.len()];
    let (mut positions, mut keys) = (Vec::new(), Vec::new());
    for (position, new) in enqueue.requests.iter().enumerate() {
        if let Some(idempotency) = &new.idempotency {
            positions.push(position);
            keys.push(idempotency.key.as_str());
        }
    }
    if positions.is_empty() {
        return Ok(holders);
    }
    enqueue::check_params(CONTEXT, &enqueue.requests).await?;
    let keyed = || positions.iter().map(|&at| &enqueue.requests[at]);
    let definitions: Vec<Uuid> = keyed().map(|new| new.definition.0).collect();
    let params: Vec<JsonbIn<'_>> = keyed()
        .map(|new: &NewRequest| JsonbIn(&new.params))
        .collect();
    let rows = store
        .many(
            CONTEXT,
            sql!("request/key_holders"),
            &[
                &store.given_now(),
                &enqueue.workspace.0,
                &keys,
                &definitions,
                &params,
            ],
        )
        .await?;
    for row in rows {
        let holder = KeyHolder {
            request: RequestId(row.get("id")),
            is_same: row.get("same"),
        };
        let nth: usize = row::count(&row, "nth")?;
        if let Some(&position) = positions.get(nth.wrapping_sub(1)) {
            holders[position] = Some(holder);
        }
    }
    Ok(holders)
}
