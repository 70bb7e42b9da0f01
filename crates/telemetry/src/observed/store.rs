//! A store as it is, with every call timed and counted by what came of it. Changes no answer.

use crate::Telemetry;
use crate::metrics::{Metrics, StoreSeries};
use crate::observed::tally::Tally;
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
use leasehold_store::{Capabilities, Error, MigrationStatus, Page, Result, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Counts what the calls of a store come to.
pub struct ObservedStore {
    real: Arc<dyn Store>,
    calls: Calls,
    tally: Tally,
}

impl ObservedStore {
    /// Watches this store; who waits for wake-ups is not timed.
    pub fn new(real: Arc<dyn Store>, telemetry: &Telemetry) -> Self {
        Self {
            real,
            calls: Calls::new(&telemetry.metrics),
            tally: Tally::new(telemetry.metrics.clone()),
        }
    }
}

/// Every call is timed; what stands behind an arrow counts what it came to.
macro_rules! observed {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty $(=> |$tally:ident, $came:ident| $count:expr)?;)*) => {
        /// The series of each call, found once.
        struct Calls {
            $($name: StoreSeries,)*
        }

        impl Calls {
            fn new(metrics: &Metrics) -> Self {
                Self {
                    $($name: StoreSeries::new(metrics, stringify!($name)),)*
                }
            }
        }

        #[async_trait]
        impl Store for ObservedStore {
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
                let begun = Instant::now();
                let answer = self.real.$name($($arg),*).await;
                self.calls.$name.answered(begun.elapsed(), answer.as_ref().err().map(Error::is_retryable));
                $(if let Ok($came) = &answer {
                    let $tally = &self.tally;
                    $count;
                })?
                answer
            })*
        }
    };
}

observed! {
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
    request_enqueue(enqueue: &Enqueue) -> Enqueued => |tally, came| tally.enqueued(came);
    request_claim(claim: &Claim) -> ClaimOutcome => |tally, came| tally.claimed(claim, came);
    request_settle() -> Settled;
    request_renew(owner: &str, claims: &[ClaimRef], lease: Duration) -> Vec<RequestId> => |tally, came| tally.renewed(came.len());
    request_dispatched(owner: &str, claims: &[ClaimRef]) -> Vec<Dispatched>;
    request_release(owner: &str, releases: &[Release]) -> Vec<Released> => |tally, came| tally.released(came);
    request_fail(owner: &str, fail: &Fail) -> bool => |tally, came| if *came { tally.failed(fail.reason) };
    request_recover(by: &str, limit: u32) -> Vec<Recovered> => |tally, came| tally.recovered(came.len());
    request_cancel(cancel: &Cancel) -> Cancelled => |tally, came| tally.cancelled(*came);
    request_cancel_list(limit: u32) -> Vec<CancelWish>;
    request_cancel_told(wishes: &[CancelWish]) -> ();
    request_redrive(redrive: &Redrive) -> Redriven => |tally, came| if matches!(came, Redriven::Enqueued(_)) { tally.enqueued_anew(1) };
    request_redrive_many(redrive: &RedriveMany) -> Vec<(RequestId, RequestId)> => |tally, came| tally.enqueued_anew(came.len());
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
    execution_finish(by: &str, finishes: &[ExecutionFinish]) -> Vec<ExecutionFinished> => |tally, came| tally.finished(came);
    execution_list_running(ids: &[ExecutionId]) -> Vec<Execution>;
    execution_list_active(page: Page<ActiveKey>) -> Vec<Execution>;
    capacity_audit(page: Page<WorkspaceId>) -> CapacityAudit;
    capacity_repair(repair: &CapacityRepair<'_>) -> Repaired;
    diagnose() -> Diagnosis;
    lock_acquire(request: &LockRequest) -> LockAcquired => |tally, came| tally.lock_acquired(request, came);
    lock_extend(token: &LockToken, at_most_for: Duration) -> bool => |tally, came| tally.lock_extended(token, at_most_for, *came);
    lock_release(token: &LockToken, at_least_for: Duration) -> bool => |tally, came| tally.lock_released(token, *came);
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
    job_enqueue(jobs: &[NewJob]) -> Vec<EnqueuedJob> => |tally, came| tally.jobs_enqueued(jobs, came);
    job_claim(claim: &JobClaim) -> JobsClaimed => |tally, came| tally.jobs_claimed(&claim.queue, came.jobs.len());
    job_renew(worker: &str, claims: &[JobRef], lease: Duration) -> Vec<JobId> => |tally, came| tally.jobs_renewed(came.len());
    job_finish(worker: &str, finishes: &[JobFinish]) -> JobsFinished => |tally, came| tally.jobs_finished(came);
    job_progress(worker: &str, claim: JobRef, progress: &JsonText) -> bool;
    job_requeue_expired(limit: u32) -> Vec<ExpiredJob> => |tally, came| tally.jobs_expired(came.len());
    job_cancel(id: JobId) -> JobCancelled;
    job_get(id: JobId) -> Option<Job>;
    job_list(filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
    job_prune(prune: &JobPrune) -> JobsPruned;
    job_arm() -> bool;
    graph_start(execution: ExecutionId) -> GraphStarted => |tally, came| if let GraphStarted::Ended(ended) = came { tally.graphs_ended([ended]) };
    graph_get(execution: ExecutionId) -> Option<GraphRun>;
    graph_nodes(execution: ExecutionId) -> Option<Vec<NodeRun>>;
    graph_output(execution: ExecutionId, node: usize) -> Option<JsonText>;
    graph_stop(execution: ExecutionId, stop: GraphStop, by: &str, reason: &str) -> GraphStopped => |tally, came| if let GraphStopped::Stopped(ended) = came { tally.graphs_ended([ended]) };
    graph_settle(by: &str, limit: u32) -> Vec<EndedExecution> => |tally, came| tally.graphs_settled(came);
}
