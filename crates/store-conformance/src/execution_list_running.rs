//! What a store promises about asking which of many executions run.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::{ExecutionEnd, ExecutionId};
use leasehold_store::fresh_id;
use leasehold_store::request::ReleaseKind;
use std::collections::BTreeSet;

/// Those that run are returned as they are, in any workspace and once each; not those that ended or that nobody made.
pub async fn has_those_that_run(f: Fixture) {
    let (one, two) = (f.site(10).await, f.site(10).await);
    let running = [
        f.running(&one).await.execution,
        f.running(&two).await.execution,
        f.claimed(&one).await.execution,
    ];
    let unknown = f.claimed(&one).await;
    f.release(&unknown, ReleaseKind::Unknown, 600).await;
    let ended = f.completed(&one).await.execution;
    let unasked = f.running(&two).await.execution;
    let mut asked = running.to_vec();
    asked.extend([ended, fresh_id(), unknown.execution, running[0]]);
    let mut found = ok(f.store.execution_list_running(&asked).await);
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

/// Nothing asked is nothing found.
pub async fn of_nothing_is_nothing(f: Fixture) {
    let t = f.site(1).await;
    f.running(&t).await;
    assert_eq!(ok(f.store.execution_list_running(&[]).await), []);
}

/// More than a page can be asked for at once.
pub async fn takes_many_at_once(f: Fixture) {
    let t = f.site(2_000).await;
    f.enqueue(&t, 1_500).await;
    let claimed = f.drain(1_000).await.requests;
    let ended = claimed[7].execution;
    f.finish(ended, ExecutionEnd::Completed).await;
    let asked: Vec<ExecutionId> = claimed.iter().map(|request| request.execution).collect();
    let found = ok(f.store.execution_list_running(&asked).await);
    let found: BTreeSet<ExecutionId> = found.iter().map(|execution| execution.id).collect();
    let mut expected: BTreeSet<ExecutionId> = asked.into_iter().collect();
    expected.remove(&ended);
    assert_eq!(found, expected);
}
