//! Concurrent redrives lock in one order. Dropping the database checks that none deadlocked.

use crate::support;
use leasehold_store::request::{Redrive, RedriveMany, Redriven};
use leasehold_store::{Store, fresh_id};
use leasehold_store_conformance::factory::{OWNER, ok};
use leasehold_store_conformance::{Fixture, clock};
use leasehold_testkit::sized;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_redrives_of_the_same_requests_never_deadlock() {
    let clock = clock();
    let database = support::database().await;
    let store: Arc<dyn Store> = Arc::new(support::store(&database, clock.clone()));
    let f = Fixture::new(Arc::clone(&store), clock);
    for _ in 0..sized(2, 6) {
        let t = f.workspace(1_000).await;
        let n = sized(200, 600);
        let requests = f.enqueue(&t, n).await;
        for request in &requests {
            f.cancel(t.workspace, *request).await;
        }
        let many = (0..3).map(|_| {
            let (store, workspace) = (Arc::clone(&store), t.workspace);
            tokio::spawn(async move {
                let redrive = RedriveMany {
                    workspace,
                    reason: None,
                    definition: None,
                    limit: 1_000,
                    max_bytes: u64::MAX,
                    by: OWNER.to_owned(),
                };
                ok(store.request_redrive_many(&redrive).await).len()
            })
        });
        let many: Vec<_> = many.collect();
        let each = requests.iter().rev().map(|failed| {
            let (store, workspace, failed) = (Arc::clone(&store), t.workspace, *failed);
            tokio::spawn(async move {
                let redrive = Redrive {
                    workspace,
                    failed,
                    id: fresh_id(),
                    by: OWNER.to_owned(),
                };
                let redriven = ok(store.request_redrive(&redrive).await);
                usize::from(matches!(redriven, Redriven::Enqueued(_)))
            })
        });
        let each: Vec<_> = each.collect();
        let mut redriven = 0;
        for task in many.into_iter().chain(each) {
            redriven += task.await.unwrap();
        }
        assert_eq!(redriven, n, "each is redriven once");
    }
}
