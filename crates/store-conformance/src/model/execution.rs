//! Executions in the model, and their slots.

use super::Model;
use async_trait::async_trait;
use leasehold_core::{ExecutionId, WorkspaceId};
use leasehold_store::drift::{DriftRepair, DriftReport, DriftStore, Repaired};
use leasehold_store::execution::{
    ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished, ExecutionStore,
};
use leasehold_store::{Page, Result};

#[async_trait]
impl ExecutionStore for Model {
    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        let state = self.state();
        let execution = state.executions.get(&id);
        Ok(execution.filter(|e| e.workspace == workspace).cloned())
    }

    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>> {
        Ok(self.state().executions.get(&id).cloned())
    }

    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        at: Page<i64>,
    ) -> Result<Vec<Execution>> {
        Ok(self.state().list_executions(filter, at))
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        let (mut state, now) = (self.state(), self.now());
        let ends = finishes.iter().map(|finish| state.finish(by, finish, now));
        let ends: Vec<ExecutionFinished> = ends.collect();
        let ended = |end: &ExecutionFinished| matches!(end, ExecutionFinished::Finished { .. });
        self.notifiers.notify_work(ends.iter().any(ended));
        Ok(ends)
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        Ok(self.state().list_running(ids))
    }

    async fn execution_list_active(&self, at: Page<ActiveKey>) -> Result<Vec<Execution>> {
        Ok(self.state().list_active(at))
    }
}

#[async_trait]
impl DriftStore for Model {
    /// Returns no drift: the model stores everything once, so nothing can differ.
    async fn drift_check(&self, page: Page<WorkspaceId>) -> Result<DriftReport> {
        let seen = self.state().list_workspaces(page);
        Ok(DriftReport {
            drifts: Vec::new(),
            last: seen.last().map(|workspace| workspace.id),
        })
    }

    async fn drift_repair(&self, _repair: &DriftRepair<'_>) -> Result<Repaired> {
        Ok(Repaired::AlreadyConsistent)
    }
}
