//! What somebody could do by hand in the database, and what the database itself says to it.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, FailureReason, Plan, RequestStatus, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{
    ClaimedRequest, ExecutionOrigin, Rejected, ReleaseKind, RequestFilter,
};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testkit::TestDatabase;
use std::sync::Arc;
use support::raw::{connect, refused_by};
use tokio_postgres::Client;
use uuid::Uuid;

struct Hand {
    fixture: Fixture,
    client: Client,
    database: TestDatabase,
}

async fn hand() -> Hand {
    let clock = clock();
    let database = support::database().await;
    let store = support::store(&database, clock.clone());
    let client = connect(&database).await;
    Hand {
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

async fn in_use(hand: &Hand, workspace: WorkspaceId) -> u32 {
    hand.fixture
        .store
        .workspace_slots(workspace)
        .await
        .unwrap()
        .unwrap()
        .in_use
}

async fn set_limit(hand: &Hand, site: &TestWorkspace, limit: u32) {
    let change = WorkspaceChange {
        limit_override: Some(Some(limit)),
        ..Default::default()
    };
    hand.fixture
        .store
        .workspace_update(site.workspace, &change)
        .await
        .unwrap();
}

#[tokio::test]
async fn one_execution_too_many_is_refused() {
    let hand = hand().await;
    let site = hand.fixture.site(2).await;
    let waiting = hand.fixture.enqueue(&site, 3).await;
    assert_eq!(run(&hand.client, waiting[0].0).await.unwrap(), 1);
    assert_eq!(run(&hand.client, waiting[1].0).await.unwrap(), 1);
    assert_eq!(
        refused_by(run(&hand.client, waiting[2].0).await),
        "workspace_limit"
    );
    assert_eq!(in_use(&hand, site.workspace).await, 2);
}

#[tokio::test]
async fn an_ended_execution_does_not_run_again_without_room() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
    let ended = hand.fixture.running(&site).await;
    hand.fixture
        .finish(ended.execution, ExecutionEnd::Completed)
        .await;
    let again = include_str!("sql/execution_run_again.sql");
    let holder = hand.fixture.running(&site).await;
    let outcome = hand.client.execute(again, &[&ended.execution.0]).await;
    assert_eq!(refused_by(outcome), "workspace_limit");
    hand.fixture
        .finish(holder.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(
        hand.client
            .execute(again, &[&ended.execution.0])
            .await
            .unwrap(),
        1
    );
    assert_eq!(in_use(&hand, site.workspace).await, 1);
}

#[tokio::test]
async fn an_execution_runs_in_the_workspace_of_its_request_and_stays_there() {
    let hand = hand().await;
    let one = hand.fixture.site(1).await;
    let waiting = hand.fixture.enqueue(&one, 1).await[0];
    let other = hand.fixture.site(5).await;
    let elsewhere = include_str!("sql/execution_run_elsewhere.sql");
    let outcome = hand
        .client
        .execute(
            elsewhere,
            &[&Uuid::now_v7(), &waiting.0, &other.workspace.0],
        )
        .await;
    assert_eq!(refused_by(outcome), "execution_request");
    hand.fixture.drain(5).await;
    let running = hand.fixture.running(&other).await;
    let outcome = hand
        .client
        .execute(
            include_str!("sql/execution_move.sql"),
            &[&running.execution.0, &one.workspace.0],
        )
        .await;
    assert_eq!(refused_by(outcome), "execution_identity");
}

/// What a caller calls its own tables does not matter, and a turn row cannot be given another limit.
#[tokio::test]
async fn the_limit_is_the_workspaces_own_and_no_other_table_stands_in_for_it() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
    let waiting = hand.fixture.enqueue(&site, 3).await;
    let outcome = hand
        .client
        .execute(
            include_str!("sql/turn_raise_limit.sql"),
            &[&site.workspace.0],
        )
        .await;
    assert_eq!(refused_by(outcome), "workspace_turn_limit");
    hand.client
        .batch_execute(include_str!("sql/turn_shadow.sql"))
        .await
        .unwrap();
    run(&hand.client, waiting[0].0).await.unwrap();
    assert_eq!(
        refused_by(run(&hand.client, waiting[1].0).await),
        "workspace_limit"
    );
    assert_eq!(in_use(&hand, site.workspace).await, 1);
}

#[tokio::test]
async fn the_shortcuts_of_the_count_cannot_be_turned_against_it() {
    let hand = hand().await;
    let site = hand.fixture.site(3).await;
    for _ in 0..3 {
        hand.fixture.running(&site).await;
    }
    for sql in [
        include_str!("sql/turn_forget_held.sql"),
        include_str!("sql/turn_skip_running.sql"),
    ] {
        let outcome = hand.client.execute(sql, &[&site.workspace.0]).await;
        assert_eq!(refused_by(outcome), "workspace_limit");
    }
    let second = include_str!("sql/turn_second.sql");
    let outcome = hand.client.execute(second, &[&site.workspace.0]).await;
    assert_eq!(refused_by(outcome), "workspace_turn_once");
}

/// Two transactions that each see one free slot, at every isolation level: one gets it.
#[tokio::test]
async fn the_last_slot_goes_to_one_of_two_transactions() {
    for isolation in ISOLATIONS {
        let hand = hand().await;
        let site = hand.fixture.site(3).await;
        hand.fixture.running(&site).await;
        hand.fixture.running(&site).await;
        let waiting = hand.fixture.enqueue(&site, 2).await;
        let first = connect(&hand.database).await;
        let second = connect(&hand.database).await;
        let begin = include_str!("sql/begin_and_look.sql").replace("{isolation}", isolation);
        first.batch_execute(&begin).await.unwrap();
        second.batch_execute(&begin).await.unwrap();
        run(&first, waiting[0].0).await.unwrap();
        let late = tokio::spawn(async move { run(&second, waiting[1].0).await });
        let blocked = include_str!("sql/someone_waits.sql");
        let waits = leasehold_testkit::eventually(std::time::Duration::from_secs(10), || async {
            hand.client
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
        assert_eq!(in_use(&hand, site.workspace).await, 3, "{isolation}");
    }
}

/// The holders sit anywhere in the order of admission; what counts is how many they are.
#[tokio::test]
async fn lowering_twenty_to_five_admits_nothing_until_four_are_left() {
    let hand = hand().await;
    let site = hand.fixture.site(20).await;
    hand.fixture.enqueue(&site, 40).await;
    let running = hand.fixture.drain(20).await.requests;
    assert_eq!(running.len(), 20);
    for (position, request) in running.iter().enumerate() {
        if ![0, 3, 7, 12, 15].contains(&position) {
            hand.fixture
                .finish(request.execution, ExecutionEnd::Completed)
                .await;
        }
    }
    set_limit(&hand, &site, 5).await;
    assert_eq!(hand.fixture.drain(10).await.requests, []);
    let filter = RequestFilter {
        workspace: Some(site.workspace),
        status: Some(RequestStatus::Pending),
        ..RequestFilter::default()
    };
    let waiting = hand
        .fixture
        .store
        .request_list(&filter, Page::first(1))
        .await
        .unwrap()[0]
        .id;
    let refused = refused_by(run(&hand.client, waiting.0).await);
    assert_eq!(refused, "workspace_limit");
    // A refusal is told before its locks are gone; whoever asks again is answered after.
    hand.client.batch_execute("").await.unwrap();
    hand.fixture
        .finish(running[7].execution, ExecutionEnd::Failed)
        .await;
    assert_eq!(hand.fixture.drain(10).await.requests.len(), 1);
    assert_eq!(in_use(&hand, site.workspace).await, 5);
}

#[tokio::test]
async fn every_other_transition_is_refused() {
    use RequestStatus as S;
    let hand = hand().await;
    let site = hand.fixture.site(9).await;
    let failed = hand.fixture.failed(&site).await.id;
    let completed = hand.fixture.completed(&site).await.id;
    let dispatched = hand.fixture.running(&site).await.id;
    let claimed = hand.fixture.claimed(&site).await.id;
    let pending = hand.fixture.enqueue(&site, 1).await[0];
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
            let outcome = hand.client.execute(set, &[&id.0, &to.as_str()]).await;
            assert_eq!(refused_by(outcome), "request_transition", "{from} → {to}");
        }
    }
    let exhausted = include_str!("sql/request_fail_pending.sql");
    let outcome = hand.client.execute(exhausted, &[&pending.0]).await;
    assert_eq!(refused_by(outcome), "request_transition");
}

#[tokio::test]
async fn what_is_immutable_or_kept_stays() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
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
            refused_by(hand.client.execute(sql, &[&site.workspace.0]).await),
            name
        );
    }
}

