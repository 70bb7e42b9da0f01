//! Digests of params for the comparison with the holders of idempotency keys, computed on the reader threads: the writer thread serves everybody.

use super::enqueue::{EnqueueBatch, PreparedRequest};
use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use leasehold_core::json::DocumentDigest;
use leasehold_core::{JsonText, RequestId};
use leasehold_store::{Result, sql};
use rusqlite::params;
use std::collections::HashMap;
use std::sync::Arc;

const KEY_HOLDER: &str = sql!("request/key_holder");
/// Calls with fewer keys and fewer bytes are compared by the writer: that takes less than a millisecond beside the write itself.
const READER_MIN_KEYS: usize = 8;
const READER_MIN_BYTES: usize = 16 * 1024;
/// The keys that one read looks up, so that other reads get their turn between them.
pub(super) const KEYS_PER_READ: usize = 8;

/// The digests of requests by id; none for params that cannot be parsed.
pub(crate) type KeyDigests = HashMap<RequestId, Option<DocumentDigest>>;

/// Returns the digests that the writer will need: of requests whose key is held with another text, and of the holders. A holder that
/// another call inserts meanwhile is missing; the writer then computes its digest.
pub(crate) async fn compute(store: &SqliteStore, batch: &Arc<EnqueueBatch>) -> Result<KeyDigests> {
    let mut digests = KeyDigests::new();
    let has_key = |new: &&PreparedRequest| new.idempotency.is_some();
    let keys = batch.requests.iter().filter(has_key).count();
    let bytes: usize = batch
        .requests
        .iter()
        .filter(has_key)
        .map(|new| new.params.as_str().len())
        .sum();
    if keys == 0 || (keys < READER_MIN_KEYS && bytes < READER_MIN_BYTES) {
        return Ok(digests);
    }
    let mut first = 0;
    while first < batch.requests.len() {
        let (batch, from) = (Arc::clone(batch), first);
        (digests, first) = store
            .read("request_enqueue", move |session| {
                compute_some(session, &batch, from, digests)
            })
            .await?;
    }
    Ok(digests)
}

/// Adds the digests for a few keys from a position on, and returns the position after them.
fn compute_some(
    session: &Session<'_>,
    batch: &EnqueueBatch,
    from: usize,
    mut digests: KeyDigests,
) -> std::result::Result<(KeyDigests, usize), Fault> {
    let mut add = |id: RequestId, params: &JsonText| {
        digests.entry(id).or_insert_with(|| params.digest());
    };
    let mut keys = 0;
    for (at, new) in batch.requests.iter().enumerate().skip(from) {
        let Some(idempotency) = &new.idempotency else {
            continue;
        };
        if keys == KEYS_PER_READ {
            return Ok((digests, at));
        }
        keys += 1;
        let first = batch.first_use(&idempotency.key);
        if let Some(first) = first.filter(|first| first.params != new.params) {
            add(new.id, &new.params);
            add(first.id, &first.params);
        }
        let values = params![blob(batch.workspace), Text(&idempotency.key)];
        let held: Option<(RequestId, JsonText)> = session.optional(KEY_HOLDER, values, |row| {
            let params: String = row.get("params")?;
            Ok((row.id("id")?, JsonText::trusted(params)))
        })?;
        if let Some((holder, params)) = held.filter(|(_, params)| *params != new.params) {
            add(new.id, &new.params);
            add(holder, &params);
        }
    }
    Ok((digests, batch.requests.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::enqueue::enqueue;
    use super::*;
    use crate::SqliteOptions;
    use crate::writer::Effect;
    use leasehold_store::request::{Enqueue, Enqueued, Idempotency, NewRequest};
    use leasehold_store::{Clock, SchemaStore};
    use leasehold_store_conformance::factory::new_request;
    use leasehold_store_conformance::{Fixture, TestWorkspace, USER, clock};

    const FIELDS: usize = 2_000;

    async fn fixture() -> (Arc<SqliteStore>, Fixture) {
        let clock = clock();
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = Arc::new(SqliteStore::open_in_memory(&options).unwrap());
        store.schema_migrate().await.unwrap();
        (Arc::clone(&store), Fixture::new(store, clock))
    }

    /// A request with a key whose params have many fields, in this order.
    fn with_fields(t: &TestWorkspace, fields: impl Iterator<Item = usize>) -> NewRequest {
        let fields: Vec<String> = fields.map(|at| format!("\"field {at}\":{at}")).collect();
        NewRequest {
            params: JsonText::parse(&format!("{{{}}}", fields.join(","))).unwrap(),
            idempotency: Some(Idempotency {
                key: "k".to_owned(),
                window: None,
            }),
            ..new_request(t)
        }
    }

    fn batch(t: &TestWorkspace, requests: Vec<NewRequest>) -> Arc<EnqueueBatch> {
        let call = Enqueue {
            workspace: t.workspace,
            requests,
            by: USER.to_owned(),
        };
        Arc::new(EnqueueBatch::prepare(&call).unwrap())
    }

    #[tokio::test]
    async fn large_params_in_another_order_are_compared_before_the_write() {
        let (store, f) = fixture().await;
        let t = f.workspace(1).await;
        let holder = f.enqueue_one(&t, with_fields(&t, 0..FIELDS)).await;
        let repeated = vec![
            with_fields(&t, 0..FIELDS),
            with_fields(&t, (0..FIELDS).rev()),
            with_fields(&t, 1..FIELDS),
        ];
        let ids: Vec<RequestId> = repeated.iter().map(|new| new.id).collect();
        let digests = compute(&store, &batch(&t, repeated)).await.unwrap();
        assert_eq!(digests.len(), 4);
        assert!(digests[&holder].is_some());
        assert_eq!(digests[&ids[0]], digests[&holder]);
        assert_eq!(digests[&ids[1]], digests[&holder]);
        assert_ne!(digests[&ids[2]], digests[&holder]);
    }

    #[tokio::test]
    async fn writer_uses_the_digests_of_the_readers() {
        let (store, f) = fixture().await;
        let t = f.workspace(1).await;
        let holder = f.enqueue_one(&t, with_fields(&t, 0..FIELDS)).await;
        let other = with_fields(&t, 1..FIELDS);
        // Digests that claim equality show that the writer computes none.
        let claimed = JsonText::default().digest();
        let digests = KeyDigests::from([(holder, claimed), (other.id, claimed)]);
        let batch = batch(&t, vec![other]);
        let outcome = store
            .write("test", move |session| enqueue(session, &batch, &digests))
            .await
            .unwrap();
        let Effect::Commit(Enqueued::All(answers)) = outcome else {
            panic!("the call was rejected");
        };
        assert_eq!(answers[0].id, holder);
    }

    #[tokio::test]
    async fn conflict_at_the_end_of_a_batch_inserts_nothing() {
        const REQUESTS: usize = 500;
        let (store, f) = fixture().await;
        let t = f.workspace(1).await;
        f.enqueue_one(&t, with_fields(&t, 0..3)).await;
        let mut requests: Vec<NewRequest> = (0..REQUESTS).map(|_| new_request(&t)).collect();
        requests.push(with_fields(&t, 1..3));
        let batch = batch(&t, requests);
        let (rejected, cost) = store
            .write("test", move |session| {
                let outcome = enqueue(session, &batch, &KeyDigests::new())?;
                Ok((matches!(outcome, Effect::Rollback(_)), session.cost()))
            })
            .await
            .unwrap();
        assert!(rejected);
        assert!(cost.statements < 20, "{cost:?}");
    }
}
