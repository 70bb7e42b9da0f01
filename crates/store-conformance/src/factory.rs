//! Helpers of the cases for workspaces, requests and claims. They panic if the store fails, and check nothing else.

use crate::Fixture;
use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, Named, Plan, RequestId, RequestStatus, Timestamp,
    WorkspaceId,
};
use leasehold_store::change::Event;
use leasehold_store::definition::Version;
use leasehold_store::execution::{Execution, ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{
    Cancel, Cancelled, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, Counts, Dispatched,
    Enqueue, Enqueued, NewRequest, Release, ReleaseKind, Released, Request,
};
use leasehold_store::workspace::{SlotUse, Workspace, WorkspaceChange};
use leasehold_store::{Page, Result, fresh_id};
use leasehold_testbed::{WorkspaceOptions, create_definition, create_workspace, publish_version};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

pub use leasehold_testbed::{TestWorkspace, USER, binding};

/// The default owner of claims.
pub const OWNER: &str = "dispatcher-1";
/// The default lease of claims.
pub const LEASE: Duration = Duration::from_secs(15);

/// Returns the value of a store's result.
///
/// # Panics
/// When the store failed.
#[track_caller]
pub fn ok<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error:?}"),
    }
}

/// Returns a name in a record. The stores of the cases contain only known ones.
///
/// # Panics
/// When the name is unknown.
#[track_caller]
pub fn known<T: Copy + Debug>(named: &Named<T>) -> T {
    let unknown = || panic!("unknown name: {named:?}");
    named.known().unwrap_or_else(unknown)
}

/// The params of every new request.
pub fn params() -> Value {
    json!({"order": 7})
}

/// A request with default options.
pub fn new_request(workspace: &TestWorkspace) -> NewRequest {
    workspace.request_with(params())
}

/// The ids of the claimed requests, in order.
pub fn ids(claimed: &Claimed) -> Vec<RequestId> {
    claimed.requests.iter().map(|r| r.id).collect()
}

/// The claims, in order.
pub fn claim_refs(claimed: &Claimed) -> Vec<ClaimRef> {
    claimed.requests.iter().map(ClaimRef::from).collect()
}

impl Fixture {
    /// The time of the store's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the store's clock.
    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Creates a workspace of `plan` without a definition.
    pub async fn bare_workspace(&self, plan: Plan, limit_override: Option<u32>) -> Workspace {
        create_workspace(&*self.store, plan, limit_override).await
    }

    /// Creates a definition without a version.
    pub async fn create_draft(&self, workspace: WorkspaceId) -> DefinitionId {
        let name = format!("definition {}", fresh_id::<DefinitionId>());
        create_definition(&*self.store, workspace, &name).await
    }

    /// Publishes the next version of a definition.
    pub async fn publish(&self, workspace: WorkspaceId, definition: DefinitionId) -> Version {
        publish_version(&*self.store, workspace, definition, binding(), None, None).await
    }

    /// A page of the definition's versions, parsed.
    pub async fn versions(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        page: Page<u32>,
    ) -> Vec<Version> {
        let listed = ok(self.store.version_list(workspace, definition, page).await);
        let parsed = listed.iter().map(|version| version.parse());
        parsed
            .collect::<std::result::Result<_, _>>()
            .expect("the store returns what was published")
    }

    /// Creates a workspace with `limit` slots and one published definition.
    pub async fn workspace(&self, limit: u32) -> TestWorkspace {
        self.workspace_on_plan(Plan::Free, Some(limit)).await
    }