#[tokio::test]
async fn a_plan_changed_by_hand_is_in_force_at_once_and_plans_mean_what_the_core_says() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
    hand.fixture.enqueue(&site, 30).await;
    let sql = include_str!("sql/workspace_set_plan.sql");
    for plan in Plan::ALL {
        hand.client
            .execute(sql, &[&site.workspace.0, &plan.as_str()])
            .await
            .unwrap();
        hand.fixture.drain(50).await;
        assert_eq!(
            in_use(&hand, site.workspace).await,
            plan.max_concurrent_executions()
        );
    }
}

#[tokio::test]
async fn params_too_deep_to_read_end_their_request_and_no_other() {
    let hand = hand().await;
    let site = hand.fixture.site(5).await;
    let asked = hand.fixture.enqueue(&site, 3).await;
    let sql = include_str!("sql/request_deep_params.sql");
    hand.client.execute(sql, &[&asked[1].0]).await.unwrap();
    let claimed = hand.fixture.drain(10).await;
    assert_eq!(
        claimed.requests.iter().map(|r| r.id).collect::<Vec<_>>(),
        [asked[0], asked[2]]
    );
    let rejected = Rejected {
        request: asked[1],
        workspace: site.workspace,
        reason: FailureReason::DispatchExhausted,
    };
    assert_eq!(claimed.rejected, [rejected]);
    assert_eq!(in_use(&hand, site.workspace).await, 2);
}

