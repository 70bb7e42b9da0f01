//! Two processes in exclusive mode: the standby takes over after a kill, and at once after a stop.

use crate::database;
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program, is_of};
use crate::temporal::Namespace;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_testkit::Process;
use serde_json::json;
use std::time::Duration;

/// Default of `dispatch.lock_at_most_for`.
const LOCK: Duration = Duration::from_secs(15);
/// The lock of the process that is stopped: a busy machine must not take as long to stop it and to dispatch.
const LONG_LOCK: Duration = Duration::from_secs(180);
/// Extra time after a kill; generous for a slow machine.
const MORE: Duration = Duration::from_secs(60);

/// Dispatches a request and returns the dispatching instance.
async fn dispatched_by(workspace: &OrderWorkspace) -> (RequestId, String) {
    let id = workspace.enqueue(json!({"do": "wait"})).await;
    workspace.dispatched(id).await;
    let by = workspace.actors_of(id, RequestStatus::Dispatched).await;
    (id, by[0].clone())
}

/// Time between the dispatch of `before` and `after`, by the database's clock.
async fn gap(workspace: &OrderWorkspace, before: RequestId, after: RequestId) -> Duration {
    let (before, after) = (workspace.get(before).await, workspace.get(after).await);
    let gap = after
        .dispatched_at
        .unwrap()
        .duration_since(before.dispatched_at.unwrap());
    gap.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_process_takes_over() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let program = Program::new(database.url(), namespace.address(), &namespace.name);
    let workspace = OrderWorkspace::new(database::store(database.url()), 1000).await;
    let lasting = program.clone().set("dispatch.lock_at_most_for", "180s");
    let mut first = lasting.start();
    let (_, by) = dispatched_by(&workspace).await;
    assert!(is_of(&first, &by), "{by}");
    let mut second = program.start();
    let mut last = None;
    for _ in 0..10 {
        let (id, by) = dispatched_by(&workspace).await;
        assert!(is_of(&first, &by), "two processes dispatch: {by}");
        last = Some(id);
    }

    program::stop(&mut first);
    let (next, by) = dispatched_by(&workspace).await;
    assert!(is_of(&second, &by), "{by}");
    let stopped = gap(&workspace, last.unwrap(), next).await;
    // An unreleased lock lasts for at least two thirds of its lease.
    assert!(
        stopped < LONG_LOCK / 2,
        "the lock was not released: {stopped:?}"
    );

    let third: Process = program.start();
    let (last, by) = dispatched_by(&workspace).await;
    assert!(is_of(&second, &by), "{by}");
    second.kill();
    let (next, by) = dispatched_by(&workspace).await;
    assert!(is_of(&third, &by), "{by}");
    let killed = gap(&workspace, last, next).await;
    assert!(killed <= LOCK + MORE, "{killed:?}");
    println!("taken over {stopped:?} after SIGTERM, {killed:?} after kill -9");
}
