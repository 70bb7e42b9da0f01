//! The storage port's trait, method by method: each hands its noun's function to the writer or to a reader.

use crate::request::{cancel, claim, enqueue, read, redrive, resolve, settle};
use crate::{
    SqliteStore, change, definition, execution, job, lock, migrate, prune, queue, version,
    workspace,
};
use async_trait::async_trait;
use leasehold_core::{
    DefinitionId, ExecutionId, JobId, JsonText, RequestId, VersionId, WorkspaceId,
};
use leasehold_store::change::{ChangePage, ChangeStart, Event};
use leasehold_store::definition::{
    Definition, DefinitionCreated, NewDefinition, NewVersion, Version,
};
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFinish, ExecutionFinished};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobClaim, JobFilter, JobFinish, JobFinished,
    JobPrune, JobRef, JobsClaimed, JobsPruned, NewJob,
};
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
use leasehold_store::prune::{Prune, Pruned};
use leasehold_store::queue::{JobCounts, Queue, QueueChange};
use leasehold_store::request::{
    Cancel, CancelWish, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Dispatched, Enqueue,
    Enqueued, Fail, Recovered, Redrive, RedriveMany, Redriven, Release, Released, Request,
    RequestFilter, Settled,
};
use leasehold_store::wake::Wake;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated,
};
use leasehold_store::{Capabilities, Error, MigrationStatus, Page, Result, Store};
use std::sync::{Arc, PoisonError};
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
        let new = new.clone();
        self.write("workspace_create", move |s| workspace::create(s, &new))
            .await
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        self.read("workspace_get", move |s| workspace::get(s, id))
            .await
    }

    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        self.read("workspace_list", move |s| workspace::list(s, page))
            .await
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        let change = *change;
        self.write("workspace_update", move |s| {
            workspace::update(s, id, &change)
        })
        .await
    }

    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool> {
        self.write("workspace_delete", move |s| workspace::delete(s, id))
            .await
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        self.read("workspace_slots", move |s| workspace::slots(s, id))
            .await
    }

    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated> {
        let new = new.clone();
        self.write("definition_create", move |s| definition::create(s, &new))
            .await
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        self.read("definition_get", move |s| definition::get(s, workspace, id))
            .await
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        self.read("definition_list", move |s| {
            definition::list(s, workspace, page)
        })
        .await
    }

    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool> {
        self.write("definition_delete", move |s| {
            definition::delete(s, workspace, id)
        })
        .await
    }

    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>> {
        let new = new.clone();
        self.write("version_publish", move |s| version::publish(s, &new))
            .await
    }

    async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Option<Version>> {
        self.read("version_get", move |s| version::get(s, workspace, id))
            .await
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<Version>> {
        self.read("version_list", move |s| {
            version::list(s, workspace, definition, page)
        })
        .await
    }

    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        let context = "request_enqueue";
        let call = enqueue::Call::prepare(enqueue).map_err(|kind| Error::new(context, kind))?;
        self.writer
            .write_or_undo(context, move |s| enqueue::enqueue(s, &call))
            .await
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        let claim = claim.clone();
        let cost = Arc::clone(&self.claim_cost);
        self.write("request_claim", move |s| {
            let outcome = claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
    }

    async fn request_settle(&self) -> Result<Settled> {
        self.write("request_settle", settle::settle).await
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<Vec<RequestId>> {
        let (owner, claims) = (owner.to_owned(), claims.to_vec());
        self.write("request_renew", move |s| {
            resolve::renew(s, &owner, &claims, lease)
        })
        .await
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        let (owner, claims) = (owner.to_owned(), claims.to_vec());
        self.write("request_dispatched", move |s| {
            resolve::dispatched(s, &owner, &claims)
        })
        .await
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        let (owner, releases) = (owner.to_owned(), releases.to_vec());
        self.write("request_release", move |s| {
            resolve::release(s, &owner, &releases)
        })
        .await
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        let (owner, fail) = (owner.to_owned(), fail.clone());
        self.write("request_fail", move |s| resolve::fail(s, &owner, &fail))
            .await
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        let by = by.to_owned();
        self.write("request_recover", move |s| resolve::recover(s, &by, limit))
            .await
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        let cancel = cancel.clone();
        self.write("request_cancel", move |s| cancel::cancel(s, &cancel))
            .await
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>> {
        self.read("request_cancel_list", move |s| cancel::list(s, limit))
            .await
    }

    async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()> {
        let wishes = wishes.to_vec();
        self.write("request_cancel_told", move |s| cancel::told(s, &wishes))
            .await
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        let redrive = redrive.clone();
        self.write("request_redrive", move |s| redrive::redrive(s, &redrive))
            .await
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        let many = redrive.clone();
        self.write("request_redrive_many", move |s| {
            redrive::redrive_many(s, &many)
        })
        .await
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        self.read("request_get", move |s| read::get(s, workspace, id))
            .await
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        let filter = *filter;
        self.read("request_list", move |s| read::list(s, &filter, page))
            .await
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        self.read("request_counts", move |s| workspace::counts(s, workspace))
            .await
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        self.read("request_timeline", move |s| {
            read::timeline(s, workspace, id)
        })
        .await
    }

    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        self.read("execution_get", move |s| execution::get(s, workspace, id))
            .await
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        let (by, finishes) = (by.to_owned(), finishes.to_vec());
        self.write("execution_finish", move |s| {
            execution::finish(s, &by, &finishes)
        })
        .await
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        let ids = ids.to_vec();
        self.read("execution_list_running", move |s| {
            execution::list_running(s, &ids)
        })
        .await
    }

    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>> {
        self.read("execution_list_active", move |s| {
            execution::list_active(s, page)
        })
        .await
    }

    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        let request = request.clone();
        self.write("lock_acquire", move |s| lock::acquire(s, &request))
            .await
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        let token = token.clone();
        self.write("lock_extend", move |s| lock::extend(s, &token, at_most_for))
            .await
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        let token = token.clone();
        self.write("lock_release", move |s| {
            lock::release(s, &token, at_least_for)
        })
        .await
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        self.read("lock_list", lock::list).await
    }

    async fn change_list(&self, start: &ChangeStart, limit: u32) -> Result<ChangePage> {
        let start = start.clone();
        self.read("change_list", move |s| change::list(s, &start, limit))
            .await
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
        let (name, change) = (name.to_owned(), *change);
        self.write("queue_update", move |s| queue::update(s, &name, &change))
            .await
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
        let name = name.to_owned();
        self.read("queue_counts", move |s| queue::counts(s, &name))
            .await
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        self.read("job_limit", queue::limit).await
    }

    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()> {
        self.write("job_limit_set", move |s| queue::limit_set(s, limit))
            .await
    }

    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        let call = job::enqueue::Call::prepare(jobs);
        self.write("job_enqueue", move |s| job::enqueue::enqueue(s, &call))
            .await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        let (claim, cost) = (claim.clone(), Arc::clone(&self.claim_cost));
        self.write("job_claim", move |s| {
            let outcome = job::claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>> {
        let (worker, claims) = (worker.to_owned(), claims.to_vec());
        self.write("job_renew", move |s| {
            job::hold::renew(s, &worker, &claims, lease)
        })
        .await
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<Vec<JobFinished>> {
        let (worker, finishes) = (worker.to_owned(), finishes.to_vec());
        self.write("job_finish", move |s| {
            job::finish::finish(s, &worker, &finishes)
        })
        .await
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        let (worker, progress) = (worker.to_owned(), progress.clone());
        self.write("job_progress", move |s| {
            job::hold::progress(s, &worker, claim, &progress)
        })
        .await
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        self.write("job_requeue_expired", move |s| {
            job::expire::take_back(s, limit)
        })
        .await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        self.write("job_cancel", move |s| job::cancel::cancel(s, id))
            .await
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        self.read("job_get", move |s| job::read::get(s, id)).await
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        let filter = filter.clone();
        self.read("job_list", move |s| job::list::list(s, &filter, page))
            .await
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        let prune = *prune;
        self.write("job_prune", move |s| job::prune::prune(s, &prune))
            .await
    }

    async fn job_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn job_bell(&self) -> watch::Receiver<u64> {
        self.writer.bells().workers()
    }
}
