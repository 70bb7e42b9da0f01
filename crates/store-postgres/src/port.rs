//! The storage port's trait, method by method: each is handed on to the file of its noun.

use crate::graph;
use crate::store::{PostgresStore, sql};
use crate::{
    capacity, change, clock, definition, diagnosis, execution, instance, job, key, lock, migrate,
    overview, prune, queue, request, version, workspace,
};
use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
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
use leasehold_store::{Capabilities, MigrationStatus, Page, Result, Store};
use std::time::Duration;
use tokio::sync::watch;

#[async_trait]
impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "postgres",
            shared: true,
        }
    }

    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        migrate::up(self).await
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        migrate::status(self).await
    }

    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated> {
        workspace::create(self, new).await
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        workspace::get(self, id).await
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        workspace::find(self, name).await
    }

    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        workspace::list(self, page).await
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        workspace::update(self, id, change).await
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        workspace::delete(self, id).await
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        workspace::slots(self, id).await
    }

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        overview::workspaces(self, limit).await
    }

    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated> {
        definition::create(self, new).await
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        definition::get(self, workspace, id).await
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        definition::find(self, workspace, name).await
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        definition::list(self, workspace, page).await
    }

    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool> {
        definition::delete(self, workspace, id).await
    }

    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>> {
        version::publish(self, new).await
    }

    async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Option<Version>> {
        version::get(self, workspace, id).await
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<Version>> {
        version::list(self, workspace, definition, page).await
    }

    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        request::enqueue::enqueue(self, enqueue).await
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        request::claim::claim(self, claim).await
    }

    async fn request_settle(&self) -> Result<Settled> {
        request::claim::settle(self).await
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<Vec<RequestId>> {
        request::resolve::renew(self, owner, claims, lease).await
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        request::resolve::dispatched(self, owner, claims).await
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        request::resolve::release(self, owner, releases).await
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        request::resolve::fail(self, owner, fail).await
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        request::resolve::recover(self, by, limit).await
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        request::cancel::cancel(self, cancel).await
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>> {
        request::cancel::cancel_list(self, limit).await
    }

    async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()> {
        request::cancel::cancel_told(self, wishes).await
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        request::cancel::redrive(self, redrive).await
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        request::cancel::redrive_many(self, redrive).await
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        request::read::get(self, workspace, id).await
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        request::read::find(self, id).await
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        request::read::list(self, filter, page).await
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        request::read::counts(self, workspace).await
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        overview::oldest(self).await
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        request::read::timeline(self, workspace, id).await
    }

    async fn request_place(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        request::read::place(self, workspace, id, up_to).await
    }

    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        execution::get(self, workspace, id).await
    }

    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>> {
        execution::find(self, id).await
    }

    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        page: Page<i64>,
    ) -> Result<Vec<Execution>> {
        execution::list(self, filter, page).await
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        execution::finish(self, by, finishes).await
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        execution::list_running(self, ids).await
    }

    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit> {
        capacity::audit(self, page).await
    }

    async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired> {
        capacity::repair(self, repair).await
    }

    async fn diagnose(&self) -> Result<Diagnosis> {
        diagnosis::diagnose(self).await
    }

    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>> {
        execution::list_active(self, page).await
    }

    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        lock::acquire(self, request).await
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        lock::extend(self, token, at_most_for).await
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        lock::release(self, token, at_least_for).await
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        lock::list(self).await
    }

    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        key::create(self, new).await
    }

    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        key::create_first(self, new).await
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        key::find(self, hash).await
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        key::get(self, id).await
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        key::list(self, workspace, page).await
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        key::revoke(self, id).await
    }

    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()> {
        instance::beat(self, beat, forget_after).await
    }

    async fn instance_leave(&self, id: &str) -> Result<()> {
        instance::leave(self, id).await
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        instance::list(self).await
    }

    async fn now(&self) -> Result<Timestamp> {
        clock::now(self).await
    }

    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        change::list(self, start, workspace, limit).await
    }

    async fn wake_arm(&self) -> Result<bool> {
        Ok(self.wakes.arm().await)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.wakes.wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.wakes.ring(wake);
        let context = "wake_ring";
        self.execute(context, sql!("wake/ring"), &[&wake.as_str()])
            .await
            .map(drop)
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        prune::prune(self, prune).await
    }

    async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue> {
        queue::update(self, name, change).await
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        queue::get(self, name).await
    }

    async fn queue_list(&self, page: Page<String>) -> Result<Vec<Queue>> {
        queue::list(self, page).await
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        job::read::counts(self, name).await
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        overview::queues(self, limit, up_to).await
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        queue::limit(self).await
    }

    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        queue::limit_set(self, limit).await
    }

    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        job::enqueue::enqueue(self, jobs).await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        job::claim::claim(self, claim).await
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>> {
        job::finish::renew(self, worker, claims, lease).await
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        job::finish::finish(self, worker, finishes).await
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        job::finish::progress(self, worker, claim, progress).await
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        job::claim::requeue_expired(self, limit).await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        job::read::cancel(self, id).await
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        job::read::get(self, id).await
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        job::read::list(self, filter, page).await
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        job::read::prune(self, prune).await
    }

    async fn job_arm(&self) -> Result<bool> {
        Ok(self.job_wakes.arm().await)
    }

    fn job_bell(&self) -> watch::Receiver<u64> {
        self.job_wakes.bell()
    }

    async fn graph_start(&self, execution: ExecutionId) -> Result<GraphStarted> {
        graph::start(self, execution).await
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        graph::get(self, execution).await
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        graph::nodes(self, execution).await
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        graph::output(self, execution, node).await
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        graph::stop(self, execution, stop, by, reason).await
    }

    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        graph::settle(self, by, limit).await
    }
}
