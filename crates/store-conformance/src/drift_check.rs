//! The drift check without manual writes: it finds nothing at any moment, in any page size. Each adapter tests the drift that manual writes
//! cause, since that needs SQL.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{ExecutionEnd, Plan, WorkspaceId};
use leasehold_store::drift::{Drift, DriftKind, DriftRepair, Repaired};
use leasehold_store::request::ReleaseKind;
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Page, Store};

/// Returns all drift, read in pages of `limit`.
///
/// # Panics
/// When the pages do not advance.
pub async fn drifts(store: &dyn Store, limit: u32) -> Vec<Drift> {
    let mut all = Vec::new();
    let mut after: Option<WorkspaceId> = None;
    loop {
        let page = Page { after, limit };
        let audit = ok(store.drift_check(page).await);
        all.extend(audit.drifts);
        let Some(last) = audit.last else { return all };
        assert!(after < Some(last), "pages must advance");
        after = Some(last);
    }
}

/// Asserts that there is no drift.
///
/// # Panics
/// When there is drift.
pub async fn none(store: &dyn Store) {
    let found = drifts(store, 100).await;
    assert!(found.is_empty(), "{found:#?}");
}

/// A workspace has no drift in any state: full, with unknown starts, with a lowered limit, paused, deleted.
pub async fn no_drift_without_manual_writes(f: Fixture) {
    none(&*f.store).await;
    let (full, idle, paused) = (
        f.workspace(2).await,
        f.workspace(5).await,
        f.workspace(9).await,
    );
    f.enqueue_running(&full).await;
    f.enqueue_claimed(&full).await;
    f.enqueue(&full, 3).await;
    f.claim(5).await;
    none(&*f.store).await;
    f.enqueue_completed(&idle).await;
    f.enqueue_failed(&idle).await;
    let kept = f.enqueue_unknown(&paused).await;
    none(&*f.store).await;
    let change = WorkspaceChange {
        paused: Some(true),
        limit_override: Some(Some(0)),
        plan: Some(Plan::Pro),
        ..WorkspaceChange::default()
    };
    ok(f.store
        .workspace_update(paused.workspace, &change, &leasehold_store::Actor::Local)
        .await);
    ok(f.store
        .workspace_update(full.workspace, &change, &leasehold_store::Actor::Local)
        .await);
    none(&*f.store).await;
    f.finish(kept.execution, ExecutionEnd::Completed).await;
    ok(f.store
        .workspace_delete(paused.workspace, &leasehold_store::Actor::Local)
        .await);
    ok(f.store.request_promote_due().await);
    for limit in [1, 2, 100] {
        assert_eq!(drifts(&*f.store, limit).await, []);
    }
}

/// A slot that was just freed and a claim that was just released are no drift.
pub async fn freed_slots_and_released_claims_are_no_drift(f: Fixture) {
    let t = f.workspace(1).await;
    f.enqueue(&t, 3).await;
    let held = f.claim_one().await;
    f.claim(5).await;
    f.release(&held, ReleaseKind::NotStarted, 0).await;
    none(&*f.store).await;
    let held = f.claim_one().await;
    f.claim(5).await;
    f.finish(held.execution, ExecutionEnd::Completed).await;
    none(&*f.store).await;
    f.claim_one().await;
    none(&*f.store).await;
}

/// Repairing a workspace without drift changes nothing.
pub async fn repair_without_drift_changes_nothing(f: Fixture) {
    let t = f.workspace(2).await;
    let running = f.enqueue_running(&t).await;
    f.enqueue(&t, 2).await;
    let before = f.dump().await;
    for kind in DriftKind::ALL {
        for (request, execution) in [(None, None), (Some(running.id), Some(running.execution))] {
            let drift = Drift {
                kind,
                workspace: t.workspace,
                request,
                execution,
                text: String::new(),
            };
            let repair = DriftRepair {
                drift: &drift,
                ended: Some(ExecutionEnd::Completed),
            };
            let mended = ok(f.store.drift_repair(&repair).await);
            assert!(
                matches!(mended, Repaired::AlreadyConsistent | Repaired::Skipped),
                "{kind}: {mended:?}"
            );
        }
    }
    assert_eq!(f.dump().await, before);
    none(&*f.store).await;
}
