//! Lists of a workspace's executions: complete, last admitted first, filtered, without repeats.

use crate::Fixture;
use crate::factory::{TestWorkspace, ok};
use leasehold_core::{ExecutionEnd, ExecutionStatus};
use leasehold_store::execution::{Execution, ExecutionFilter};
use leasehold_store::request::ReleaseKind;
use leasehold_store::{Page, fresh_id};

fn every(t: &TestWorkspace) -> ExecutionFilter {
    ExecutionFilter {
        workspace: t.workspace,
        status: None,
        definition: None,
    }
}

impl Fixture {
    /// Returns every execution that matches the filter, read in pages of `limit`.
    pub(crate) async fn executions(&self, filter: &ExecutionFilter, limit: u32) -> Vec<Execution> {
        let mut all: Vec<Execution> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let rows = ok(self.store.execution_list(filter, page).await);
            assert!(rows.len() <= limit as usize);
            let Some(last) = rows.last() else { return all };
            page = Page::after(last.admission, limit);
            all.extend(rows);
        }
    }
}

/// Creates a workspace with two definitions and executions of both in every status; returns them in the order of admission.
async fn mixed(f: &Fixture) -> (TestWorkspace, TestWorkspace, Vec<Execution>) {
    let t = f.workspace(50).await;
    let definition = f.create_draft(t.workspace).await;
    let version = f.publish(t.workspace, definition).await.id;
    let second = TestWorkspace {
        definition,
        version,
        ..t
    };
    let elsewhere = f.workspace(50).await;
    let mut admitted = Vec::new();
    for workspace in [&t, &elsewhere, &second, &t, &second] {
        let cancelled = f.enqueue_running(workspace).await;
        f.finish(cancelled.execution, ExecutionEnd::Cancelled).await;
        admitted.push(cancelled);
        admitted.push(f.enqueue_completed(workspace).await);
        admitted.push(f.enqueue_running(workspace).await);
        admitted.push(f.enqueue_failed(workspace).await);
        let unknown = f.enqueue_claimed(workspace).await;
        f.release(&unknown, ReleaseKind::Unknown, 600).await;
        admitted.push(unknown);
        admitted.push(f.enqueue_claimed(workspace).await);
        let refused = f.enqueue_claimed(workspace).await;
        f.release(&refused, ReleaseKind::NotStarted, 600).await;
    }
    let mut executions = Vec::new();
    for claimed in admitted {
        executions.extend(f.execution(t.workspace, claimed.execution).await);
    }
    assert_eq!(executions.len(), 24, "executions of one workspace");
    (t, second, executions)
}

/// The list has every execution of the workspace as `execution_get` returns it, last admitted first, in pages of any size.
pub async fn lists_every_execution_last_admitted_first(f: Fixture) {
    let (t, _, mut all) = mixed(&f).await;
    all.reverse();
    assert!(all.is_sorted_by(|a, b| a.admission > b.admission));
    for limit in [1, 5, 100] {
        assert_eq!(f.executions(&every(&t), limit).await, all);
    }
}

/// Every filter, alone and combined, returns exactly the matching executions, in pages of any size.
pub async fn filters_and_pages_miss_and_repeat_nothing(f: Fixture) {
    let (t, second, mut all) = mixed(&f).await;
    all.reverse();
    let statuses = ExecutionStatus::ALL.map(Some).into_iter().chain([None]);
    for status in statuses {
        for definition in [None, Some(t.definition), Some(second.definition)] {
            let filter = ExecutionFilter {
                status,
                definition,
                ..every(&t)
            };
            let passes = |e: &&Execution| {
                status.is_none_or(|s| e.status == s) && definition.is_none_or(|d| d == e.definition)
            };
            let expected: Vec<Execution> = all.iter().filter(passes).cloned().collect();
            assert!(!expected.is_empty(), "{filter:?}");
            for limit in [1, 3, 100] {
                assert_eq!(f.executions(&filter, limit).await, expected, "{filter:?}");
            }
        }
    }
}

/// The list of an unknown workspace or definition is empty.
pub async fn unknown_workspace_or_definition_lists_nothing(f: Fixture) {
    let (t, _, _) = mixed(&f).await;
    let unknown = ExecutionFilter {
        workspace: fresh_id(),
        ..every(&t)
    };
    assert_eq!(f.executions(&unknown, 10).await, []);
    let nothing = ExecutionFilter {
        definition: Some(fresh_id()),
        ..every(&t)
    };
    assert_eq!(f.executions(&nothing, 10).await, []);
    let before_all = Page::after(i64::MIN, 10);
    assert_eq!(ok(f.store.execution_list(&every(&t), before_all).await), []);
}

/// An execution of any workspace is found by its id alone and equals the result of `execution_get`.
pub async fn is_found_by_id_in_any_workspace(f: Fixture) {
    let (_, _, mut all) = mixed(&f).await;
    let elsewhere = f.workspace(1).await;
    let running = f.enqueue_running(&elsewhere).await;
    let other = f.execution(elsewhere.workspace, running.execution).await;
    all.push(other.expect("the execution is running"));
    for execution in all {
        let found = ok(f.store.execution_find(execution.id).await);
        assert_eq!(found, Some(execution));
    }
    assert_eq!(ok(f.store.execution_find(fresh_id()).await), None);
    let unstarted = f.enqueue_claimed(&f.workspace(1).await).await;
    f.release(&unstarted, ReleaseKind::NotStarted, 600).await;
    assert_eq!(ok(f.store.execution_find(unstarted.execution).await), None);
}
