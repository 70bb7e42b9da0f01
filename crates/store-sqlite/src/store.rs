//! The storage port's trait, method by method: each hands its noun's function to the writer or to a reader, or is handed on to a
//! noun that has many.

use crate::row::moment;
use crate::{
    SqliteStore, calls, capacity, diagnosis, graph, instance, job, key, lock, migrate, prune,
    queue, request,
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
impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "sqlite",
            shared: false,
        }
    }

    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>> {
        self.write("schema_migrate", migrate::migrate).await
    }

    async fn schema_status(&self) -> Result<Vec<MigrationStatus>> {
        self.read("schema_status", migrate::status).await
    }

    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated> {
        calls::workspace_create(self, new).await
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        calls::workspace_get(self, id).await
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        calls::workspace_find(self, name).await
    }

    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        calls::workspace_list(self, page).await
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        calls::workspace_update(self, id, change).await
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        calls::workspace_delete(self, id).await
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        calls::workspace_slots(self, id).await
    }

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        calls::workspace_overview(self, limit).await
    }

    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated> {
        calls::definition_create(self, new).await
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        calls::definition_get(self, workspace, id).await
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        calls::definition_find(self, workspace, name).await
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        calls::definition_list(self, workspace, page).await
    }

    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool> {
        calls::definition_delete(self, workspace, id).await
    }

    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>> {
        calls::version_publish(self, new).await
    }

    async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Option<Version>> {
        calls::version_get(self, workspace, id).await
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<Version>> {
        calls::version_list(self, workspace, definition, page).await
    }

    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        request::calls::enqueue(self, enqueue).await
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        request::calls::claim(self, claim).await
    }

    async fn request_settle(&self) -> Result<Settled> {
        request::calls::settle(self).await
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<Vec<RequestId>> {
        request::calls::renew(self, owner, claims, lease).await
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        request::calls::dispatched(self, owner, claims).await
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        request::calls::release(self, owner, releases).await
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        request::calls::fail(self, owner, fail).await
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        request::calls::recover(self, by, limit).await
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        request::calls::cancel(self, cancel).await
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>> {
        request::calls::cancel_list(self, limit).await
    }

    async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()> {
        request::calls::cancel_told(self, wishes).await
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        request::calls::redrive(self, redrive).await
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        request::calls::redrive_many(self, redrive).await
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        request::calls::get(self, workspace, id).await
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        request::calls::find(self, id).await
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        request::calls::list(self, filter, page).await
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        request::calls::counts(self, workspace).await
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        request::calls::oldest(self).await
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        request::calls::timeline(self, workspace, id).await
    }

    async fn request_place(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        request::calls::place(self, workspace, id, up_to).await
    }

    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        calls::execution_get(self, workspace, id).await
    }

    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>> {
        calls::execution_find(self, id).await
    }

    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        page: Page<i64>,
    ) -> Result<Vec<Execution>> {
        calls::execution_list(self, filter, page).await
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        calls::execution_finish(self, by, finishes).await
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        calls::execution_list_running(self, ids).await
    }

    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit> {
        self.read("capacity_audit", move |s| capacity::audit(s, page))
            .await
    }

    async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired> {
        let (drift, ended) = (repair.drift.clone(), repair.ended);
        self.write("capacity_repair", move |s| {
            capacity::repair(s, &drift, ended)
        })
        .await
    }

    async fn diagnose(&self) -> Result<Diagnosis> {
        diagnosis::diagnose(self).await
    }

    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>> {
        calls::execution_list_active(self, page).await
    }

    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        calls::lock_acquire(self, request).await
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        calls::lock_extend(self, token, at_most_for).await
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        calls::lock_release(self, token, at_least_for).await
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        self.read("lock_list", lock::list).await
    }

    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated> {
        let new = new.clone();
        self.write("key_create", move |s| key::create(s, &new))
            .await
    }

    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>> {
        let new = new.clone();
        self.write("key_create_first", move |s| key::create_first(s, &new))
            .await
    }

    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>> {
        let hash = *hash;
        self.read("key_find", move |s| key::find(s, &hash)).await
    }

    async fn key_get(&self, id: KeyId) -> Result<Option<Key>> {
        self.read("key_get", move |s| key::get(s, id)).await
    }

    async fn key_list(
        &self,
        workspace: Option<WorkspaceId>,
        page: Page<KeyId>,
    ) -> Result<Vec<Key>> {
        self.read("key_list", move |s| key::list(s, workspace, page))
            .await
    }

    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>> {
        self.write("key_revoke", move |s| key::revoke(s, id)).await
    }

    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()> {
        calls::instance_beat(self, beat, forget_after).await
    }

    async fn instance_leave(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write("instance_leave", move |s| instance::leave(s, &id))
            .await
    }

    async fn instance_list(&self) -> Result<Vec<Instance>> {
        self.read("instance_list", instance::list).await
    }

    async fn now(&self) -> Result<Timestamp> {
        self.read("now", |s| moment(s.now)).await
    }

    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        calls::change_list(self, start, workspace, limit).await
    }

    async fn wake_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.writer.bells().wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.writer.bells().ring(wake);
        Ok(())
    }

    async fn prune(&self, prune: &Prune) -> Result<Pruned> {
        let prune = *prune;
        self.write("prune", move |s| prune::prune(s, &prune)).await
    }

    async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue> {
        calls::queue_update(self, name, change).await
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        let name = name.to_owned();
        self.read("queue_get", move |s| queue::get(s, &name)).await
    }

    async fn queue_list(&self, page: Page<String>) -> Result<Vec<Queue>> {
        self.read("queue_list", move |s| queue::list(s, &page))
            .await
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        calls::queue_counts(self, name).await
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        calls::queue_overview(self, limit, up_to).await
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        self.read("job_limit", queue::limit).await
    }

    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        calls::job_limit_set(self, limit).await
    }

    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        job::calls::enqueue(self, jobs).await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        job::calls::claim(self, claim).await
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>> {
        job::calls::renew(self, worker, claims, lease).await
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        job::calls::finish(self, worker, finishes).await
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        job::calls::progress(self, worker, claim, progress).await
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        job::calls::requeue_expired(self, limit).await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        job::calls::cancel(self, id).await
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        job::calls::get(self, id).await
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        job::calls::list(self, filter, page).await
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        job::calls::prune(self, prune).await
    }

    async fn job_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn job_bell(&self) -> watch::Receiver<u64> {
        self.writer.bells().workers()
    }

    async fn graph_start(&self, execution: ExecutionId) -> Result<GraphStarted> {
        graph::calls::start(self, execution).await
    }

    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>> {
        graph::calls::get(self, execution).await
    }

    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>> {
        graph::calls::nodes(self, execution).await
    }

    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>> {
        graph::calls::output(self, execution, node).await
    }

    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped> {
        graph::calls::stop(self, execution, stop, by, reason).await
    }

    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>> {
        graph::calls::settle(self, by, limit).await
    }
}
