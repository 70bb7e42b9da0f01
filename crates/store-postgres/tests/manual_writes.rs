//! Manual writes to the database: the constraints and triggers reject what would break an invariant.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, Plan, RequestStatus, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{ClaimedRequest, ExecutionOrigin, ReleaseKind, RequestFilter};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testkit::TestDatabase;
use std::sync::Arc;
use support::raw::{connect, rejected_by};
use tokio_postgres::Client;
use uuid::Uuid;

struct TestEnv {
    fixture: Fixture,
    client: Client,
    database: TestDatabase,
}

async fn env() -> TestEnv {
    let clock = clock();
    let database = support::database().await;
    let store = support::store(&database, clock.clone());
    let client = connect(&database).await;
    TestEnv {
        fixture: Fixture::new(Arc::new(store), clock),
        client,
        database,
    }
}

const RUN: &str = include_str!("sql/execution_run.sql");
const ISOLATIONS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Inserts a RUNNING execution for a waiting request.
async fn run(client: &Client, request: Uuid) -> Result<u64, tokio_postgres::Error> {
    client.execute(RUN, &[&Uuid::now_v7(), &request]).await
}

async fn in_use(env: &TestEnv, workspace: WorkspaceId) -> u32 {
    env.fixture
        .store
        .workspace_slots(workspace)
        .await
        .unwrap()
        .unwrap()
        .in_use
}

async fn set_limit(env: &TestEnv, workspace: &TestWorkspace, limit: u32) {
    let change = WorkspaceChange {
        limit_override: Some(Some(limit)),
        ..Default::default()
    };
    env.fixture
        .store
        .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
        .await
        .unwrap();
}

#[tokio::test]
async fn execution_over_the_limit_is_rejected() {
    let env = env().await;
    let workspace = env.fixture.workspace(2).await;
    let waiting = env.fixture.enqueue(&workspace, 3).await;
    assert_eq!(run(&env.client, waiting[0].0).await.unwrap(), 1);
    assert_eq!(run(&env.client, waiting[1].0).await.unwrap(), 1);
    assert_eq!(
        rejected_by(run(&env.client, waiting[2].0).await),
        "workspace_limit"
    );
    assert_eq!(in_use(&env, workspace.workspace).await, 2);
}

#[tokio::test]
async fn ended_execution_cannot_run_again_without_free_slot() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    let ended = env.fixture.enqueue_running(&workspace).await;
    env.fixture
        .finish(ended.execution, ExecutionEnd::Completed)
        .await;
    let again = include_str!("sql/execution_run_again.sql");
    let holder = env.fixture.enqueue_running(&workspace).await;
    let outcome = env.client.execute(again, &[&ended.execution.0]).await;
    assert_eq!(rejected_by(outcome), "workspace_limit");
    env.fixture
        .finish(holder.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(
        env.client
            .execute(again, &[&ended.execution.0])
            .await
            .unwrap(),
        1
    );
    assert_eq!(in_use(&env, workspace.workspace).await, 1);
}

#[tokio::test]
async fn execution_cannot_leave_the_workspace_of_its_request() {
    let env = env().await;
    let one = env.fixture.workspace(1).await;
    let waiting = env.fixture.enqueue(&one, 1).await[0];
    let other = env.fixture.workspace(5).await;
    let elsewhere = include_str!("sql/execution_run_elsewhere.sql");
    let outcome = env
        .client
        .execute(
            elsewhere,
            &[&Uuid::now_v7(), &waiting.0, &other.workspace.0],
        )
        .await;
    assert_eq!(rejected_by(outcome), "execution_request");
    env.fixture.drain(5).await;
    let running = env.fixture.enqueue_running(&other).await;
    let outcome = env
        .client
        .execute(
            include_str!("sql/execution_move.sql"),
            &[&running.execution.0, &one.workspace.0],
        )
        .await;
    assert_eq!(rejected_by(outcome), "execution_identity");
}

