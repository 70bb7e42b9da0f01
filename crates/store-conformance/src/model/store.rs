//! The model as a store: each method locks, does one thing to plain maps, and rings. Decides nothing itself.

use super::Model;
use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{
    DefinitionId, ExecutionId, JobId, JsonText, KeyId, RequestId, Timestamp, VersionId, WorkspaceId,
};
use leasehold_store::capacity::{CapacityAudit, CapacityRepair, Repaired};
use leasehold_store::change::{ChangePage, ChangeStart, Event};
use leasehold_store::definition::*;
use leasehold_store::diagnosis::Diagnosis;
use leasehold_store::execution::*;
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped};
use leasehold_store::instance::{Instance, InstanceBeat};
use leasehold_store::job::*;
use leasehold_store::key::{Key, KeyCreated, NewKey};
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
use leasehold_store::prune::{Prune, Pruned};
use leasehold_store::queue::{JobCounts, Queue, QueueChange, QueueUse};
use leasehold_store::request::*;
use leasehold_store::wake::Wake;
use leasehold_store::workspace::*;
use leasehold_store::{Capabilities, MigrationStatus, Page, Result, Store, fresh_id};
use std::time::Duration;
use tokio::sync::watch;

#[async_trait]
impl Store for Model {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "model",
            shared: false,
        }
    }

    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        Ok(Vec::new())
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        Ok(Vec::new())
    }

    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated> {
        self.state().create_workspace(new, self.now())
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        let state = self.state();
        Ok(state.workspaces.get(&id).map(|row| row.workspace.clone()))
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        Ok(self.state().workspace_named(name).cloned())
    }

    async fn workspace_list(&self, at: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        Ok(self.state().list_workspaces(at))
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        self.update(id, change)
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        Ok(self.delete_workspace(id))
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        Ok(self.state().slots(id))
    }

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        Ok(self.state().workspace_overview(limit, self.now()))
    }

    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated> {
        Ok(self.state().create_definition(new, self.now()))
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        Ok(self.state().definition(workspace, id).cloned())
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        Ok(self.state().definition_named(workspace, name).cloned())
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        at: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        Ok(self.state().list_definitions(workspace, at))
    }

    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool> {
        let mut state = self.state();
        let there = state.definition(workspace, id).is_some();
        Ok(there && state.deleted_definitions.insert(id))
    }

    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>> {
        Ok(self.state().publish(new, self.now()))
    }

    async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Option<Version>> {
        let state = self.state();
        let version = state.versions.get(&id);
        Ok(version.filter(|v| v.workspace == workspace).cloned())
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        at: Page<u32>,
    ) -> Result<Vec<Version>> {
        Ok(self.state().list_versions(workspace, definition, at))
    }

    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        self.enqueue(enqueue)
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        let now = self.now();
        Ok(self.state().claim(claim, now, &mut |_| fresh_id()))
    }

    async fn request_settle(&self) -> Result<Settled> {
        Ok(self.state().settle(self.now()))
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<Vec<RequestId>> {
        Ok(self.state().renew(owner, claims, lease, self.now()))
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        Ok(self.dispatched(owner, claims))
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        Ok(self.release(owner, releases))
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        Ok(self.fail(owner, fail))
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        Ok(self.recover(by, limit))
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        Ok(self.cancel(cancel))
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>> {
        let mut untold = self.state().untold();
        untold.truncate(limit.min(SWEEP_MAX_BATCH) as usize);
        Ok(untold)
    }

    async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()> {
        let mut state = self.state();
        wishes.iter().for_each(|wish| state.told(wish));
        Ok(())
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        Ok(self.redrive(redrive))
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        Ok(self.redrive_many(redrive))
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        let state = self.state();
        Ok(state.own(workspace, id).map(|row| row.request.clone()))
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        let state = self.state();
        Ok(state.requests.get(&id).map(|row| row.request.clone()))
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        at: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        Ok(self.state().list_requests(filter, at))
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        Ok(self.state().counts(workspace))
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        Ok(self.state().oldest(self.now()))
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        Ok(self.state().timeline(workspace, id))
    }

    async fn request_place(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        let place = self.state().request_place(workspace, id, self.now());
        Ok(place.map(|n| u32::try_from(n).map_or(up_to, |n| n.min(up_to))))
    }

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
        Ok(self.finish(by, finishes))
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        Ok(self.state().list_running(ids))
    }

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

    async fn diagnose(&self) -> Result<Diagnosis> {
        Ok(Diagnosis::Memory)
    }

    async fn execution_list_active(&self, at: Page<ActiveKey>) -> Result<Vec<Execution>> {
        Ok(self.state().list_active(at))
    }

    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        Ok(self.state().acquire(request, self.now()))
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        Ok(self.state().extend(token, at_most_for, self.now()))
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        Ok(self.state().give_back(token, at_least_for, self.now()))
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        Ok(self.state().locks.values().cloned().collect())
    }

    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        self.state().create_key(new, self.now())
    }

    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        self.state().create_first_key(new, self.now())
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let state = self.state();
        Ok(state.keys.values().find(|key| key.hash == *hash).cloned())
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        Ok(self.state().keys.get(&id).cloned())
    }

    async fn key_list(&self, workspace: Option<WorkspaceId>, at: Page<KeyId>) -> Result<Vec<Key>> {
        Ok(self.state().list_keys(workspace, at))
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        Ok(self.state().revoke_key(id, self.now()))
    }

    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()> {
        self.state().beat(beat, forget_after, self.now());
        Ok(())
    }

    async fn instance_leave(&self, id: &str) -> Result<()> {
        self.state().instances.remove(id);
        Ok(())
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        Ok(self.state().instances.values().cloned().collect())
    }

    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        self.state().changes(start, workspace, limit)
    }

    async fn wake_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.bells.wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.bells.ring(wake);
        Ok(())
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        Ok(self.state().prune(prune, self.now()))
    }

    async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue> {
        Ok(self.jobs(|jobs, now| jobs.update_queue(name, change, now)))
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        Ok(self.jobs(|jobs, _| jobs.queues.get(name).cloned()))
    }

    async fn queue_list(&self, page: Page<String>) -> Result<Vec<Queue>> {
        Ok(self.jobs(|jobs, _| jobs.list_queues(&page)))
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        Ok(self.jobs(|jobs, now| jobs.counts(name, now)))
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        Ok(self.jobs(|jobs, now| jobs.overview(limit, up_to, now)))
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        Ok(self.jobs(|jobs, _| jobs.limit))
    }

    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        self.jobs(|jobs, _| jobs.set_limit(limit));
        Ok(())
    }

    async fn job_enqueue(&self, new: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        self.jobs(|jobs, now| jobs.enqueue_checked(new, now))
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        Ok(self.jobs(|jobs, now| jobs.claim_first(claim, now)))
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>> {
        Ok(self.jobs(|jobs, now| jobs.renew(worker, claims, lease, now)))
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        Ok(self.job_finish(worker, finishes))
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        Ok(self.jobs(|jobs, now| jobs.progress(worker, claim, progress, now)))
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        Ok(self.jobs(|jobs, now| jobs.requeue_expired(limit, now)))
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        Ok(self.jobs(|jobs, now| jobs.cancel(id, now)))
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        Ok(self.jobs(|jobs, now| jobs.get(id, now)))
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        Ok(self.jobs(|jobs, now| jobs.list(filter, page, now)))
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        Ok(self.jobs(|jobs, now| jobs.prune(prune, now)))
    }

    async fn job_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn job_bell(&self) -> watch::Receiver<u64> {
        self.job_bell.subscribe()
    }

    async fn graph_start(&self, execution: ExecutionId) -> Result<GraphStarted> {
        Ok(self.graph_start(execution))
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        Ok(self.graph_get(execution))
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        Ok(self.graph_nodes(execution))
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        Ok(self.graph_output(execution, node))
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        Ok(self.graph_stop(execution, stop, by, reason))
    }

    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        Ok(self.graph_settle(by, limit))
    }
}