    /// Creates a workspace of `plan` with one published definition.
    pub async fn workspace_on_plan(&self, plan: Plan, limit: Option<u32>) -> TestWorkspace {
        let options = WorkspaceOptions {
            plan,
            limit,
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// Enqueues `n` requests with default options in one call and returns their ids, oldest first.
    pub async fn enqueue(&self, workspace: &TestWorkspace, n: usize) -> Vec<RequestId> {
        let requests = (0..n).map(|_| new_request(workspace)).collect();
        self.enqueue_all(workspace, requests).await
    }

    /// Enqueues one request.
    pub async fn enqueue_one(&self, workspace: &TestWorkspace, request: NewRequest) -> RequestId {
        self.enqueue_all(workspace, vec![request]).await[0]
    }

    /// Enqueues a request with a priority.
    pub async fn enqueue_with_priority(
        &self,
        workspace: &TestWorkspace,
        priority: i16,
    ) -> RequestId {
        let request = NewRequest {
            priority,
            ..new_request(workspace)
        };
        self.enqueue_one(workspace, request).await
    }

    /// Enqueues these requests in one call and returns their ids.
    pub async fn enqueue_all(
        &self,
        workspace: &TestWorkspace,
        requests: Vec<NewRequest>,
    ) -> Vec<RequestId> {
        workspace.enqueue(&*self.store, requests).await
    }

    /// Enqueues these requests in one call and returns the outcome.
    pub async fn try_enqueue(&self, workspace: WorkspaceId, requests: Vec<NewRequest>) -> Enqueued {
        let enqueue = Enqueue {
            workspace,
            requests,
            by: USER.into(),
        };
        ok(self.store.request_enqueue(&enqueue).await)
    }

    /// Claims up to `batch` requests as [`OWNER`].
    pub async fn claim(&self, batch: u32) -> Claimed {
        self.claim_as(OWNER, batch).await
    }

    /// Claims up to `batch` requests.
    pub async fn claim_as(&self, owner: &str, batch: u32) -> Claimed {
        let claim = Claim {
            owner: owner.into(),
            batch,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        match ok(self.store.request_claim(&claim).await) {
            ClaimOutcome::Claimed(claimed) => claimed,
            ClaimOutcome::LockLost => panic!("the claim has no lock"),
        }
    }

    /// Claims while a claim reports more, and returns everything in order: a claim need not fill its batch.
    pub async fn drain(&self, batch: u32) -> Claimed {
        let mut all = self.claim(batch).await;
        for _ in 0..1_000 {
            if !all.more {
                return all;
            }
            let next = self.claim(batch).await;
            all.requests.extend(next.requests);
            all.rejected.extend(next.rejected);
            all.orphaned.extend(next.orphaned);
            all.at_capacity.extend(next.at_capacity);
            all.next_due_in = next.next_due_in;
            all.more = next.more;
        }
        panic!("claims always report more");
    }

    /// Claims exactly one request; retries while a claim is empty but reports more.
    pub async fn claim_one(&self) -> ClaimedRequest {
        for _ in 0..100 {
            let mut claimed = self.claim(1).await;
            if let Some(request) = claimed.requests.pop() {
                return request;
            }
            assert!(claimed.more, "no request can be claimed");
        }
        panic!("claims are empty but always report more");
    }

    /// Enqueues one request and claims it.
    pub async fn enqueue_claimed(&self, workspace: &TestWorkspace) -> ClaimedRequest {
        let id = self.enqueue(workspace, 1).await[0];
        let claimed = self.claim_one().await;
        assert_eq!(claimed.id, id, "nothing else is queued");
        claimed
    }

    /// Enqueues one request, claims it and marks it dispatched.
    pub async fn enqueue_running(&self, workspace: &TestWorkspace) -> ClaimedRequest {
        let claimed = self.enqueue_claimed(workspace).await;
        self.dispatch(&claimed).await;
        claimed
    }

    /// Enqueues one request, claims it and releases it as unknown: PENDING with its execution.
    pub async fn enqueue_unknown(&self, workspace: &TestWorkspace) -> ClaimedRequest {
        let claimed = self.enqueue_claimed(workspace).await;
        let released = self.release(&claimed, ReleaseKind::Unknown, 0).await;
        assert_eq!(released, Released::Pending);
        claimed
    }

    /// Enqueues a request and completes it.
    pub async fn enqueue_completed(&self, workspace: &TestWorkspace) -> ClaimedRequest {
        let running = self.enqueue_running(workspace).await;
        self.finish(running.execution, ExecutionEnd::Completed)
            .await;
        running
    }

    /// Enqueues a request and fails its execution.
    pub async fn enqueue_failed(&self, workspace: &TestWorkspace) -> ClaimedRequest {
        let running = self.enqueue_running(workspace).await;
        self.finish(running.execution, ExecutionEnd::Failed).await;
        running
    }

    /// Marks a claim as dispatched.
    pub async fn dispatch(&self, claimed: &ClaimedRequest) {
        let answers = self
            .store
            .request_dispatched(OWNER, &[claimed.into()])
            .await;
        assert_eq!(ok(answers), [Dispatched::Dispatched]);
    }

    /// Renews these claims for [`LEASE`] and returns those still held.
    pub async fn renew(&self, owner: &str, claims: &[ClaimRef]) -> Vec<RequestId> {
        ok(self.store.request_renew(owner, claims, LEASE).await).renewed
    }

    /// Releases a claim of [`OWNER`] without an error message.
    pub async fn release(
        &self,
        claimed: &ClaimedRequest,
        kind: ReleaseKind,
        delay_seconds: u64,
    ) -> Released {
        let release = Release {
            claim: claimed.into(),
            kind,
            delay: Duration::from_secs(delay_seconds),
            error: None,
        };
        let answers = ok(self.store.request_release(OWNER, &[release]).await);
        assert_eq!(answers.len(), 1, "one outcome for one release");
        answers[0]
    }

    /// Cancels a request as [`USER`].
    pub async fn cancel(&self, workspace: WorkspaceId, request: RequestId) -> Cancelled {
        self.cancel_by(USER, workspace, request, false).await
    }

    /// Cancels a request as [`USER`] with force.
    pub async fn cancel_forced(&self, workspace: WorkspaceId, request: RequestId) -> Cancelled {
        self.cancel_by(USER, workspace, request, true).await
    }

    /// Cancels a request.
    pub async fn cancel_by(
        &self,
        by: &str,
        workspace: WorkspaceId,
        request: RequestId,
        force: bool,
    ) -> Cancelled {
        let cancel = Cancel {
            workspace,
            request,
            force,
            by: by.into(),
        };
        ok(self.store.request_cancel(&cancel).await)
    }

    /// Ends a running execution.
    pub async fn finish(&self, execution: ExecutionId, end: ExecutionEnd) -> RequestStatus {
        match self.try_finish(execution, end).await {
            ExecutionFinished::Finished { status, .. } => status,
            other => panic!("failed to end the execution: {other:?}"),
        }
    }

    /// Ends an execution and returns the outcome.
    pub async fn try_finish(&self, execution: ExecutionId, end: ExecutionEnd) -> ExecutionFinished {
        let finish = ExecutionFinish {
            execution,
            end,
            error: None,
        };
        let answers = ok(self.store.execution_finish("engine", &[finish]).await);
        assert_eq!(answers.len(), 1, "one outcome for one finish");
        answers[0]
    }

    /// Sets the limit override of a workspace.
    pub async fn set_limit(&self, workspace: WorkspaceId, limit: u32) {
        let change = WorkspaceChange {
            limit_override: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        self.change(workspace, change).await;
    }

    /// Pauses or resumes a workspace.
    pub async fn set_paused(&self, workspace: WorkspaceId, paused: bool) {
        let change = WorkspaceChange {
            paused: Some(paused),
            ..WorkspaceChange::default()
        };
        self.change(workspace, change).await;
    }

    /// Updates an existing workspace.
    pub async fn change(&self, workspace: WorkspaceId, change: WorkspaceChange) -> Workspace {
        ok(self
            .store
            .workspace_update(workspace, &change, &leasehold_store::Actor::Local)
            .await)
        .expect("the workspace exists")
    }

    /// Reads a request.
    pub async fn request(&self, workspace: WorkspaceId, id: RequestId) -> Request {
        ok(self.store.request_get(workspace, id).await).expect("the request exists")
    }

    /// Reads an execution; none if it was deleted.
    pub async fn execution(&self, workspace: WorkspaceId, id: ExecutionId) -> Option<Execution> {
        ok(self.store.execution_get(workspace, id).await)
    }

    /// Reads the timeline of a request.
    pub async fn timeline(&self, workspace: WorkspaceId, id: RequestId) -> Vec<Event> {
        ok(self.store.request_timeline(workspace, id).await)
    }

    /// Counts the requests of a workspace by status.
    pub async fn counts(&self, workspace: WorkspaceId) -> Counts {
        ok(self.store.request_counts(workspace).await)
    }

    /// Reads the limit and use of a workspace's slots.
    pub async fn slots(&self, workspace: WorkspaceId) -> SlotUse {
        ok(self.store.workspace_slots(workspace).await).expect("the workspace exists")
    }
}