/// Temporary tables cannot shadow the real ones, and a turn row cannot have another limit than its workspace.
#[tokio::test]
async fn limit_cannot_be_changed_in_turn_row_or_shadowed_by_temp_table() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    let waiting = env.fixture.enqueue(&workspace, 3).await;
    let outcome = env
        .client
        .execute(
            include_str!("sql/turn_raise_limit.sql"),
            &[&workspace.workspace.0],
        )
        .await;
    assert_eq!(rejected_by(outcome), "workspace_turn_limit");
    env.client
        .batch_execute(include_str!("sql/turn_shadow.sql"))
        .await
        .unwrap();
    run(&env.client, waiting[0].0).await.unwrap();
    assert_eq!(
        rejected_by(run(&env.client, waiting[1].0).await),
        "workspace_limit"
    );
    assert_eq!(in_use(&env, workspace.workspace).await, 1);
}

#[tokio::test]
async fn count_shortcuts_cannot_hide_running_executions() {
    let env = env().await;
    let workspace = env.fixture.workspace(3).await;
    for _ in 0..3 {
        env.fixture.enqueue_running(&workspace).await;
    }
    for sql in [
        include_str!("sql/turn_forget_held.sql"),
        include_str!("sql/turn_skip_running.sql"),
    ] {
        let outcome = env.client.execute(sql, &[&workspace.workspace.0]).await;
        assert_eq!(rejected_by(outcome), "workspace_limit");
    }
    let second = include_str!("sql/turn_second.sql");
    let outcome = env.client.execute(second, &[&workspace.workspace.0]).await;
    assert_eq!(rejected_by(outcome), "workspace_turn_once");
}

/// Two transactions that each see one free slot, at every isolation level: one gets it.
#[tokio::test]
async fn last_slot_goes_to_one_of_two_transactions() {
    for isolation in ISOLATIONS {
        let env = env().await;
        let workspace = env.fixture.workspace(3).await;
        env.fixture.enqueue_running(&workspace).await;
        env.fixture.enqueue_running(&workspace).await;
        let waiting = env.fixture.enqueue(&workspace, 2).await;
        let first = connect(&env.database).await;
        let second = connect(&env.database).await;
        let begin = include_str!("sql/begin_with_snapshot.sql").replace("{isolation}", isolation);
        first.batch_execute(&begin).await.unwrap();
        second.batch_execute(&begin).await.unwrap();
        run(&first, waiting[0].0).await.unwrap();
        let late = tokio::spawn(async move { run(&second, waiting[1].0).await });
        let blocked = include_str!("sql/lock_waits.sql");
        let waits = leasehold_testkit::eventually(std::time::Duration::from_secs(60), || async {
            env.client
                .query_one(blocked, &[])
                .await
                .unwrap()
                .get::<_, i64>("waiting")
                > 0
        })
        .await;
        assert!(
            waits,
            "the second transaction waits for the first ({isolation})"
        );
        first.batch_execute("COMMIT").await.unwrap();
        assert!(late.await.unwrap().is_err(), "{isolation}");
        assert_eq!(in_use(&env, workspace.workspace).await, 3, "{isolation}");
    }
}

/// The running executions are anywhere in the order of admission; only their number counts.
#[tokio::test]
async fn lowered_limit_admits_nothing_until_a_slot_is_free() {
    let env = env().await;
    let workspace = env.fixture.workspace(20).await;
    env.fixture.enqueue(&workspace, 40).await;
    let running = env.fixture.drain(20).await.requests;
    assert_eq!(running.len(), 20);
    for (position, request) in running.iter().enumerate() {
        if ![0, 3, 7, 12, 15].contains(&position) {
            env.fixture
                .finish(request.execution, ExecutionEnd::Completed)
                .await;
        }
    }
    set_limit(&env, &workspace, 5).await;
    assert_eq!(env.fixture.drain(10).await.requests, []);
    let filter = RequestFilter {
        workspace: Some(workspace.workspace),
        status: Some(RequestStatus::Pending),
        ..RequestFilter::default()
    };
    let waiting = env
        .fixture
        .store
        .request_list(&filter, Page::first(1))
        .await
        .unwrap()[0]
        .id;
    let refused = rejected_by(run(&env.client, waiting.0).await);
    assert_eq!(refused, "workspace_limit");
    // The error arrives before the locks are released; the next answer arrives after.
    env.client.batch_execute("").await.unwrap();
    env.fixture
        .finish(running[7].execution, ExecutionEnd::Failed)
        .await;
    assert_eq!(env.fixture.drain(10).await.requests.len(), 1);
    assert_eq!(in_use(&env, workspace.workspace).await, 5);
}

