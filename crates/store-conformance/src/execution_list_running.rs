//! Which of a list of executions are running.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{ExecutionEnd, ExecutionId};
use leasehold_store::fresh_id;
use leasehold_store::request::ReleaseKind;
use std::collections::BTreeSet;

/// Running executions of any workspace are returned once each; ended and unknown ones are not.
pub async fn returns_only_running_executions(f: Fixture) {
    let (one, two) = (f.workspace(10).await, f.workspace(10).await);
    let running = [
        f.enqueue_running(&one).await.execution,
        f.enqueue_running(&two).await.execution,
        f.enqueue_claimed(&one).await.execution,
    ];
    let unknown = f.enqueue_claimed(&one).await;
    f.release(&unknown, ReleaseKind::Unknown, 600).await;
    let ended = f.enqueue_completed(&one).await.execution;
    let unasked = f.enqueue_running(&two).await.execution;
    let mut requested = running.to_vec();
    requested.extend([ended, fresh_id(), unknown.execution, running[0]]);
    let mut found = ok(f.store.execution_list_running(&requested).await);
    found.sort_by_key(|execution| execution.id);
    let mut expected = running.to_vec();
    expected.push(unknown.execution);
    expected.sort_unstable();
    let ids: Vec<ExecutionId> = found.iter().map(|execution| execution.id).collect();
    assert_eq!(ids, expected);
    assert!(!ids.contains(&unasked));
    for execution in found {
        let read = f.execution(execution.workspace, execution.id).await;
        assert_eq!(read, Some(execution));
    }
}

/// An empty list returns nothing.
pub async fn empty_list_returns_nothing(f: Fixture) {
    let t = f.workspace(1).await;
    f.enqueue_running(&t).await;
    assert_eq!(ok(f.store.execution_list_running(&[]).await), []);
}

/// One call accepts more ids than a page has rows.
pub async fn accepts_more_ids_than_a_page(f: Fixture) {
    let t = f.workspace(2_000).await;
    f.enqueue(&t, 1_500).await;
    let claimed = f.drain(1_000).await.requests;
    let ended = claimed[7].execution;
    f.finish(ended, ExecutionEnd::Completed).await;
    let requested: Vec<ExecutionId> = claimed.iter().map(|request| request.execution).collect();
    let found = ok(f.store.execution_list_running(&requested).await);
    let found: BTreeSet<ExecutionId> = found.iter().map(|execution| execution.id).collect();
    let mut expected: BTreeSet<ExecutionId> = requested.into_iter().collect();
    expected.remove(&ended);
    assert_eq!(found, expected);
}
