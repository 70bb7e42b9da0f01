//! Pruning in PostgreSQL.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_store::Result;
use leasehold_store::prune::{Prune, Pruned};

pub(crate) async fn prune(store: &PostgresStore, prune: &Prune) -> Result<Pruned> {
    let limit = prune.limit.min(SWEEP_MAX_BATCH).cast_signed();
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
            &[&store.now(), &i64::from(limit)],
        )
        .await?;
    Ok(Pruned {
        requests: row::count(&row, "pruned")?,
        keys,
    })
}
