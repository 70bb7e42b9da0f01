//! Compares everything that store and model expose.

use super::comparison::{Mismatch, RequestComparison, same};
use crate::dump::Dump;
use crate::factory::ok;
use crate::{Fixture, invariants};
use leasehold_core::{ExecutionId, FailureReason, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::execution::{Execution, ExecutionFilter};
use leasehold_store::request::{Request, RequestFilter};
use std::collections::BTreeSet;

impl RequestComparison {
    /// Compares, after each operation, every request, count, slot and running execution, and the timelines that changed.
    pub(super) async fn compare(&mut self) -> Result<(), Mismatch> {
        let everything = RequestFilter::default();
        let mut real = self.real.list_all(&everything, 1_000).await;
        let mut model = self.model.list_all(&everything, 1_000).await;
        real.iter_mut()
            .chain(&mut model)
            .for_each(clear_cancel_time);
        for (real, model) in real.iter().zip(&model) {
            same("requests", real, model)?;
        }
        same("numbers of requests", &real.len(), &model.len())?;
        for workspace in &self.workspaces {
            let id = workspace.workspace;
            let counts = (self.real.counts(id).await, self.model.counts(id).await);
            same("counts", &counts.0, &counts.1)?;
            let slots = (self.real.slots(id).await, self.model.slots(id).await);
            same("slots", &slots.0, &slots.1)?;
            let listed = (listed(&self.real, id).await, listed(&self.model, id).await);
            same("lists of executions", &listed.0, &listed.1)?;
        }
        let mut oldest = ok(self.real.store.request_oldest().await);
        let mut model = ok(self.model.store.request_oldest().await);
        // A store's knowledge of free slots may lag behind; the cases of `request_oldest` test it.
        (oldest.startable, model.startable) = (None, None);
        same("oldest requests", &oldest, &model)?;
        same(
            "running executions",
            &running(&self.real).await,
            &running(&self.model).await,
        )?;
        let ids: Vec<ExecutionId> = self.inner.state().executions.keys().copied().collect();
        same(
            "running ones of all executions",
            &running_of(&self.real, &ids).await,
            &running_of(&self.model, &ids).await,
        )?;
        for (workspace, request) in self.moved() {
            let real = self.real.timeline(workspace, request).await;
            let model = self.model.timeline(workspace, request).await;
            same("timelines", &real, &model)?;
        }
        Ok(())
    }

    /// Compares everything else at the end, and checks the store's invariants.
    pub(super) async fn compare_all(&self) -> Result<(), Mismatch> {
        let real = without_numbers(invariants::check(&self.real).await);
        let model = without_numbers(self.model.dump().await);
        same("workspaces", &real.workspaces, &model.workspaces)?;
        same("definitions", &real.definitions, &model.definitions)?;
        same("versions", &real.versions, &model.versions)?;
        same("executions", &real.executions, &model.executions)?;
        same("timelines", &real.timelines, &model.timelines)?;
        same("everything", &real, &model)
    }
}

/// Running executions in order, without the admission numbers that the store chooses.
async fn running(f: &Fixture) -> Vec<Execution> {
    let mut all = ok(f.store.execution_list_active(Page::first(1_000)).await);
    for execution in &mut all {
        execution.admission = 0;
    }
    all
}

/// A workspace's executions, last admitted first.
async fn listed(f: &Fixture, workspace: WorkspaceId) -> Vec<ExecutionId> {
    let filter = ExecutionFilter {
        workspace,
        status: None,
        definition: None,
    };
    let listed = ok(f.store.execution_list(&filter, Page::first(1_000)).await);
    listed.iter().map(|execution| execution.id).collect()
}

async fn running_of(f: &Fixture, ids: &[ExecutionId]) -> BTreeSet<ExecutionId> {
    let running = ok(f.store.execution_list_running(ids).await);
    running.iter().map(|execution| execution.id).collect()
}

/// Clears the time of a cancel request that took effect at once: whether it is stored is the store's choice.
fn clear_cancel_time(request: &mut Request) {
    if request.failure_reason == Some(FailureReason::Cancelled.into()) {
        request.cancel_requested_at = None;
    }
}

fn without_numbers(mut dump: Dump) -> Dump {
    dump.requests.values_mut().for_each(clear_cancel_time);
    for execution in dump.executions.values_mut() {
        execution.admission = 0;
    }
    dump
}
