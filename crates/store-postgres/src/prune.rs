//! Pruning in PostgreSQL.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_store::Result;
use leasehold_store::prune::{Prune, Pruned};

/// Requests that go in one transaction, since claims wait for it.
const AT_ONCE: u32 = 500;

pub(crate) async fn prune(store: &PostgresStore, prune: &Prune) -> Result<Pruned> {
    let limit = prune.limit.min(AT_ONCE).cast_signed();
    let row = store
        .one(
            "prune",
            sql!("prune/requests"),
            &[&prune.completed_before, &prune.failed_before, &limit],
        )
        .await?;
    let keys = store
        .execute(
            "prune",
            sql!("prune/keys"),
            &[&store.given_now(), &i64::from(limit)],
        )
        .await?;
    Ok(Pruned {
        requests: row::count(&row, "pruned")?,
        keys,
    })
}
