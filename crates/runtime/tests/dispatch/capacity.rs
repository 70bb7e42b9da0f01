//! A workspace at its limit: waiting requests count no attempts and are dispatched when a slot is free.

use crate::dispatch_env::{DispatchEnv, until};
use crate::fixtures::{cycle, parallel, round};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::RequestStatus;
use leasehold_testbed::BackendKind;
use tracing::Level;

scenarios! {
    both: request_at_capacity_waits_without_counting_attempts, parallel_dispatchers_never_exceed_the_limit;
}

async fn request_at_capacity_waits_without_counting_attempts(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(2).await;
    let ids = env.enqueue(&workspace, 5).await;
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 2);
    let field = format!("workspace={}", workspace.workspace);
    let expected = ["Workspace at capacity", &field, "active=2", "limit=2"];
    logs::assert_once(Level::INFO, &expected);
    crate::assert_event("Workspace at capacity");
    for _ in 0..5 {
        assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    }
    for id in &ids[2..] {
        let request = env.get(&workspace, *id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    }
    operator(&["terminate"], env.execution(&workspace, ids[0]).await);
    let reconciler = env.reconciler();
    until("the slot is free", async || {
        round(&reconciler).await;
        env.in_use(&workspace).await == 1
    })
    .await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(
        env.status(&workspace, ids[2]).await,
        RequestStatus::Dispatched
    );
    assert_eq!(env.status(&workspace, ids[3]).await, RequestStatus::Pending);
    // The workspace is at capacity again; that is summarised after a minute.
    logs::assert_once(Level::INFO, &["Workspace at capacity", &field]);
}

async fn parallel_dispatchers_never_exceed_the_limit(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(3).await;
    let ids = env.enqueue(&workspace, 20).await;
    let first = env.dispatcher_with(parallel("first"));
    let second = env.dispatcher_with(parallel("second"));
    let (one, two) = tokio::join!(cycle(&first), cycle(&second));
    assert_eq!(one.dispatched + two.dispatched, 3);
    assert_eq!(env.in_use(&workspace).await, 3);
    let mut executions = Vec::new();
    for id in ids {
        executions.extend(env.get(&workspace, id).await.execution);
    }
    env.assert_one_run_each(executions).await;
}
