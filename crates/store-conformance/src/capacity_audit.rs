//! What a store promises about looking for drift: where nobody wrote by hand there is none, at any moment, in any page size. What it finds where
//! somebody did is each adapter's to test, for it needs that hand.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{ExecutionEnd, Plan, WorkspaceId};
use leasehold_store::capacity::{CapacityRepair, Drift, DriftKind, Repaired};
use leasehold_store::request::ReleaseKind;
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Page, Store};

/// Every drift there is, looked for in pages of `limit`.
///
/// # Panics
/// When pages do not go on.
pub async fn drifts(store: &dyn Store, limit: u32) -> Vec<Drift> {
    let mut all = Vec::new();
    let mut after: Option<WorkspaceId> = None;
    loop {
        let page = Page { after, limit };
        let audit = ok(store.capacity_audit(page).await);
        all.extend(audit.drifts);
        let Some(last) = audit.last else { return all };
        assert!(after < Some(last), "pages go on");
        after = Some(last);
    }
}

/// Asserts that nothing differs.
///
/// # Panics
/// When something does.
pub async fn none(store: &dyn Store) {
    let found = drifts(store, 100).await;
    assert!(found.is_empty(), "{found:#?}");
}

/// Whatever a workspace has been through, there is no drift: full, with unknown starts, lowered, paused, deleted.
pub async fn finds_nothing_where_nobody_wrote_by_hand(f: Fixture) {
    none(&*f.store).await;
    let (full, idle, paused) = (f.site(2).await, f.site(5).await, f.site(9).await);
    f.running(&full).await;
    f.claimed(&full).await;
    f.enqueue(&full, 3).await;
    f.claim(5).await;
    none(&*f.store).await;
    f.completed(&idle).await;
    f.failed(&idle).await;
    let kept = f.kept(&paused).await;
    none(&*f.store).await;
    let change = WorkspaceChange {
        paused: Some(true),
        limit_override: Some(Some(0)),
        plan: Some(Plan::Pro),
    };
    ok(f.store.workspace_update(paused.workspace, &change).await);
    ok(f.store.workspace_update(full.workspace, &change).await);
    none(&*f.store).await;
    f.finish(kept.execution, ExecutionEnd::Completed).await;
    ok(f.store.workspace_delete(paused.workspace).await);
    ok(f.store.request_settle().await);
    for limit in [1, 2, 100] {
        assert_eq!(drifts(&*f.store, limit).await, []);
    }
}

/// A slot that was just freed, and what was just given back, is no drift before anybody has noticed it.
pub async fn finds_nothing_in_what_was_just_freed(f: Fixture) {
    let t = f.site(1).await;
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

/// Mending what does not differ changes nothing.
pub async fn mends_nothing_that_agrees(f: Fixture) {
    let t = f.site(2).await;
    let running = f.running(&t).await;
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
            let repair = CapacityRepair {
                drift: &drift,
                ended: Some(ExecutionEnd::Completed),
            };
            let mended = ok(f.store.capacity_repair(&repair).await);
            assert!(
                matches!(mended, Repaired::Over | Repaired::Left),
                "{kind}: {mended:?}"
            );
        }
    }
    assert_eq!(f.dump().await, before);
    none(&*f.store).await;
}
