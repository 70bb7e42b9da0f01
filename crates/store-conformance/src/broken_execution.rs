//! Executions whose rows somebody broke by hand do not keep others from timing out. The tests of each store break the rows, because this crate knows no SQL.

use crate::Fixture;
use crate::factory::{LEASE, TestWorkspace, ok};
use crate::graph_factory::{StartedGraph, TIMEOUT_SWEEPER, graph_of, task_with_max_attempts};
use leasehold_core::{ExecutionId, VersionId};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Executions of each workspace: the jobs of the first half lose their last lease, the others time out.
const EXECUTIONS: usize = 4;
/// Less than the broken executions, which come first.
const BATCH: u32 = 2;

/// Started executions of three workspaces. All of them are due.
pub struct BrokenExecutions {
    /// The version of a workspace's executions, to be deleted.
    pub without_version: VersionId,
    /// Executions whose states are to be made unreadable.
    pub unreadable: Vec<StartedGraph>,
    intact: Vec<StartedGraph>,
}

impl BrokenExecutions {
    /// Starts the executions; those of the intact workspace are the last ones.
    pub async fn start(f: &Fixture) -> Self {
        let graph = || graph_of(vec![task_with_max_attempts("a", 1)], &[]);
        let mut workspaces = Vec::new();
        for _ in 0..3 {
            let workspace = f.graph_workspace_with_timeout(10, graph(), Some(TIMEOUT));
            workspaces.push(workspace.await);
        }
        let mut all = vec![Vec::new(); 3];
        start_some(f, &workspaces, &mut all).await;
        let spent = f.claim_jobs(100).await;
        assert_eq!(spent.len(), 3 * EXECUTIONS / 2);
        f.advance(LEASE.as_secs());
        assert_eq!(f.requeue_expired_jobs().await.len(), spent.len());
        start_some(f, &workspaces, &mut all).await;
        f.advance(TIMEOUT.as_secs());
        let intact = all.pop().unwrap_or_default();
        Self {
            without_version: workspaces[0].version,
            unreadable: all.pop().unwrap_or_default(),
            intact,
        }
    }

    /// Checks that small calls end the intact executions.
    ///
    /// # Panics
    /// When one of them does not end, or another one does.
    pub async fn check(&self, f: &Fixture) {
        let mut ended: Vec<ExecutionId> = Vec::new();
        for _ in 0..self.intact.len() {
            let some = ok(f.store.graph_expire(TIMEOUT_SWEEPER, BATCH).await);
            ended.extend(some.iter().map(|one| one.execution));
        }
        ended.sort_unstable();
        let mut intact: Vec<_> = self.intact.iter().map(|one| one.execution).collect();
        intact.sort_unstable();
        assert_eq!(ended, intact);
        assert_eq!(f.expire_graphs().await, [], "the broken ones stay");
    }
}

async fn start_some(f: &Fixture, workspaces: &[TestWorkspace], all: &mut [Vec<StartedGraph>]) {
    for (workspace, started) in workspaces.iter().zip(all) {
        started.extend(f.enqueue_started_many(workspace, EXECUTIONS / 2).await);
    }
}