#[tokio::test]
async fn a_kept_execution_that_vanished_or_ended_is_replaced() {
    for sql in [
        include_str!("sql/execution_remove.sql"),
        include_str!("sql/execution_end.sql"),
    ] {
        let hand = hand().await;
        let site = hand.fixture.site(1).await;
        let first = hand.fixture.claimed(&site).await;
        hand.fixture.release(&first, ReleaseKind::Unknown, 0).await;
        hand.client
            .execute(sql, &[&first.execution.0])
            .await
            .unwrap();
        let claimed = hand.fixture.drain(5).await;
        let orphaned = claimed.orphaned.iter().map(|o| (o.request, o.execution));
        assert_eq!(orphaned.collect::<Vec<_>>(), [(first.id, first.execution)]);
        let again = claimed.requests;
        assert_eq!((again.len(), again[0].id), (1, first.id));
        assert_eq!(again[0].origin, ExecutionOrigin::Replaced);
        assert_ne!(again[0].execution, first.execution);
    }
}

/// Ending executions by hand writes no events; the repair finds what they would have told.
#[tokio::test]
async fn a_rebuild_sets_right_what_hands_did() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
    let first = hand.fixture.running(&site).await;
    let waiting = hand.fixture.enqueue(&site, 1).await;
    hand.fixture.drain(5).await;
    hand.client
        .execute(include_str!("sql/execution_end.sql"), &[&first.execution.0])
        .await
        .unwrap();
    assert_eq!(hand.fixture.drain(5).await.requests, []);
    hand.client
        .batch_execute(include_str!("sql/rebuild.sql"))
        .await
        .unwrap();
    let claimed = hand.fixture.drain(5).await.requests;
    assert_eq!(claimed.iter().map(|r| r.id).collect::<Vec<_>>(), waiting);
    let counts = hand
        .fixture
        .store
        .request_counts(site.workspace)
        .await
        .unwrap();
    assert_eq!(
        (counts.pending, counts.claimed, counts.dispatched),
        (0, 1, 1)
    );
}

