//! The recovery of expired claims while an old snapshot keeps the dead versions of all claims since.
#![allow(clippy::unwrap_used)]

use crate::explain;
use crate::support;
use leasehold_store::sql::expand;
use leasehold_store_postgres::INCLUDES;

use leasehold_store_conformance::{Fixture, clock};
use serde_json::Value;
use std::sync::Arc;
use support::raw::connect;

const CONFIGURE: &str = include_str!("../sql/session/configure.sql");
const RECOVER: &str = include_str!("../sql/request/recover.sql");
const PREPARE: &str = include_str!("sql/read_cost_prepare.sql");
const EXPLAIN: &str = include_str!("sql/read_cost_explain.sql");
const SNAPSHOT: &str = include_str!("sql/begin_with_snapshot.sql");

#[tokio::test(flavor = "multi_thread")]
async fn recovery_skips_the_dead_entries_of_earlier_claims() {
    let database = support::database().await;
    let clock = clock();
    let f = Fixture::new(Arc::new(support::store(&database, clock.clone())), clock);
    let t = f.workspace(2_000).await;
    f.enqueue(&t, 1_000).await;
    let old = connect(&database).await;
    let snapshot = SNAPSHOT.replace("{isolation}", "REPEATABLE READ");
    old.batch_execute(&snapshot).await.unwrap();
    let claimed = f.drain(1_000).await.requests;
    assert_eq!(claimed.len(), 1_000);
    let last = claimed
        .iter()
        .map(|one| one.lease_expires_at)
        .max()
        .unwrap();
    for one in claimed {
        f.dispatch(&one).await;
    }

    let client = connect(&database).await;
    client.execute(CONFIGURE, &[&false, &"2s"]).await.unwrap();
    let prepare = PREPARE
        .replace("{types}", "timestamptz, text, bigint, timestamptz")
        .replace("{statement}", &expand(RECOVER, INCLUDES));
    client.batch_execute(&prepare).await.unwrap();
    let cost = async |from: &str| {
        let arguments = format!(
            "'{}', 'me', 100, {from}",
            last + std::time::Duration::from_secs(60)
        );
        let explain = EXPLAIN.replace("{arguments}", &arguments);
        let answer: Value = client.query_one(&explain, &[]).await.unwrap().get(0);
        explain::read(&answer).buffers
    };
    let from_the_beginning = cost("NULL").await;
    let from_the_last_scan = cost(&format!("'{last}'")).await;
    // One heap page for every seventeen claims or so.
    assert!(from_the_beginning > 40, "{from_the_beginning}");
    assert!(from_the_last_scan < 20, "{from_the_last_scan}");
}
