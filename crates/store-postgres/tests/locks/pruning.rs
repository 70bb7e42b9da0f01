//! Locked rows of finished requests: pruning leaves them out, however many there are, and deletes those of others.

use super::{lock, open_fixture, promptly, unlock};
use leasehold_store::prune::Prune;
use leasehold_store_conformance::factory::ok;
use leasehold_store_conformance::{Fixture, TestWorkspace};
use std::time::Duration;

const FOLD_LOCK: &str = include_str!("../sql/fold_lock.sql");
/// The finished requests of the tenant whose rows are locked. They ended before all others.
const LOCKED: usize = 25;
/// The finished requests of the other tenant.
const OTHERS: usize = 12;

/// Prunes until nothing is left to prune, as the pruner does. Returns how many requests were deleted.
async fn prune_all(f: &Fixture, limit: u32) -> u64 {
    let before = Some(f.now() + Duration::from_secs(1));
    let prune = Prune {
        completed_before: before,
        failed_before: before,
        limit,
    };
    let mut all = 0;
    loop {
        let pruned = ok(promptly(f.store.prune(&prune)).await).requests;
        assert!(pruned <= u64::from(limit));
        if pruned == 0 {
            return all;
        }
        all += pruned;
    }
}

async fn finish_many(f: &Fixture, workspace: &TestWorkspace, count: usize) {
    for number in 0..count {
        match number % 2 {
            0 => f.enqueue_completed(workspace).await,
            _ => f.enqueue_failed(workspace).await,
        };
        f.advance(1);
    }
}

/// Checks that the locked rows of a tenant do not stop the pruning of others. `limit`: how many requests one call deletes.
async fn check(table: &str, condition: &str, limit: u32) {
    let (f, operator) = open_fixture().await;
    let (tenant, other) = (f.workspace(1).await, f.workspace(1).await);
    finish_many(&f, &tenant, LOCKED).await;
    finish_many(&f, &other, OTHERS).await;
    let condition = condition.replace("{workspace}", &tenant.workspace.to_string());
    lock(&operator, table, &condition).await;
    assert_eq!(prune_all(&f, limit).await, OTHERS as u64, "{table}");
    assert_eq!(f.counts(other.workspace).await.completed, 0, "{table}");
    assert_eq!(f.counts(other.workspace).await.failed, 0, "{table}");
    unlock(&operator).await;
    assert_eq!(prune_all(&f, limit).await, LOCKED as u64, "{table}");
    assert_eq!(f.counts(tenant.workspace).await.completed, 0, "{table}");
}

#[tokio::test]
async fn locked_requests_of_one_tenant_do_not_stop_the_pruning_of_others() {
    // One call looks at fewer requests than are locked, and at more.
    for limit in [1, 50] {
        let condition = "workspace_id = '{workspace}'";
        check("workflow_execution_queue", condition, limit).await;
    }
}

#[tokio::test]
async fn locked_executions_of_one_tenant_do_not_stop_the_pruning_of_others() {
    for limit in [2, 20] {
        check("workflow_execution", "workspace_id = '{workspace}'", limit).await;
    }
}

/// Pruning leaves events alone, and waits for no fold.
#[tokio::test]
async fn locked_events_and_a_running_fold_do_not_stop_pruning() {
    let (f, operator) = open_fixture().await;
    let tenant = f.workspace(1).await;
    finish_many(&f, &tenant, OTHERS).await;
    lock(&operator, "request_event", "true").await;
    operator.execute(FOLD_LOCK, &[]).await.unwrap();
    assert_eq!(prune_all(&f, 5).await, OTHERS as u64);
    unlock(&operator).await;
    assert_eq!(f.counts(tenant.workspace).await.completed, 0);
    assert_eq!(f.counts(tenant.workspace).await.failed, 0);
}
