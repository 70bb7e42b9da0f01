//! Drift planted by hand in PostgreSQL: each kind is seen, named and mended, or left where mending is not safe.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, RequestStatus};
use leasehold_store::capacity::{CapacityRepair, Drift, DriftKind, Repaired};
use leasehold_store_conformance::capacity_audit::{drifts, none};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock, invariants};
use leasehold_testkit::TestDatabase;
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;
use uuid::Uuid;

struct Hand {
    f: Fixture,
    client: Client,
    _database: TestDatabase,
}

impl Hand {
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

    /// Writes with all guards off. What is not folded yet is folded before.
    async fn plant(&self, sql: &str, id: Uuid) {
        self.f.store.request_settle().await.unwrap();
        let off = include_str!("sql/drift_triggers_off.sql");
        let on = include_str!("sql/drift_triggers_on.sql");
        self.client.batch_execute(off).await.unwrap();
        assert_eq!(self.client.execute(sql, &[&id]).await.unwrap(), 1);
        self.client.batch_execute(on).await.unwrap();
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
    hand.plant(include_str!("sql/drift_full.sql"), t.workspace.0)
        .await;
    assert_eq!(hand.f.claim(5).await.requests, []);
    hand.seen_and_mended(DriftKind::SlotWithoutExecution, &t)
        .await;
    assert_eq!(hand.f.claim(5).await.requests.len(), 1);
}

#[tokio::test]
async fn executions_that_the_record_does_not_count_are_counted_again() {
    for sql in [
        include_str!("sql/drift_held.sql"),
        include_str!("sql/drift_oldest.sql"),
    ] {
        let hand = Hand::new().await;
        let t = hand.f.site(2).await;
        hand.f.running(&t).await;
        hand.plant(sql, t.workspace.0).await;
        hand.seen_and_mended(DriftKind::ExecutionWithoutSlot, &t)
            .await;
        hand.f.enqueue(&t, 3).await;
        assert_eq!(hand.f.drain(5).await.requests.len(), 1);
        invariants::check(&hand.f).await;
    }
}

#[tokio::test]
async fn a_limit_that_is_not_the_workspaces_is_taken_from_it() {
    let hand = Hand::new().await;
    let t = hand.f.site(2).await;
    hand.f.enqueue(&t, 9).await;
    hand.plant(include_str!("sql/drift_limit.sql"), t.workspace.0)
        .await;
    hand.seen_and_mended(DriftKind::Limit, &t).await;
    assert_eq!(hand.f.drain(9).await.requests.len(), 2);
}

#[tokio::test]
async fn counts_are_counted_anew_also_while_events_wait_to_be_folded() {
    let hand = Hand::new().await;
    let t = hand.f.site(5).await;
    hand.f.running(&t).await;
    hand.f.completed(&t).await;
    hand.plant(include_str!("sql/drift_counts.sql"), t.workspace.0)
        .await;
    hand.f.enqueue(&t, 2).await;
    hand.seen_and_mended(DriftKind::Counts, &t).await;
}

#[tokio::test]
async fn an_open_request_whose_execution_has_ended_or_gone_gets_it_back() {
    for sql in [
        include_str!("sql/execution_end.sql"),
        include_str!("sql/execution_remove.sql"),
    ] {
        let hand = Hand::new().await;
        let t = hand.f.site(2).await;
        let running = hand.f.running(&t).await;
        hand.plant(sql, running.execution.0).await;
        let drift = hand.only(DriftKind::RequestWithoutExecution, &t).await;
        assert_eq!(drift.request, Some(running.id));
        assert_eq!(drift.execution, Some(running.execution));
        assert_eq!(hand.mend(&drift, None).await, Repaired::Repaired);
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
async fn in_a_full_workspace_a_request_gets_its_execution_back_before_another_takes_the_slot() {
    let hand = Hand::new().await;
    let t = hand.f.site(1).await;
    let running = hand.f.running(&t).await;
    hand.plant(include_str!("sql/execution_end.sql"), running.execution.0)
        .await;
    let found = drifts(&*hand.f.store, 10).await;
    let kinds: Vec<DriftKind> = found.iter().map(|drift| drift.kind).collect();
    let expected = [
        DriftKind::RequestWithoutExecution,
        DriftKind::SlotWithoutExecution,
    ];
    assert_eq!(kinds, expected, "{found:#?}");
    assert_eq!(hand.mend(&found[0], None).await, Repaired::Repaired);
    assert_eq!(hand.mend(&found[1], None).await, Repaired::Over);
    none(&*hand.f.store).await;
}

#[tokio::test]
async fn an_open_request_without_an_execution_is_left_while_no_slot_is_free() {
    let hand = Hand::new().await;
    let t = hand.f.site(2).await;
    let running = hand.f.running(&t).await;
    hand.plant(include_str!("sql/execution_end.sql"), running.execution.0)
        .await;
    let drift = hand.only(DriftKind::RequestWithoutExecution, &t).await;
    let set = leasehold_store::workspace::WorkspaceChange {
        limit_override: Some(Some(0)),
        ..Default::default()
    };
    hand.f
        .store
        .workspace_update(t.workspace, &set)
        .await
        .unwrap();
    assert_eq!(hand.mend(&drift, None).await, Repaired::Left);
    assert_eq!(hand.f.slots(t.workspace).await.in_use, 0);
}

#[tokio::test]
async fn an_execution_that_its_request_forgot_is_ended_only_by_who_knows_its_end() {
    let hand = Hand::new().await;
    let t = hand.f.site(1).await;
    let running = hand.f.running(&t).await;
    hand.plant(include_str!("sql/drift_completed.sql"), running.id.0)
        .await;
    let found = drifts(&*hand.f.store, 10).await;
    let kinds: Vec<DriftKind> = found.iter().map(|drift| drift.kind).collect();
    assert_eq!(
        kinds,
        [DriftKind::SlotWithoutExecution, DriftKind::Counts],
        "{found:#?}"
    );
    assert_eq!(found[0].execution, Some(running.execution));
    assert_eq!(hand.mend(&found[0], None).await, Repaired::Left);
    assert_eq!(hand.f.slots(t.workspace).await.in_use, 1);
    let ended = Some(ExecutionEnd::Completed);
    assert_eq!(hand.mend(&found[0], ended).await, Repaired::Repaired);
    assert_eq!(hand.f.slots(t.workspace).await.in_use, 0);
    assert_eq!(hand.mend(&found[1], None).await, Repaired::Repaired);
    none(&*hand.f.store).await;
    let request = hand
        .f
        .store
        .request_get(t.workspace, running.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(request.status, RequestStatus::Completed);
    hand.f.running(&t).await;
}