/// As after a restored dump or replication into another cluster: numbers of transactions and admissions mean nothing.
#[tokio::test]
async fn rows_that_came_from_another_cluster_are_counted_anew() {
    let hand = hand().await;
    let site = hand.fixture.site(2).await;
    hand.fixture.running(&site).await;
    hand.fixture.enqueue(&site, 5).await;
    hand.client
        .batch_execute(include_str!("sql/another_cluster.sql"))
        .await
        .unwrap();
    let claimed = hand.fixture.drain(10).await.requests;
    assert_eq!(claimed.len(), 1);
    hand.fixture.enqueue(&site, 1).await;
    hand.fixture
        .finish(claimed[0].execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(hand.fixture.drain(10).await.requests.len(), 1);
    let counts = hand
        .fixture
        .store
        .request_counts(site.workspace)
        .await
        .unwrap();
    assert_eq!(
        (counts.pending, counts.dispatched, counts.completed),
        (4, 1, 1)
    );
}

/// Somebody left a transaction open that changed a workspace: that one waits, the others do not.
#[tokio::test]
async fn a_forgotten_transaction_on_one_workspace_holds_up_no_other() {
    let hand = hand().await;
    let stuck = hand.fixture.site(5).await;
    let other = hand.fixture.site(5).await;
    hand.client.batch_execute("BEGIN").await.unwrap();
    let sql = include_str!("sql/workspace_set_plan.sql");
    hand.client
        .execute(sql, &[&stuck.workspace.0, &"ENTERPRISE"])
        .await
        .unwrap();
    let waiting = hand.fixture.enqueue(&stuck, 2).await;
    let asked = hand.fixture.enqueue(&other, 2).await;
    let ids = |claimed: Vec<ClaimedRequest>| claimed.iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(ids(hand.fixture.drain(10).await.requests), asked);
    let counts = hand
        .fixture
        .store
        .request_counts(stuck.workspace)
        .await
        .unwrap();
    assert_eq!(counts.pending, 2, "counted although not folded");
    hand.client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ids(hand.fixture.drain(10).await.requests), waiting);
}

/// Recovery of the claim commits while the end is being written: the end must not be taken for an old one.
#[tokio::test]
async fn an_end_that_races_recovery_ends_the_execution() {
    let hand = hand().await;
    let site = hand.fixture.site(1).await;
    let claimed = hand.fixture.claimed(&site).await;
    let recovering = connect(&hand.database).await;
    recovering.batch_execute("BEGIN").await.unwrap();
    let recover = include_str!("sql/request_recover.sql");
    recovering.execute(recover, &[&claimed.id.0]).await.unwrap();
    let store = hand.fixture.store.clone();
    let finish = ExecutionFinish {
        execution: claimed.execution,
        end: ExecutionEnd::Completed,
        error: None,
    };
    let ending = tokio::spawn(async move { store.execution_finish("x", &[finish]).await });
    let blocked = include_str!("sql/someone_waits.sql");
    let waits = leasehold_testkit::eventually(std::time::Duration::from_secs(10), || async {
        hand.client
            .query_one(blocked, &[])
            .await
            .unwrap()
            .get::<_, i64>("waiting")
            > 0
    })
    .await;
    assert!(waits, "the end waits for the recovery");
    recovering.batch_execute("COMMIT").await.unwrap();
    let ended = ExecutionFinished::Finished {
        request: claimed.id,
        status: RequestStatus::Completed,
        reason: None,
    };
    assert_eq!(ending.await.unwrap().unwrap(), [ended]);
    assert_eq!(in_use(&hand, site.workspace).await, 0);
}
