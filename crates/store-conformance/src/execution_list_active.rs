//! The list of executions that hold a slot, for the full sweep.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{ExecutionEnd, ExecutionId, ExecutionStatus};
use leasehold_store::Page;
use leasehold_store::execution::{ActiveKey, Execution};
use leasehold_store::request::ReleaseKind;
use std::collections::BTreeSet;

async fn sweep(f: &Fixture, limit: u32) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    let mut page = Page::first(limit);
    loop {
        let rows = ok(f.store.execution_list_active(page).await);
        assert!(rows.len() <= limit as usize);
        let Some(last) = rows.last() else { return all };
        let key = ActiveKey {
            workspace: last.workspace,
            admission: last.admission,
        };
        page = Page::after(key, limit);
        all.extend(rows);
    }
}

/// The list has every RUNNING execution (being started, unknown or dispatched), ordered by workspace and admission, in pages of any size.
pub async fn lists_every_running_execution_by_workspace_and_admission(f: Fixture) {
    let (one, two) = (f.workspace(50).await, f.workspace(50).await);
    let mut running: BTreeSet<ExecutionId> = BTreeSet::new();
    for t in [&two, &one, &two] {
        f.enqueue_completed(t).await;
        f.enqueue_failed(t).await;
        running.insert(f.enqueue_running(t).await.execution);
        let claimed = f.enqueue_claimed(t).await;
        f.release(&claimed, ReleaseKind::NotStarted, 600).await;
        running.insert(f.enqueue_claimed(t).await.execution);
        let unknown = f.enqueue_claimed(t).await;
        f.release(&unknown, ReleaseKind::Unknown, 600).await;
        running.insert(unknown.execution);
    }
    let all = sweep(&f, 100).await;
    assert_eq!(all.iter().map(|e| e.id).collect::<BTreeSet<_>>(), running);
    assert!(all.is_sorted_by_key(|e| (e.workspace, e.admission)));
    for limit in [1, 2, 4] {
        assert_eq!(sweep(&f, limit).await, all);
    }
    for execution in &all {
        assert_eq!(execution.status, ExecutionStatus::Running);
        let read = f.execution(execution.workspace, execution.id).await;
        assert_eq!(read.as_ref(), Some(execution));
    }
}

/// An execution that ends between two pages does not make the next page miss another.
pub async fn paging_continues_after_an_ended_execution(f: Fixture) {
    let t = f.workspace(5).await;
    f.enqueue(&t, 3).await;
    let claimed = f.claim(3).await.requests;
    let first = ok(f.store.execution_list_active(Page::first(1)).await);
    f.finish(first[0].id, ExecutionEnd::Completed).await;
    let key = ActiveKey {
        workspace: first[0].workspace,
        admission: first[0].admission,
    };
    let rest = ok(f.store.execution_list_active(Page::after(key, 10)).await);
    let rest: Vec<ExecutionId> = rest.iter().map(|e| e.id).collect();
    assert_eq!(rest, [claimed[1].execution, claimed[2].execution]);
}
