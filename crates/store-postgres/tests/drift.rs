//! Drift written manually into PostgreSQL: each kind is found and repaired, or skipped if the repair is not safe.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, RequestStatus};
use leasehold_store::drift::{Drift, DriftKind, DriftRepair, Repaired};
use leasehold_store_conformance::drift_check::{drifts, none};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, invariants};
use leasehold_testkit::TestDatabase;
use std::sync::Arc;
use std::time::Duration;
use support::pace::promptly_within;
use support::raw::connect;
use tokio_postgres::Client;
use uuid::Uuid;

struct TestEnv {
    f: Fixture,
    client: Client,
    _database: TestDatabase,
}

impl TestEnv {
    async fn new() -> Self {
        let clock = clock();
        let database = support::database().await;
        let store = support::store(&database, clock.clone());
        let client = connect(&database).await;
        Self {
            f: Fixture::new(Arc::new(store), clock),
            client,
            _database: database,
        }
    }

    /// Writes with triggers switched off, after folding all events.
    async fn plant(&self, sql: &str, id: Uuid) {
        self.f.store.request_promote_due().await.unwrap();
        let off = include_str!("sql/drift_triggers_off.sql");
        let on = include_str!("sql/drift_triggers_on.sql");
        self.client.batch_execute(off).await.unwrap();
        assert_eq!(self.client.execute(sql, &[&id]).await.unwrap(), 1);
        self.client.batch_execute(on).await.unwrap();
    }

    async fn repair(&self, drift: &Drift, ended: Option<ExecutionEnd>) -> Repaired {
        let repair = DriftRepair { drift, ended };
        self.f.store.drift_repair(&repair).await.unwrap()
    }

    /// Asserts that there is exactly one drift, of this kind, and returns it.
    async fn only(&self, kind: DriftKind, t: &TestWorkspace) -> Drift {
        let found = drifts(&*self.f.store, 10).await;
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].kind, found[0].workspace), (kind, t.workspace));
        found[0].clone()
    }

    /// Finds one drift of this kind, repairs it, and checks that a second repair has nothing to do.
    async fn found_and_repaired(&self, kind: DriftKind, t: &TestWorkspace) {
        let drift = self.only(kind, t).await;
        assert_eq!(self.repair(&drift, None).await, Repaired::Repaired);
        none(&*self.f.store).await;
        assert_eq!(self.repair(&drift, None).await, Repaired::AlreadyConsistent);
        invariants::check(&self.f).await;
    }
}

#[tokio::test]
async fn workspace_wrongly_marked_full_is_served_after_repair() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    env.f.enqueue_running(&t).await;
    env.f.enqueue(&t, 1).await;
    env.plant(include_str!("sql/drift_full.sql"), t.workspace.0)
        .await;
    assert_eq!(env.f.claim(5).await.requests, []);
    env.found_and_repaired(DriftKind::SlotWithoutExecution, &t)
        .await;
    assert_eq!(env.f.claim(5).await.requests.len(), 1);
}

#[tokio::test]
async fn uncounted_executions_are_counted_after_repair() {
    for sql in [
        include_str!("sql/drift_held.sql"),
        include_str!("sql/drift_oldest.sql"),
    ] {
        let env = TestEnv::new().await;
        let t = env.f.workspace(2).await;
        env.f.enqueue_running(&t).await;
        env.plant(sql, t.workspace.0).await;
        env.found_and_repaired(DriftKind::ExecutionWithoutSlot, &t)
            .await;
        env.f.enqueue(&t, 3).await;
        assert_eq!(env.f.drain(5).await.requests.len(), 1);
        invariants::check(&env.f).await;
    }
}

#[tokio::test]
async fn wrong_limit_is_replaced_by_the_workspaces_limit() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    env.f.enqueue(&t, 9).await;
    env.plant(include_str!("sql/drift_limit.sql"), t.workspace.0)
        .await;
    env.found_and_repaired(DriftKind::Limit, &t).await;
    assert_eq!(env.f.drain(9).await.requests.len(), 2);
}

#[tokio::test]
async fn recount_is_exact_while_events_are_unfolded() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    env.f.enqueue_running(&t).await;
    env.f.enqueue_completed(&t).await;
    env.plant(include_str!("sql/drift_counts.sql"), t.workspace.0)
        .await;
    env.f.enqueue(&t, 2).await;
    env.found_and_repaired(DriftKind::Counts, &t).await;
}