#[tokio::test]
async fn invalid_transition_is_rejected() {
    use RequestStatus as S;
    let env = env().await;
    let workspace = env.fixture.workspace(9).await;
    let failed = env.fixture.enqueue_failed(&workspace).await.id;
    let completed = env.fixture.enqueue_completed(&workspace).await.id;
    let dispatched = env.fixture.enqueue_running(&workspace).await.id;
    let claimed = env.fixture.enqueue_claimed(&workspace).await.id;
    let pending = env.fixture.enqueue(&workspace, 1).await[0];
    let set = include_str!("sql/request_set_status.sql");
    for (from, id) in [
        (S::Pending, pending),
        (S::Claimed, claimed),
        (S::Dispatched, dispatched),
        (S::Completed, completed),
        (S::Failed, failed),
    ] {
        for to in S::ALL
            .into_iter()
            .filter(|to| *to != from && !from.may_become(*to))
        {
            let outcome = env.client.execute(set, &[&id.0, &to.as_str()]).await;
            assert_eq!(rejected_by(outcome), "request_transition", "{from} → {to}");
        }
    }
    let exhausted = include_str!("sql/request_fail_pending.sql");
    let outcome = env.client.execute(exhausted, &[&pending.0]).await;
    assert_eq!(rejected_by(outcome), "request_transition");
}

#[tokio::test]
async fn immutable_and_permanent_rows_cannot_be_changed() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    for (sql, name) in [
        (
            include_str!("sql/version_change.sql"),
            "workflow_definition_version_is_immutable",
        ),
        (
            include_str!("sql/workspace_remove.sql"),
            "workspace_is_kept",
        ),
        (
            include_str!("sql/turn_remove.sql"),
            "workspace_turn_is_kept",
        ),
    ] {
        assert_eq!(
            rejected_by(env.client.execute(sql, &[&workspace.workspace.0]).await),
            name
        );
    }
}

#[tokio::test]
async fn manual_plan_change_applies_at_once_with_the_cores_limits() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    env.fixture.enqueue(&workspace, 30).await;
    let sql = include_str!("sql/workspace_set_plan.sql");
    for plan in Plan::ALL {
        env.client
            .execute(sql, &[&workspace.workspace.0, &plan.as_str()])
            .await
            .unwrap();
        env.fixture.drain(50).await;
        assert_eq!(
            in_use(&env, workspace.workspace).await,
            plan.max_concurrent_executions()
        );
    }
}

#[tokio::test]
async fn unreadable_params_are_claimed_as_such() {
    let env = env().await;
    let workspace = env.fixture.workspace(5).await;
    let asked = env.fixture.enqueue(&workspace, 3).await;
    let sql = include_str!("sql/request_deep_params.sql");
    env.client.execute(sql, &[&asked[1].0]).await.unwrap();
    let claimed = env.fixture.drain(10).await;
    let unreadable = claimed
        .requests
        .iter()
        .map(|r| (r.id, r.unreadable.is_some()));
    let expected = [(asked[0], false), (asked[1], true), (asked[2], false)];
    assert_eq!(unreadable.collect::<Vec<_>>(), expected);
    assert_eq!(claimed.rejected, []);
    assert_eq!(in_use(&env, workspace.workspace).await, 3);
}

