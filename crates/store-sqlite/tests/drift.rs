//! Drift planted in a SQLite file: each kind is found and repaired, or skipped where a repair is not safe.
#![allow(clippy::unwrap_used)]

use leasehold_core::ExecutionEnd;
use leasehold_store::drift::{Drift, DriftKind, DriftRepair, Repaired};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Clock, SchemaStore};
use leasehold_store_conformance::drift_check::{drifts, none};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, invariants};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use std::sync::Arc;
use uuid::Uuid;

struct TestEnv {
    f: Fixture,
    client: Connection,
}

impl TestEnv {
    async fn new() -> Self {
        let clock = clock();
        let dir = leasehold_testkit::temp_dir();
        let file = dir.path().join("leasehold.db");
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = SqliteStore::open(&file, &options).unwrap();
        store.schema_migrate().await.unwrap();
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(dir),
            client: Connection::open(&file).unwrap(),
        }
    }

    fn plant(&self, sql: &str, id: impl Into<Uuid>) {
        let id: [u8; 16] = id.into().into_bytes();
        assert_eq!(self.client.execute(sql, [id]).unwrap(), 1);
    }

    async fn repair(&self, drift: &Drift, ended: Option<ExecutionEnd>) -> Repaired {
        let repair = DriftRepair { drift, ended };
        self.f.store.drift_repair(&repair).await.unwrap()
    }

    /// Returns the only drift and checks its kind.
    async fn only(&self, kind: DriftKind, t: &TestWorkspace) -> Drift {
        let found = drifts(&*self.f.store, 10).await;
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].kind, found[0].workspace), (kind, t.workspace));
        found[0].clone()
    }

    /// Finds one drift of this kind and repairs it; a second repair finds the store consistent.
    async fn assert_repaired(&self, kind: DriftKind, t: &TestWorkspace) {
        let drift = self.only(kind, t).await;
        assert_eq!(self.repair(&drift, None).await, Repaired::Repaired);
        none(&*self.f.store).await;
        assert_eq!(self.repair(&drift, None).await, Repaired::AlreadyConsistent);
        invariants::check(&self.f).await;
    }
}

#[tokio::test]
async fn workspace_wrongly_marked_full_is_repaired() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    env.f.enqueue_running(&t).await;
    env.f.enqueue(&t, 1).await;
    env.plant(include_str!("sql/drift_full.sql"), t.workspace);
    assert_eq!(env.f.claim(5).await.requests, []);
    env.assert_repaired(DriftKind::SlotWithoutExecution, &t)
        .await;
    assert_eq!(env.f.claim(5).await.requests.len(), 1);
}

#[tokio::test]
async fn gap_in_slot_numbers_is_repaired() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(9).await;
    env.f.enqueue_running(&t).await;
    let second = env.f.enqueue_running(&t).await;
    env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/drift_gap.sql"), second.execution);
    env.assert_repaired(DriftKind::SlotWithoutExecution, &t)
        .await;
    env.f.enqueue(&t, 9).await;
    assert_eq!(env.f.drain(9).await.requests.len(), 6);
    invariants::check(&env.f).await;
}

#[tokio::test]
async fn workspace_wrongly_marked_as_having_a_free_slot_is_repaired() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/drift_room.sql"), t.workspace);
    env.assert_repaired(DriftKind::ExecutionWithoutSlot, &t)
        .await;
}

#[tokio::test]
async fn wrong_limit_is_repaired() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(2).await;
    env.f.enqueue(&t, 9).await;
    env.plant(include_str!("sql/drift_limit.sql"), t.workspace);
    env.assert_repaired(DriftKind::Limit, &t).await;
    assert_eq!(env.f.drain(9).await.requests.len(), 2);
}

#[tokio::test]
async fn wrong_counts_are_repaired() {
    for sql in [
        include_str!("sql/drift_counts.sql"),
        include_str!("sql/drift_line.sql"),
    ] {
        let env = TestEnv::new().await;
        let t = env.f.workspace(5).await;
        env.f.enqueue_running(&t).await;
        env.f.enqueue_completed(&t).await;
        env.f.enqueue(&t, 2).await;
        env.plant(sql, t.workspace);
        env.assert_repaired(DriftKind::Counts, &t).await;
        assert_eq!(env.f.drain(9).await.requests.len(), 2);
    }
}

#[tokio::test]
async fn open_request_without_running_execution_gets_it_back_if_a_slot_is_free() {
    for sql in [
        include_str!("sql/drift_end.sql"),
        include_str!("sql/execution_delete.sql"),
    ] {
        let env = TestEnv::new().await;
        let t = env.f.workspace(1).await;
        let running = env.f.enqueue_running(&t).await;
        env.plant(sql, running.execution);
        let drift = env.only(DriftKind::RequestWithoutExecution, &t).await;
        assert_eq!(drift.request, Some(running.id));
        assert_eq!(drift.execution, Some(running.execution));
        for (limit, expected) in [(0, Repaired::Skipped), (1, Repaired::Repaired)] {
            let set = WorkspaceChange {
                limit_override: Some(Some(limit)),
                ..Default::default()
            };
            let changed = env
                .f
                .store
                .workspace_update(t.workspace, &set, &leasehold_store::Actor::Local)
                .await;
            changed.unwrap();
            assert_eq!(env.repair(&drift, None).await, expected);
        }
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
async fn orphaned_execution_is_ended_only_with_a_known_end() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(1).await;
    let running = env.f.enqueue_running(&t).await;
    env.plant(include_str!("sql/drift_completed.sql"), running.id);
    let drift = env.only(DriftKind::SlotWithoutExecution, &t).await;
    assert_eq!(drift.execution, Some(running.execution));
    assert_eq!(env.repair(&drift, None).await, Repaired::Skipped);
    assert_eq!(env.f.slots(t.workspace).await.in_use, 1);
    let ended = Some(ExecutionEnd::Completed);
    assert_eq!(env.repair(&drift, ended).await, Repaired::Repaired);
    assert_eq!(env.f.slots(t.workspace).await.in_use, 0);
    none(&*env.f.store).await;
    env.f.enqueue_running(&t).await;
}