#[tokio::test]
async fn open_request_gets_its_ended_or_deleted_execution_back() {
    for sql in [
        include_str!("sql/execution_end.sql"),
        include_str!("sql/execution_remove.sql"),
    ] {
        let env = TestEnv::new().await;
        let t = env.f.workspace(2).await;
        let running = env.f.enqueue_running(&t).await;
        env.plant(sql, running.execution.0).await;
        let drift = env.only(DriftKind::RequestWithoutExecution, &t).await;
        assert_eq!(drift.request, Some(running.id));
        assert_eq!(drift.execution, Some(running.execution));
        assert_eq!(env.repair(&drift, None).await, Repaired::Repaired);
        none(&*env.f.store).await;
        assert_eq!(env.repair(&drift, None).await, Repaired::AlreadyConsistent);
        assert_eq!(env.f.slots(t.workspace).await.in_use, 1);
        env.f
            .finish(running.execution, ExecutionEnd::Completed)
            .await;
        invariants::check(&env.f).await;
    }
}

#[tokio::test]
async fn full_workspace_restores_execution_before_slot_is_reused() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let running = env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/execution_end.sql"), running.execution.0)
        .await;
    let found = drifts(&*env.f.store, 10).await;
    let kinds: Vec<DriftKind> = found.iter().map(|drift| drift.kind).collect();
    let expected = [
        DriftKind::RequestWithoutExecution,
        DriftKind::SlotWithoutExecution,
    ];
    assert_eq!(kinds, expected, "{found:#?}");
    assert_eq!(env.repair(&found[0], None).await, Repaired::Repaired);
    assert_eq!(
        env.repair(&found[1], None).await,
        Repaired::AlreadyConsistent
    );
    none(&*env.f.store).await;
}

#[tokio::test]
async fn execution_is_not_restored_without_free_slot() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    let running = env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/execution_end.sql"), running.execution.0)
        .await;
    let drift = env.only(DriftKind::RequestWithoutExecution, &t).await;
    let set = leasehold_store::workspace::WorkspaceChange {
        limit_override: Some(Some(0)),
        ..Default::default()
    };
    env.f
        .store
        .workspace_update(t.workspace, &set, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    assert_eq!(env.repair(&drift, None).await, Repaired::Skipped);
    assert_eq!(env.f.slots(t.workspace).await.in_use, 0);
}

#[tokio::test]
async fn orphaned_execution_is_ended_only_with_known_end() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let running = env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/drift_completed.sql"), running.id.0)
        .await;
    let found = drifts(&*env.f.store, 10).await;
    let kinds: Vec<DriftKind> = found.iter().map(|drift| drift.kind).collect();
    assert_eq!(
        kinds,
        [DriftKind::SlotWithoutExecution, DriftKind::Counts],
        "{found:#?}"
    );
    assert_eq!(found[0].execution, Some(running.execution));
    assert_eq!(env.repair(&found[0], None).await, Repaired::Skipped);
    assert_eq!(env.f.slots(t.workspace).await.in_use, 1);
    let ended = Some(ExecutionEnd::Completed);
    assert_eq!(env.repair(&found[0], ended).await, Repaired::Repaired);
    assert_eq!(env.f.slots(t.workspace).await.in_use, 0);
    assert_eq!(env.repair(&found[1], None).await, Repaired::Repaired);
    none(&*env.f.store).await;
    let request = env
        .f
        .store
        .request_get(t.workspace, running.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(request.status, RequestStatus::Completed);
    env.f.enqueue_running(&t).await;
}

#[tokio::test]
async fn recount_of_a_locked_workspace_waits_for_nothing_and_delays_no_claims() {
    let env = TestEnv::new().await;
    let (t, other) = (env.f.workspace(2).await, env.f.workspace(10).await);
    env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/drift_counts.sql"), t.workspace.0)
        .await;
    let drift = env.only(DriftKind::Counts, &t).await;
    env.client.batch_execute("BEGIN").await.unwrap();
    let lock = include_str!("sql/turn_lock.sql");
    env.client.execute(lock, &[&t.workspace.0]).await.unwrap();
    let store = Arc::clone(&env.f.store);
    let wrong = drift.clone();
    let repair = async {
        let repair = DriftRepair {
            drift: &wrong,
            ended: None,
        };
        store.drift_repair(&repair).await
    };
    let claims = async {
        for _ in 0..5 {
            env.f.enqueue(&other, 1).await;
            assert_eq!(env.f.claim(5).await.requests.len(), 1);
        }
    };
    let both = async { tokio::join!(repair, claims) };
    let (repaired, ()) = promptly_within(Duration::from_secs(1), both).await;
    assert_eq!(repaired.unwrap(), Repaired::Repaired);
    none(&*env.f.store).await;
    env.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(env.repair(&drift, None).await, Repaired::AlreadyConsistent);
    invariants::check(&env.f).await;
}
