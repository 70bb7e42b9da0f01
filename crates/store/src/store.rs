//! The trait itself: every promise a store makes, one atomic operation a method. `store-conformance` tests each sentence here.

use crate::capacity::{CapacityAudit, CapacityRepair, Repaired};
use crate::change::{ChangePage, ChangeStart, Event};
use crate::definition::{Definition, DefinitionCreated, NewDefinition, NewVersion, Version};
use crate::diagnosis::Diagnosis;
use crate::execution::{ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished};
use crate::graph::{EndedExecution, GraphRun, GraphStarted, GraphStopped};
use crate::instance::{Instance, InstanceBeat};
use crate::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobsFinished, JobsPruned,
    NewJob,
};
use crate::key::{Key, KeyCreated, NewKey};
use crate::lock::{LockAcquired, LockRequest, LockState, LockToken};
use crate::prune::{Prune, Pruned};
use crate::queue::{JobCounts, Queue, QueueChange, QueueUse};
use crate::request::{
    Cancel, CancelWish, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Dispatched, Enqueue,
    Enqueued, Fail, Oldest, Recovered, Redrive, RedriveMany, Redriven, Release, Released, Request,
    RequestFilter, Settled,
};
use crate::wake::Wake;
use crate::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
};
use crate::{MigrationStatus, Page, Result};
use async_trait::async_trait;
use leasehold_core::graph::{GraphStop, NodeRun};
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{
    DefinitionId, ExecutionId, JobId, JsonText, KeyId, RequestId, Timestamp, VersionId, WorkspaceId,
};
use std::time::Duration;
use tokio::sync::watch;

/// What stores differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The store's name: `postgres` or `sqlite`.
    pub name: &'static str,
    /// Whether several processes may use it at once.
    pub shared: bool,
}

