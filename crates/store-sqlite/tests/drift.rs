//! Drift planted by hand in an SQLite file: each kind is seen, named and mended, or left where mending is not safe.
#![allow(clippy::unwrap_used)]

use leasehold_core::ExecutionEnd;
use leasehold_store::capacity::{CapacityRepair, Drift, DriftKind, Repaired};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Clock, SchemaStore};
use leasehold_store_conformance::capacity_audit::{drifts, none};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, invariants};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use std::sync::Arc;
use uuid::Uuid;

struct Hand {
    f: Fixture,
    client: Connection,
}

impl Hand {
    async fn new() -> Self {
        let clock = clock();
        let folder = leasehold_testkit::temp_dir();
        let file = folder.path().join("leasehold.db");
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            ..SqliteOptions::default()
        };
        let store = SqliteStore::open(&file, &options).unwrap();
        store.schema_migrate().await.unwrap();
        Self {
            f: Fixture::new(Arc::new(store), clock).guarded(folder),
            client: Connection::open(&file).unwrap(),
        }
    }

    fn plant(&self, sql: &str, id: impl Into<Uuid>) {
        let id: [u8; 16] = id.into().into_bytes();
        assert_eq!(self.client.execute(sql, [id]).unwrap(), 1);
    }

    async fn mend(&self, drift: &Drift, ended: Option<ExecutionEnd>) -> Repaired {
        let repair = CapacityRepair { drift, ended };
        self.f.store.capacity_repair(&repair).await.unwrap()
    }

    /// The one drift there is, of this kind.
    async fn only(&self, kind: DriftKind, t: &TestWorkspace) -> Drift {
        let found = drifts(&*self.f.store, 10).await;
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].kind, found[0].workspace), (kind, t.workspace));
        found[0].clone()
    }

    /// Sees one drift of this kind, mends it, and a second time finds it mended.
    async fn seen_and_mended(&self, kind: DriftKind, t: &TestWorkspace) {
        let drift = self.only(kind, t).await;
        assert_eq!(self.mend(&drift, None).await, Repaired::Repaired);
        none(&*self.f.store).await;
        assert_eq!(self.mend(&drift, None).await, Repaired::Over);
        invariants::check(&self.f).await;
    }
}

#[tokio::test]
async fn a_workspace_called_full_for_nobodys_sake_is_served_again() {
    let hand = Hand::new().await;
    let t = hand.f.site(2).await;
    hand.f.running(&t).await;
    hand.f.enqueue(&t, 1).await;
    hand.plant(include_str!("sql/drift_full.sql"), t.workspace);
    assert_eq!(hand.f.claim(5).await.requests, []);
    hand.seen_and_mended(DriftKind::SlotWithoutExecution, &t)
        .await;
    assert_eq!(hand.f.claim(5).await.requests.len(), 1);
}

#[tokio::test]
async fn slots_numbered_with_a_gap_are_numbered_anew() {
    let hand = Hand::new().await;
    let t = hand.f.site(9).await;
    hand.f.running(&t).await;
    let second = hand.f.running(&t).await;
    hand.f.running(&t).await;
    hand.plant(include_str!("sql/drift_gap.sql"), second.execution);
    hand.seen_and_mended(DriftKind::SlotWithoutExecution, &t)
        .await;
    hand.f.enqueue(&t, 9).await;
    assert_eq!(hand.f.drain(9).await.requests.len(), 6);
    invariants::check(&hand.f).await;
}

#[tokio::test]
async fn room_that_is_not_there_is_no_more_said() {
    let hand = Hand::new().await;
    let t = hand.f.site(1).await;
    hand.f.running(&t).await;
    hand.plant(include_str!("sql/drift_room.sql"), t.workspace);
    hand.seen_and_mended(DriftKind::ExecutionWithoutSlot, &t)
        .await;
}

#[tokio::test]
async fn a_limit_that_is_not_the_workspaces_is_taken_from_it() {
    let hand = Hand::new().await;
    let t = hand.f.site(2).await;
    hand.f.enqueue(&t, 9).await;
    hand.plant(include_str!("sql/drift_limit.sql"), t.workspace);
    hand.seen_and_mended(DriftKind::Limit, &t).await;
    assert_eq!(hand.f.drain(9).await.requests.len(), 2);
}

#[tokio::test]
async fn counts_and_lines_are_counted_anew() {
    for sql in [
        include_str!("sql/drift_counts.sql"),
        include_str!("sql/drift_line.sql"),
    ] {
        let hand = Hand::new().await;
        let t = hand.f.site(5).await;
        hand.f.running(&t).await;
        hand.f.completed(&t).await;
        hand.f.enqueue(&t, 2).await;
        hand.plant(sql, t.workspace);
        hand.seen_and_mended(DriftKind::Counts, &t).await;
        assert_eq!(hand.f.drain(9).await.requests.len(), 2);
    }
}

#[tokio::test]
async fn an_open_request_whose_execution_has_ended_or_gone_gets_it_back_if_a_slot_is_free() {
    for sql in [
        include_str!("sql/drift_end.sql"),
        include_str!("sql/execution_delete.sql"),
    ] {
        let hand = Hand::new().await;
        let t = hand.f.site(1).await;
        let running = hand.f.running(&t).await;
        hand.plant(sql, running.execution);
        let drift = hand.only(DriftKind::RequestWithoutExecution, &t).await;
        assert_eq!(drift.request, Some(running.id));
        assert_eq!(drift.execution, Some(running.execution));
        for (limit, mended) in [(0, Repaired::Left), (1, Repaired::Repaired)] {
            let set = WorkspaceChange {
                limit_override: Some(Some(limit)),
                ..Default::default()
            };
            let changed = hand.f.store.workspace_update(t.workspace, &set).await;
            changed.unwrap();
            assert_eq!(hand.mend(&drift, None).await, mended);
        }
        none(&*hand.f.store).await;
        assert_eq!(hand.mend(&drift, None).await, Repaired::Over);
        assert_eq!(hand.f.slots(t.workspace).await.in_use, 1);
        hand.f
            .finish(running.execution, ExecutionEnd::Completed)
            .await;
        invariants::check(&hand.f).await;
    }
}

#[tokio::test]
async fn an_execution_that_its_request_forgot_is_ended_only_by_who_knows_its_end() {
    let hand = Hand::new().await;
    let t = hand.f.site(1).await;
    let running = hand.f.running(&t).await;
    hand.plant(include_str!("sql/drift_completed.sql"), running.id);
    let drift = hand.only(DriftKind::SlotWithoutExecution, &t).await;
    assert_eq!(drift.execution, Some(running.execution));
    assert_eq!(hand.mend(&drift, None).await, Repaired::Left);
    assert_eq!(hand.f.slots(t.workspace).await.in_use, 1);
    let ended = Some(ExecutionEnd::Completed);
    assert_eq!(hand.mend(&drift, ended).await, Repaired::Repaired);
    assert_eq!(hand.f.slots(t.workspace).await.in_use, 0);
    none(&*hand.f.store).await;
    hand.f.running(&t).await;
}
