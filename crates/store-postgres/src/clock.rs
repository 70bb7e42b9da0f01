//! The store's clock: PostgreSQL's, unless a test gave another.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::Timestamp;
use leasehold_store::Result;

pub(crate) async fn now(store: &PostgresStore) -> Result<Timestamp> {
    let row = store
        .one("now", sql!("clock/now"), &[&store.given_now()])
        .await?;
    row::time(&row, "now")
}