/// Where everything is kept.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// What this store is and can do.
    fn capabilities(&self) -> Capabilities;

    /// Brings the schema up to this program's, and says what was applied. Safe from many processes at once.
    /// Refuses a schema that is newer or that was applied with another text.
    async fn schema_migrate(&self) -> Result<Vec<MigrationStatus>>;

    /// Every migration this program or the database knows. Changes nothing.
    async fn schema_status(&self) -> Result<Vec<MigrationStatus>>;

    /// Makes a workspace.
    async fn workspace_create(&self, new: &NewWorkspace) -> Result<WorkspaceCreated>;

    /// The workspace, its tombstone if it was deleted, or none.
    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>>;

    /// The workspace of this name that is not deleted, or none.
    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>>;

    /// Workspaces that are not deleted, by id.
    async fn workspace_list(&self, page: Page<WorkspaceId>) -> Result<Vec<Workspace>>;

    /// Changes plan, override or pause; none if there is no such workspace or it is deleted.
    /// A lower limit lets what runs finish and admits nothing until fewer than it hold a slot.
    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>>;

    /// Puts a tombstone: nothing can be enqueued any more, what waits fails with workspace_not_found when
    /// claimed, what runs runs on. False if there is no such workspace or it was deleted already.
    async fn workspace_delete(&self, id: WorkspaceId) -> Result<bool>;

    /// Limit and use of a workspace's slots, counted now.
    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>>;

    /// What goes on in all workspaces that are not deleted: exact, as of one moment, and read from what is kept of each, never from history.
    /// The busiest `limit` are shown: most CLAIMED and DISPATCHED first, then most PENDING, then by name; of equally busy ones those made
    /// first are shown. More than [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX) counts as that many.
    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview>;

    /// Makes a definition without a version.
    async fn definition_create(&self, new: &NewDefinition) -> Result<DefinitionCreated>;

    /// The definition, none if deleted.
    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>>;

    /// The definition of this name in the workspace, none if deleted.
    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>>;

    /// Definitions of a workspace, by id.
    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        page: Page<DefinitionId>,
    ) -> Result<Vec<Definition>>;

    /// Puts a tombstone: what waits of it fails with definition_not_found when claimed. False if not there.
    async fn definition_delete(&self, workspace: WorkspaceId, id: DefinitionId) -> Result<bool>;

    /// Publishes the next version and makes it current; none if there is no such definition.
    async fn version_publish(&self, new: &NewVersion) -> Result<Option<Version>>;

    /// The version, also of a deleted definition.
    async fn version_get(&self, workspace: WorkspaceId, id: VersionId) -> Result<Option<Version>>;

    /// Versions of a definition by number, `page.after` being a number.
    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Result<Vec<Version>>;

    /// Inserts PENDING requests, all or none, each pinned to its definition's current version. A request
    /// whose idempotency key is held in the workspace is not inserted: the holder is returned in its place if
    /// definition and params are the same, else the whole call is a conflict. A request checked against a version that
    /// is no longer current refuses the call as well. Answers are in the order asked.
    /// Exact under races, and free of deadlock whatever the order of keys.
    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued>;

    /// Admits up to `batch` requests in one transaction: workspaces in turn, one admission each a turn; within
    /// one, priority first, then oldest. Each gets a lease, the next fencing token and a RUNNING execution,
    /// which is its slot. Requests that kept their execution come first and take no second slot. A request whose
    /// workspace, definition or version is gone fails with its reason and takes none.
    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome>;

    /// Makes room and work visible to the next claim: what became due, what was enqueued, what was freed.
    /// [`Store::request_claim`] does it itself. Says when the next waiting request becomes due.
    async fn request_settle(&self) -> Result<Settled>;

    /// Extends the leases that the owner still holds with these tokens, and returns which those are.
    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<Vec<RequestId>>;

    /// CLAIMED → DISPATCHED for each claim still held. Answers are in the order asked.
    async fn request_dispatched(&self, owner: &str, claims: &[ClaimRef])
    -> Result<Vec<Dispatched>>;

    /// CLAIMED → PENDING for each claim still held, counted and delayed as its kind says, or → FAILED where
    /// the kind says it is exhausted or a cancellation was wished and nothing was started. Answers in order.
    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>>;

    /// CLAIMED → FAILED for a claim still held whose execution was definitely not started: it is deleted and
    /// its slot is free. False if the lease is lost.
    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool>;

    /// CLAIMED → PENDING for up to `limit` requests whose lease has expired. Execution and slot stay with them:
    /// nobody knows whether the start was sent. Idempotent, safe from everywhere at once.
    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>>;

    /// Fails a PENDING request without an execution at once; for any other open one stores the wish. One whose
    /// start is unknown becomes due at once, so that whoever claims it can give it up.
    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled>;

    /// Wishes to cancel DISPATCHED requests that no engine has been told of, oldest first.
    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelWish>>;

    /// Remembers that the engine was told of these wishes. One that asks for more meanwhile (`force`) stays listed.
    async fn request_cancel_told(&self, wishes: &[CancelWish]) -> Result<()>;

    /// Inserts a new request like a FAILED one, with `redrive_of`. At most one live redrive of each.
    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven>;

    /// Redrives FAILED requests that were never redriven, oldest first; pairs of failed and new.
    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>>;

    /// The request.
    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>>;

    /// The request, whichever workspace's it is.
    async fn request_find(&self, id: RequestId) -> Result<Option<Request>>;

    /// Requests that pass the filter, newest first.
    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>>;

    /// How many requests the workspace has in each status: exact, whatever the backlog.
    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts>;

    /// Since when the oldest request of any workspace, deleted and paused ones too, has been PENDING and due, CLAIMED, and DISPATCHED; the last to within a
    /// second. It is read from what is open, never from history. Where a line begins with more than a hundred requests that were scheduled, given
    /// back or taken back, the age of one behind them is an estimate, ordinarily low by an eighth at most, and so it may be with what was dispatched
    /// before the hundred that its workspace admitted first. And since when the first in a line has been due that could be admitted now, as far as claims know.
    async fn request_oldest(&self) -> Result<Oldest>;

    /// Every transition of the request, in order.
    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>>;

    /// How many requests of its workspace a claim takes before this one, counted up to `up_to`; none if it is not waiting, not due
    /// or has an execution already.
    async fn request_place(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>>;

    /// The execution.
    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>>;

    /// The execution, whichever workspace's it is.
    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>>;

    /// Executions of a workspace that pass the filter, last admitted first; `page.after` is an admission.
    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        page: Page<i64>,
    ) -> Result<Vec<Execution>>;

    /// Ends executions and their requests and frees their slots. A request that was not DISPATCHED yet moves
    /// through every status on its way, an event for each. Answers are in the order asked.
    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>>;

    /// Those of these executions that are RUNNING, in any order.
    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>>;

    /// RUNNING executions of all workspaces, by workspace and admission.
    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>>;

    /// Looks for drift in a page of all workspaces, by id: where slots, executions, requests and what is kept of them say different things. Exact
    /// as of one moment for each workspace, and costs what is open there, never what has ended. Changes nothing.
    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit>;

    /// Mends a difference where that is safe. What is kept is written anew from executions and requests. An execution that its request has forgotten
    /// is ended if its end is known. An open request's execution is RUNNING again, so that the engine is asked about it, if a slot is free. Idempotent,
    /// safe from everywhere at once.
    async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired>;

    /// What the database says of itself.
    async fn diagnose(&self) -> Result<Diagnosis>;

    /// Takes a named lock that nobody holds.
    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired>;

    /// Keeps a lock for `at_most_for` from now; false if it is lost.
    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool>;

    /// Gives a lock back, to be free `at_least_for` after it was taken at the earliest; false if it is lost.
    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool>;

    /// Makes a key.
    async fn key_create(&self, new: &NewKey) -> Result<KeyCreated>;

    /// Makes an administrator's key if none is there that is not revoked; none if there is one. Exact under races.
    async fn key_create_first(&self, new: &NewKey) -> Result<Option<Key>>;

    /// The key with this hash, revoked or not.
    async fn key_find(&self, hash: &[u8; 32]) -> Result<Option<Key>>;

    /// The key.
    async fn key_get(&self, id: KeyId) -> Result<Option<Key>>;

    /// Keys by id, revoked ones too; of one workspace, or all.
    async fn key_list(&self, workspace: Option<WorkspaceId>, page: Page<KeyId>)
    -> Result<Vec<Key>>;

    /// Revokes a key for good; none if there is none. A second time changes nothing.
    async fn key_revoke(&self, id: KeyId) -> Result<Option<Key>>;

    /// Writes down that an instance lives, and forgets those that were not seen for `forget_after`.
    async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()>;

    /// Forgets an instance that stops in order.
    async fn instance_leave(&self, id: &str) -> Result<()>;

    /// Instances by id, a thousand at most.
    async fn instance_list(&self) -> Result<Vec<Instance>>;

    /// The time by the store's clock.
    async fn now(&self) -> Result<Timestamp>;

    /// Every named lock, by name.
    async fn lock_list(&self) -> Result<Vec<LockState>>;

    /// A page of the stream of changes, of all workspaces or of one. It misses none and repeats none, whenever their transactions commit, and
    /// wherever it goes on: after a page or after any change of one.
    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage>;

    /// Says that the caller is about to sleep until [`Wake::Work`]: whatever gives it work from now on wakes it. What was
    /// committed before does not, so the caller looks once more before it sleeps. False where the store cannot promise
    /// it now; then only looking from time to time helps.
    async fn wake_arm(&self) -> Result<bool>;

    /// Returns when there may be something to do, never before it was rung for; two rings may be one. Rings that came while nobody
    /// waited are not lost. One waiter a kind.
    async fn wake_wait(&self, wake: Wake);

    /// Wakes whoever waits for it, here and in the other processes that use the store.
    async fn wake_ring(&self, wake: Wake) -> Result<()>;

    /// Deletes finished requests with their executions and events, oldest first, and clears idempotency keys
    /// whose window has passed. Call again while it finds something.
    async fn prune(&self, prune: &Prune) -> Result<Pruned>;

    /// Changes a queue's settings; a queue that is not there is made. A lower limit lets what runs finish, and a claim that
    /// commits after this one does not leave more running than it.
    async fn queue_update(&self, name: &str, change: &QueueChange) -> Result<Queue>;

    /// The queue; none if nobody used it or set it up.
    async fn queue_get(&self, name: &str) -> Result<Option<Queue>>;

    /// Queues by name.
    async fn queue_list(&self, page: Page<String>) -> Result<Vec<Queue>>;

    /// How many jobs a queue has in each status. Counted now: the more jobs, the longer it takes.
    async fn queue_counts(&self, name: &str) -> Result<JobCounts>;

    /// What goes on in the busiest `limit` queues: most running first, then by name. What waits in each is counted up to `up_to`. More queues than
    /// [`PAGE_MAX`](leasehold_core::limits::PAGE_MAX) counts as that many.
    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>>;

    /// How many jobs of all queues together may run at once; none is no limit.
    async fn job_limit(&self) -> Result<Option<u32>>;

    /// Sets how many jobs of all queues together may run at once. What is said of a queue's limit holds for this one.
    async fn job_limit_set(&self, limit: Option<u32>) -> Result<()>;

    /// Puts jobs into their queues, all or none, and answers in the order asked. A job whose key is held in its queue is not
    /// put in; the holder is answered in its place. Of equal keys in one call the first is put in.
    /// Exact under races, and free of deadlock whatever the order of keys.
    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>>;

    /// Takes up to `max` queued jobs whose time has come: priority first, then oldest, then lowest id. Each gets a lease and a fencing
    /// token that is higher than that of its every earlier claim. No limit is exceeded: after the commit of a claim at most the queue's
    /// limit of its jobs, and at most the limit of all, are running. Expired leases are taken back first where that matters. A paused or unknown queue gives none.
    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed>;

    /// Extends the leases that the worker holds with these tokens and that have not expired, and returns which those are, in any order.
    /// A lease counts from now on: it may become shorter. One out of bounds becomes the nearest that is allowed.
    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<Vec<JobId>>;

    /// Ends claims that the worker holds with these tokens and that have not expired, whatever the job is for. Answers are in the order asked; of
    /// two for one claim in a call the first counts. A wait is cut at the longest one may be.
    ///
    /// Atomic per job, not per call. The job of a node ends in a transaction of its own: ending the claim, recording the node's output or error, putting
    /// the next nodes into their queues and, at the end of the graph, ending execution and request and freeing the slot happen together. Nodes of one
    /// graph end in the order asked. Of two workers that end the last two predecessors of a node at once, one puts it into its queue.
    ///
    /// # Errors
    /// A job that cannot be ended does not keep the others from their end, unless the store has become unavailable. What ended stays ended. A second
    /// call with the same claims ends the rest and answers `LeaseLost` for those that had ended.
    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished>;

    /// Keeps what a worker says of its progress; false if the lease is lost. It is kept through retries, until the job has ended.
    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool>;

    /// Takes back up to `limit` jobs whose lease has expired: queued again at once, or failed where their attempts are used up.
    /// Idempotent, safe from everywhere at once.
    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>>;

    /// Fails a queued job, with the error `cancelled`. One that a worker has is left alone.
    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled>;

    /// The job; none if there was none, or it is no longer kept.
    async fn job_get(&self, id: JobId) -> Result<Option<Job>>;

    /// Jobs that pass the filter, newest first.
    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>>;

    /// Deletes ended jobs, those enqueued first or ended first before others, and deduplication keys whose window has passed. Call again while it finds something.
    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned>;

    /// Says that the caller is about to sleep until [`Store::job_bell`] changes: whatever puts a job into a queue, or makes room for one, from now on
    /// changes it. What was committed before does not, so the caller looks once more before it sleeps. False where the
    /// store cannot promise it now; then only looking from time to time helps.
    async fn job_arm(&self) -> Result<bool>;

    /// A number that changes when there may be a job to claim. Due times change nothing: [`JobsClaimed::next_due_in`] tells of them.
    fn job_bell(&self) -> watch::Receiver<u64>;

    /// Starts the graph of a RUNNING execution's version, with its request's params, priority and trace context: the nodes that wait for nothing are put into their
    /// queues. However often it is called for one execution, one is started.
    async fn graph_start(&self, execution: ExecutionId) -> Result<GraphStarted>;

    /// The graph of an execution; none if it was never started here.
    async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>>;

    /// The nodes of an execution's graph in the order the graph lists them; none if it was never started here. A running node's attempts and last error
    /// are those of its job. Outputs are left out from the first on with which they would have more than
    /// [`NODE_OUTPUTS_MAX_BYTES`](leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES) together.
    async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>>;

    /// What the node at this place in the graph's list came to, however large.
    async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>>;

    /// Ends a graph: no node is begun any more, jobs of nodes that nobody has are failed, leases of those that somebody has are lost, and execution,
    /// request and slot end with it, in one transaction.
    async fn graph_stop(
        &self,
        execution: ExecutionId,
        stop: GraphStop,
        by: &str,
        reason: &str,
    ) -> Result<GraphStopped>;

    /// Ends up to `limit` graphs that time has ended: their execution's timeout has passed, or a node's job lost its last lease. Idempotent, safe from
    /// everywhere at once; call again while it finds as many as asked.
    async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>>;
}
