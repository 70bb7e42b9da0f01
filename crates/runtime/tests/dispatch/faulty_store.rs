//! A real store with faults put in front of it: calls by name fail, lose their answer or stand still. Judges nothing.

use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{
    DefinitionId, ExecutionId, JobId, JsonText, KeyId, RequestId, Timestamp, VersionId, WorkspaceId,
};
use leasehold_store::capacity::{CapacityAudit, CapacityRepair, Repaired};
use leasehold_store::change::{ChangePage, ChangeStart, Event};
use leasehold_store::definition::{
    Definition, DefinitionCreated, NewDefinition, NewVersion, Version,
};
use leasehold_store::diagnosis::Diagnosis;
use leasehold_store::execution::{
    ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished,
};
use leasehold_store::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped};
use leasehold_store::instance::{Instance, InstanceBeat};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobsFinished, JobsPruned,
    NewJob,
};
use leasehold_store::key::{Key, KeyCreated, NewKey};
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
use leasehold_store::prune::{Prune, Pruned};
use leasehold_store::queue::{JobCounts, Queue, QueueChange, QueueUse};
use leasehold_store::request::{
    Cancel, CancelWish, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Dispatched, Enqueue,
    Enqueued, Fail, Oldest, Recovered, Redrive, RedriveMany, Redriven, Release, Released, Request,
    RequestFilter, Settled,
};
use leasehold_store::wake::Wake;
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
};
use leasehold_store::{Capabilities, Error, ErrorKind, MigrationStatus, Page, Result, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// What happens to one call.
#[derive(Clone)]
pub(crate) enum Outage {
    /// None: it is done, and the next may go otherwise.
    Passes,
    /// It never arrives.
    CallLost,
    /// It is done; the answer never arrives.
    AnswerLost,
    /// It waits for a permit before it is done.
    Waits(Arc<Semaphore>),
}

pub(crate) struct FaultyStore {
    real: Arc<dyn Store>,
    planned: Mutex<HashMap<&'static str, VecDeque<Outage>>>,
    calls: Mutex<HashMap<&'static str, usize>>,
}

impl FaultyStore {
    pub(crate) fn before(real: Arc<dyn Store>) -> Self {
        Self {
            real,
            planned: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// The next calls of this name go so; those after them are real.
    pub(crate) fn inject(&self, name: &'static str, outages: &[Outage]) {
        let mut planned = self.planned.lock().unwrap();
        let queue = planned.entry(name).or_default();
        queue.extend(outages.iter().cloned());
    }

    /// How often this was called.
    pub(crate) fn calls(&self, name: &'static str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// What is planned for this call, counted.
    fn next(&self, name: &'static str) -> Option<Outage> {
        *self.calls.lock().unwrap().entry(name).or_default() += 1;
        let mut planned = self.planned.lock().unwrap();
        planned.get_mut(name).and_then(VecDeque::pop_front)
    }
}

fn lost(name: &'static str) -> Error {
    Error::new(name, ErrorKind::Unavailable("injected".to_owned()))
}

macro_rules! with_faults {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for FaultyStore {
            fn capabilities(&self) -> Capabilities {
                self.real.capabilities()
            }

            async fn wake_wait(&self, wake: Wake) {
                self.real.wake_wait(wake).await;
            }

            fn job_bell(&self) -> watch::Receiver<u64> {
                self.real.job_bell()
            }

            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer> {
                match self.next(stringify!($name)) {
                    None | Some(Outage::Passes) => {}
                    Some(Outage::CallLost) => return Err(lost(stringify!($name))),
                    Some(Outage::Waits(barrier)) => barrier.acquire().await.unwrap().forget(),
                    Some(Outage::AnswerLost) => {
                        self.real.$name($($arg),*).await?;
                        return Err(lost(stringify!($name)));
                    }
                }
                self.real.$name($($arg),*).await
            })*
        }
    };
}

with_faults! {
    schema_migrate() -> Vec<MigrationStatus>;
    schema_status() -> Vec<MigrationStatus>;
    workspace_create(new: &NewWorkspace) -> WorkspaceCreated;
    workspace_get(id: WorkspaceId) -> Option<Workspace>;
    workspace_find(name: &str) -> Option<Workspace>;
    workspace_list(page: Page<WorkspaceId>) -> Vec<Workspace>;
    workspace_update(id: WorkspaceId, change: &WorkspaceChange) -> Option<Workspace>;
    workspace_delete(id: WorkspaceId) -> bool;
    workspace_slots(id: WorkspaceId) -> Option<SlotUse>;
    workspace_overview(limit: u32) -> WorkspaceOverview;
    definition_create(new: &NewDefinition) -> DefinitionCreated;
    definition_get(workspace: WorkspaceId, id: DefinitionId) -> Option<Definition>;
    definition_find(workspace: WorkspaceId, name: &str) -> Option<Definition>;
    definition_list(workspace: WorkspaceId, page: Page<DefinitionId>) -> Vec<Definition>;
    definition_delete(workspace: WorkspaceId, id: DefinitionId) -> bool;
    version_publish(new: &NewVersion) -> Option<Version>;
    version_get(workspace: WorkspaceId, id: VersionId) -> Option<Version>;
    version_list(workspace: WorkspaceId, definition: DefinitionId, page: Page<u32>) -> Vec<Version>;
    request_enqueue(enqueue: &Enqueue) -> Enqueued;
    request_claim(claim: &Claim) -> ClaimOutcome;
    request_settle() -> Settled;
    request_renew(owner: &str, claims: &[ClaimRef], lease: Duration) -> Vec<RequestId>;
    request_dispatched(owner: &str, claims: &[ClaimRef]) -> Vec<Dispatched>;
    request_release(owner: &str, releases: &[Release]) -> Vec<Released>;
    request_fail(owner: &str, fail: &Fail) -> bool;
    request_recover(by: &str, limit: u32) -> Vec<Recovered>;
    request_cancel(cancel: &Cancel) -> Cancelled;
    request_cancel_list(limit: u32) -> Vec<CancelWish>;
    request_cancel_told(wishes: &[CancelWish]) -> ();
    request_redrive(redrive: &Redrive) -> Redriven;
    request_redrive_many(redrive: &RedriveMany) -> Vec<(RequestId, RequestId)>;
    request_get(workspace: WorkspaceId, id: RequestId) -> Option<Request>;
    request_find(id: RequestId) -> Option<Request>;
    request_list(filter: &RequestFilter, page: Page<RequestId>) -> Vec<Request>;
    request_counts(workspace: WorkspaceId) -> Counts;
    request_oldest() -> Oldest;
    request_timeline(workspace: WorkspaceId, id: RequestId) -> Vec<Event>;
    request_place(workspace: WorkspaceId, id: RequestId, up_to: u32) -> Option<u32>;
    execution_get(workspace: WorkspaceId, id: ExecutionId) -> Option<Execution>;
    execution_find(id: ExecutionId) -> Option<Execution>;
    execution_list(filter: &ExecutionFilter, page: Page<i64>) -> Vec<Execution>;
    execution_finish(by: &str, finishes: &[ExecutionFinish]) -> Vec<ExecutionFinished>;
    execution_list_running(ids: &[ExecutionId]) -> Vec<Execution>;
    execution_list_active(page: Page<ActiveKey>) -> Vec<Execution>;
    capacity_audit(page: Page<WorkspaceId>) -> CapacityAudit;
    capacity_repair(repair: &CapacityRepair<'_>) -> Repaired;
    diagnose() -> Diagnosis;
    lock_acquire(request: &LockRequest) -> LockAcquired;
    lock_extend(token: &LockToken, at_most_for: Duration) -> bool;
    lock_release(token: &LockToken, at_least_for: Duration) -> bool;
    lock_list() -> Vec<LockState>;
    key_create(new: &NewKey) -> KeyCreated;
    key_create_first(new: &NewKey) -> Option<Key>;
    key_find(hash: &[u8; 32]) -> Option<Key>;
    key_get(id: KeyId) -> Option<Key>;
    key_list(workspace: Option<WorkspaceId>, page: Page<KeyId>) -> Vec<Key>;
    key_revoke(id: KeyId) -> Option<Key>;
    instance_beat(beat: &InstanceBeat, forget_after: Duration) -> ();
    instance_leave(id: &str) -> ();
    instance_list() -> Vec<Instance>;
    now() -> Timestamp;
    change_list(start: &ChangeStart, workspace: Option<WorkspaceId>, limit: u32) -> ChangePage;
    wake_arm() -> bool;
    wake_ring(wake: Wake) -> ();
    prune(prune: &Prune) -> Pruned;
    queue_update(name: &str, change: &QueueChange) -> Queue;
    queue_get(name: &str) -> Option<Queue>;
    queue_list(page: Page<String>) -> Vec<Queue>;
    queue_counts(name: &str) -> JobCounts;
    queue_overview(limit: u32, up_to: u32) -> Vec<QueueUse>;
    job_limit() -> Option<u32>;
    job_limit_set(limit: Option<u32>) -> ();
    job_enqueue(jobs: &[NewJob]) -> Vec<EnqueuedJob>;
    job_claim(claim: &JobClaim) -> JobsClaimed;
    job_renew(worker: &str, claims: &[JobRef], lease: Duration) -> Vec<JobId>;
    job_finish(worker: &str, finishes: &[JobFinish]) -> JobsFinished;
    job_progress(worker: &str, claim: JobRef, progress: &JsonText) -> bool;
    job_requeue_expired(limit: u32) -> Vec<ExpiredJob>;
    job_cancel(id: JobId) -> JobCancelled;
    job_get(id: JobId) -> Option<Job>;
    job_list(filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
    job_prune(prune: &JobPrune) -> JobsPruned;
    job_arm() -> bool;
    graph_start(execution: ExecutionId) -> GraphStarted;
    graph_get(execution: ExecutionId) -> Option<GraphRun>;
    graph_nodes(execution: ExecutionId) -> Option<Vec<NodeRun>>;
    graph_output(execution: ExecutionId, node: usize) -> Option<JsonText>;
    graph_stop(execution: ExecutionId, stop: GraphStop, by: &str, reason: &str) -> GraphStopped;
    graph_settle(by: &str, limit: u32) -> Vec<EndedExecution>;
}
