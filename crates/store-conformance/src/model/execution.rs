//! Executions in the model, and their slots.

use super::Model;
use async_trait::async_trait;
use leasehold_core::{ExecutionId, WorkspaceId};
use leasehold_store::capacity::{CapacityAudit, CapacityRepair, CapacityStore, Repaired};
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
        self.bells.ring_for_work(ends.iter().any(ended));
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
impl CapacityStore for Model {
    /// What the model keeps it keeps once, so that nothing can differ.
    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit> {
        let seen = self.state().list_workspaces(page);
        Ok(CapacityAudit {
            drifts: Vec::new(),
            last: seen.last().map(|workspace| workspace.id),
        })
    }

    async fn capacity_repair(&self, _repair: &CapacityRepair<'_>) -> Result<Repaired> {
        Ok(Repaired::Over)
    }
}
