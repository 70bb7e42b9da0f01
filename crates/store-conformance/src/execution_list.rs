//! What a store promises about lists of a workspace's executions: complete, last admitted first, filtered, without repeats.

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
    /// Every execution that passes the filter, read in pages of `limit`.
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

/// A workspace with two definitions and executions of both in every status, and all of them in the order of admission.
async fn mixed(f: &Fixture) -> (TestWorkspace, TestWorkspace, Vec<Execution>) {
    let t = f.site(50).await;
    let definition = f.draft(t.workspace).await;
    let version = f.publish(t.workspace, definition).await.id;
    let second = TestWorkspace {
        definition,
        version,
        ..t
    };
    let elsewhere = f.site(50).await;
    let mut admitted = Vec::new();
    for site in [&t, &elsewhere, &second, &t, &second] {
        let cancelled = f.running(site).await;
        f.finish(cancelled.execution, ExecutionEnd::Cancelled).await;
        admitted.push(cancelled);
        admitted.push(f.completed(site).await);
        admitted.push(f.running(site).await);
        admitted.push(f.failed(site).await);
        let unknown = f.claimed(site).await;
        f.release(&unknown, ReleaseKind::Unknown, 600).await;
        admitted.push(unknown);
        admitted.push(f.claimed(site).await);
        let refused = f.claimed(site).await;
        f.release(&refused, ReleaseKind::NotStarted, 600).await;
    }
    let mut executions = Vec::new();
    for claimed in admitted {
        executions.extend(f.execution(t.workspace, claimed.execution).await);
    }
    assert_eq!(executions.len(), 24, "those of one workspace");
    (t, second, executions)
}

/// It has every execution of the workspace, each as `execution_get` shows it, last admitted first, in any page size.
pub async fn has_every_one_last_admitted_first(f: Fixture) {
    let (t, _, mut all) = mixed(&f).await;
    all.reverse();
    assert!(all.is_sorted_by(|a, b| a.admission > b.admission));
    for limit in [1, 5, 100] {
        assert_eq!(f.executions(&every(&t), limit).await, all);
    }
}

/// Every filter, alone and with the other, has exactly what passes it, in any page size.
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
                status.is_none_or(|s| s == e.status) && definition.is_none_or(|d| d == e.definition)
            };
            let expected: Vec<Execution> = all.iter().filter(passes).cloned().collect();
            assert!(!expected.is_empty(), "{filter:?}");
            for limit in [1, 3, 100] {
                assert_eq!(f.executions(&filter, limit).await, expected, "{filter:?}");
            }
        }
    }
}

/// What is of nobody or of nothing is an empty list.
pub async fn of_what_is_not_there_is_empty(f: Fixture) {
    let (t, _, _) = mixed(&f).await;
    let nobody = ExecutionFilter {
        workspace: fresh_id(),
        ..every(&t)
    };
    assert_eq!(f.executions(&nobody, 10).await, []);
    let nothing = ExecutionFilter {
        definition: Some(fresh_id()),
        ..every(&t)
    };
    assert_eq!(f.executions(&nothing, 10).await, []);
    let before_all = Page::after(i64::MIN, 10);
    assert_eq!(ok(f.store.execution_list(&every(&t), before_all).await), []);
}

/// An execution is found by its id alone, whichever workspace it is of, and is the one `execution_get` shows.
pub async fn one_of_any_workspace_is_found_by_its_id(f: Fixture) {
    let (_, _, mut all) = mixed(&f).await;
    let elsewhere = f.site(1).await;
    let running = f.running(&elsewhere).await;
    let other = f.execution(elsewhere.workspace, running.execution).await;
    all.push(other.expect("it runs"));
    for execution in all {
        let found = ok(f.store.execution_find(execution.id).await);
        assert_eq!(found, Some(execution));
    }
    assert_eq!(ok(f.store.execution_find(fresh_id()).await), None);
    let unstarted = f.claimed(&f.site(1).await).await;
    f.release(&unstarted, ReleaseKind::NotStarted, 600).await;
    assert_eq!(ok(f.store.execution_find(unstarted.execution).await), None);
}