#[tokio::test]
async fn deleted_or_ended_kept_execution_is_replaced() {
    for sql in [
        include_str!("sql/execution_remove.sql"),
        include_str!("sql/execution_end.sql"),
    ] {
        let env = env().await;
        let workspace = env.fixture.workspace(1).await;
        let first = env.fixture.enqueue_claimed(&workspace).await;
        env.fixture.release(&first, ReleaseKind::Unknown, 0).await;
        env.client
            .execute(sql, &[&first.execution.0])
            .await
            .unwrap();
        let claimed = env.fixture.drain(5).await;
        let orphaned = claimed.orphaned.iter().map(|o| (o.request, o.execution));
        assert_eq!(orphaned.collect::<Vec<_>>(), [(first.id, first.execution)]);
        let again = claimed.requests;
        assert_eq!((again.len(), again[0].id), (1, first.id));
        assert_eq!(again[0].origin, ExecutionOrigin::Replaced);
        assert_ne!(again[0].execution, first.execution);
    }
}

/// Ending executions manually writes no events; the rebuild does not need them.
#[tokio::test]
async fn rebuild_repairs_manual_changes() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    let first = env.fixture.enqueue_running(&workspace).await;
    let waiting = env.fixture.enqueue(&workspace, 1).await;
    env.fixture.drain(5).await;
    env.client
        .execute(include_str!("sql/execution_end.sql"), &[&first.execution.0])
        .await
        .unwrap();
    assert_eq!(env.fixture.drain(5).await.requests, []);
    env.client
        .batch_execute(include_str!("sql/rebuild.sql"))
        .await
        .unwrap();
    let claimed = env.fixture.drain(5).await.requests;
    assert_eq!(claimed.iter().map(|r| r.id).collect::<Vec<_>>(), waiting);
    let counts = env
        .fixture
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap();
    assert_eq!(
        (counts.pending, counts.claimed, counts.dispatched),
        (0, 1, 1)
    );
}

/// An open transaction changed a workspace: claims skip that workspace and serve the others.
#[tokio::test]
async fn open_transaction_on_one_workspace_does_not_block_others() {
    let env = env().await;
    let stuck = env.fixture.workspace(5).await;
    let other = env.fixture.workspace(5).await;
    env.client.batch_execute("BEGIN").await.unwrap();
    let sql = include_str!("sql/workspace_set_plan.sql");
    env.client
        .execute(sql, &[&stuck.workspace.0, &"ENTERPRISE"])
        .await
        .unwrap();
    let waiting = env.fixture.enqueue(&stuck, 2).await;
    let asked = env.fixture.enqueue(&other, 2).await;
    let ids = |claimed: Vec<ClaimedRequest>| claimed.iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(ids(env.fixture.drain(10).await.requests), asked);
    let counts = env
        .fixture
        .store
        .request_counts(stuck.workspace)
        .await
        .unwrap();
    assert_eq!(counts.pending, 2, "counted although not folded");
    env.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ids(env.fixture.drain(10).await.requests), waiting);
}

/// Recovery of the claim holds the row while the end is written: the end does not wait, and counts afterwards.
#[tokio::test]
async fn finish_during_recovery_ends_the_execution() {
    let env = env().await;
    let workspace = env.fixture.workspace(1).await;
    let claimed = env.fixture.enqueue_claimed(&workspace).await;
    let recovering = connect(&env.database).await;
    recovering.batch_execute("BEGIN").await.unwrap();
    let recover = include_str!("sql/request_recover.sql");
    recovering.execute(recover, &[&claimed.id.0]).await.unwrap();
    let store = env.fixture.store.clone();
    let finish = ExecutionFinish {
        execution: claimed.execution,
        end: ExecutionEnd::Completed,
        error: None,
    };
    let ends = [finish];
    let busy = store.execution_finish("x", &ends).await.unwrap();
    assert_eq!(busy, [ExecutionFinished::Busy]);
    recovering.batch_execute("COMMIT").await.unwrap();
    let ended = ExecutionFinished::Finished {
        request: claimed.id,
        status: RequestStatus::Completed,
        reason: None,
    };
    assert_eq!(store.execution_finish("x", &ends).await.unwrap(), [ended]);
    assert_eq!(in_use(&env, workspace.workspace).await, 0);
}
