//! Two processes of which one works: the other takes over when it is killed, and at once when it is stopped.

use crate::database;
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::Namespace;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_testkit::Process;
use serde_json::json;
use std::time::Duration;

/// `dispatch.lock_at_most_for`, which is left at its default here.
const LOCK: Duration = Duration::from_secs(15);
/// What is allowed on top when the holder was killed.
const MORE: Duration = Duration::from_secs(5);

/// Has a request dispatched, and says by whom.
async fn dispatched_by(site: &OrderWorkspace) -> (RequestId, String) {
    let id = site.enqueue(json!({"do": "wait"})).await;
    site.dispatched(id).await;
    let by = site.moved_by(id, RequestStatus::Dispatched).await;
    (id, by[0].clone())
}

/// How long after `before` was dispatched `after` was, by the database's clock.
async fn gap(site: &OrderWorkspace, before: RequestId, after: RequestId) -> Duration {
    let (before, after) = (site.get(before).await, site.get(after).await);
    let gap = after
        .dispatched_at
        .unwrap()
        .duration_since(before.dispatched_at.unwrap());
    gap.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_works_and_the_other_takes_over() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name);
    let site = OrderWorkspace::new(database::store(database.url()), 1000).await;
    let mut first = program.start();
    let (_, by) = dispatched_by(&site).await;
    assert!(is_of(&first, &by), "{by}");
    let mut second = program.start();
    let mut last = None;
    for _ in 0..10 {
        let (id, by) = dispatched_by(&site).await;
        assert!(is_of(&first, &by), "two of them work: {by}");
        last = Some(id);
    }

    program::stop(&mut first);
    let (next, by) = dispatched_by(&site).await;
    assert!(is_of(&second, &by), "{by}");
    let stopped = gap(&site, last.unwrap(), next).await;
    // A lock that was not given back lasts for two thirds of its time at least.
    assert!(
        stopped < LOCK / 2,
        "the lock was not given back: {stopped:?}"
    );

    let third: Process = program.start();
    let (last, by) = dispatched_by(&site).await;
    assert!(is_of(&second, &by), "{by}");
    second.kill();
    let (next, by) = dispatched_by(&site).await;
    assert!(is_of(&third, &by), "{by}");
    let killed = gap(&site, last, next).await;
    assert!(killed <= LOCK + MORE, "{killed:?}");
    println!("taken over {stopped:?} after SIGTERM, {killed:?} after kill -9");
}
