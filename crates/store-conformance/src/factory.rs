//! Short words for what cases need again and again: a site, n requests, a claim. Panics where a store fails; judges nothing.

use crate::Fixture;
use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, Plan, RequestId, RequestStatus, Timestamp, WorkspaceId,
};
use leasehold_store::change::Event;
use leasehold_store::definition::Version;
use leasehold_store::execution::{Execution, ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{
    Cancel, Cancelled, Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest, Counts, Dispatched,
    Enqueue, Enqueued, NewRequest, Release, ReleaseKind, Released, Request,
};
use leasehold_store::workspace::{SlotUse, Workspace, WorkspaceChange};
use leasehold_store::{Result, fresh_id};
use leasehold_testbed::{WorkspaceOptions, create_definition, create_workspace, publish_version};
use serde_json::{Value, json};
use std::time::Duration;

pub use leasehold_testbed::{TestWorkspace, USER, binding};

/// Who claims, unless a case says otherwise.
pub const OWNER: &str = "dispatcher-1";
/// How long a claim holds, unless a case says otherwise.
pub const LEASE: Duration = Duration::from_secs(15);

/// The value of a store's answer.
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

/// What every new request of a test runs with.
pub fn params() -> Value {
    json!({"order": 7})
}

/// A request with ordinary options.
pub fn new_request(site: &TestWorkspace) -> NewRequest {
    site.request_with(params())
}

/// The ids of what was claimed, in order.
pub fn ids(claimed: &Claimed) -> Vec<RequestId> {
    claimed.requests.iter().map(|r| r.id).collect()
}

/// The claims themselves, in order.
pub fn claim_refs(claimed: &Claimed) -> Vec<ClaimRef> {
    claimed.requests.iter().map(ClaimRef::from).collect()
}

impl Fixture {
    /// What the store's clock shows.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the store's clock.
    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Creates a workspace of `plan`.
    pub async fn workspace(&self, plan: Plan, limit_override: Option<u32>) -> Workspace {
        create_workspace(&*self.store, plan, limit_override).await
    }

    /// Creates a definition without a version.
    pub async fn draft(&self, workspace: WorkspaceId) -> DefinitionId {
        let name = format!("definition {}", fresh_id::<DefinitionId>());
        create_definition(&*self.store, workspace, &name).await
    }

    /// Publishes the next version of a definition.
    pub async fn publish(&self, workspace: WorkspaceId, definition: DefinitionId) -> Version {
        publish_version(&*self.store, workspace, definition, binding(), None, None).await
    }

    /// A workspace with `limit` slots and one published definition.
    pub async fn site(&self, limit: u32) -> TestWorkspace {
        self.site_of(Plan::Free, Some(limit)).await
    }

    /// A workspace of `plan` with one published definition.
    pub async fn site_of(&self, plan: Plan, limit: Option<u32>) -> TestWorkspace {
        let options = WorkspaceOptions {
            plan,
            limit,
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// Enqueues `n` ordinary requests in one call and returns their ids, oldest first.
    pub async fn enqueue(&self, site: &TestWorkspace, n: usize) -> Vec<RequestId> {
        let requests = (0..n).map(|_| new_request(site)).collect();
        self.enqueue_all(site, requests).await
    }

    /// Enqueues one request.
    pub async fn enqueue_one(&self, site: &TestWorkspace, request: NewRequest) -> RequestId {
        self.enqueue_all(site, vec![request]).await[0]
    }

    /// Enqueues an ordinary request with a priority.
    pub async fn enqueue_with_priority(&self, site: &TestWorkspace, priority: i16) -> RequestId {
        let request = NewRequest {
            priority,
            ..new_request(site)
        };
        self.enqueue_one(site, request).await
    }

    /// Enqueues these and returns their ids.
    pub async fn enqueue_all(
        &self,
        site: &TestWorkspace,
        requests: Vec<NewRequest>,
    ) -> Vec<RequestId> {
        site.enqueue(&*self.store, requests).await
    }

    /// Enqueues these, whatever comes of it.
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
            lease: LEASE,
            lock: None,
        };
        match ok(self.store.request_claim(&claim).await) {
            ClaimOutcome::Claimed(claimed) => claimed,
            ClaimOutcome::LockLost => panic!("no lock was asked for"),
        }
    }

    /// Claims while a claim says that there is more, and returns all of it in order: a claim need not fill its batch.
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
        panic!("there is always more: a drain never ends");
    }

    /// Claims exactly one request. A claim that brings nothing but says that there is more is asked again.
    pub async fn claim_one(&self) -> ClaimedRequest {
        for _ in 0..100 {
            let mut claimed = self.claim(1).await;
            if let Some(request) = claimed.requests.pop() {
                return request;
            }
            assert!(claimed.more, "one request can be claimed");
        }
        panic!("there is always more, but it never comes");
    }

    /// Enqueues one request and claims it.
    pub async fn claimed(&self, site: &TestWorkspace) -> ClaimedRequest {
        let id = self.enqueue(site, 1).await[0];
        let claimed = self.claim_one().await;
        assert_eq!(claimed.id, id, "nothing else waits");
        claimed
    }

    /// Enqueues one request, claims it and marks it dispatched.
    pub async fn running(&self, site: &TestWorkspace) -> ClaimedRequest {
        let claimed = self.claimed(site).await;
        self.dispatch(&claimed).await;
        claimed
    }

    /// Enqueues, claims, and gives the claim back as unknown: PENDING with its execution.
    pub async fn kept(&self, site: &TestWorkspace) -> ClaimedRequest {
        let claimed = self.claimed(site).await;
        let released = self.release(&claimed, ReleaseKind::Unknown, 0).await;
        assert_eq!(released, Released::Pending);
        claimed
    }

    /// A COMPLETED request.
    pub async fn completed(&self, site: &TestWorkspace) -> ClaimedRequest {
        let running = self.running(site).await;
        self.finish(running.execution, ExecutionEnd::Completed)
            .await;
        running
    }

    /// A request whose execution failed.
    pub async fn failed(&self, site: &TestWorkspace) -> ClaimedRequest {
        let running = self.running(site).await;
        self.finish(running.execution, ExecutionEnd::Failed).await;
        running
    }

    /// Marks a held claim dispatched.
    pub async fn dispatch(&self, claimed: &ClaimedRequest) {
        let answers = self
            .store
            .request_dispatched(OWNER, &[claimed.into()])
            .await;
        assert_eq!(ok(answers), [Dispatched::Dispatched]);
    }

    /// Renews these claims for [`LEASE`] and returns which are still held.
    pub async fn renew(&self, owner: &str, claims: &[ClaimRef]) -> Vec<RequestId> {
        ok(self.store.request_renew(owner, claims, LEASE).await)
    }

    /// Gives a claim of [`OWNER`] back, without an error message.
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
        assert_eq!(answers.len(), 1, "one answer for one release");
        answers[0]
    }

    /// Cancels as [`USER`], asking what runs.
    pub async fn cancel(&self, workspace: WorkspaceId, request: RequestId) -> Cancelled {
        self.cancel_by(USER, workspace, request, false).await
    }

    /// Cancels as [`USER`], without asking what runs.
    pub async fn cancel_forced(&self, workspace: WorkspaceId, request: RequestId) -> Cancelled {
        self.cancel_by(USER, workspace, request, true).await
    }

    /// Cancels.
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

    /// Ends an execution that runs.
    pub async fn finish(&self, execution: ExecutionId, end: ExecutionEnd) -> RequestStatus {
        match self.try_finish(execution, end).await {
            ExecutionFinished::Finished { status, .. } => status,
            other => panic!("the execution runs, but: {other:?}"),
        }
    }

    /// Ends an execution, whatever comes of it.
    pub async fn try_finish(&self, execution: ExecutionId, end: ExecutionEnd) -> ExecutionFinished {
        let finish = ExecutionFinish {
            execution,
            end,
            error: None,
        };
        let answers = ok(self.store.execution_finish("engine", &[finish]).await);
        assert_eq!(answers.len(), 1, "one answer for one finish");
        answers[0]
    }

    /// Changes a workspace's limit by its override.
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

    /// Changes a workspace that is there.
    pub async fn change(&self, workspace: WorkspaceId, change: WorkspaceChange) -> Workspace {
        ok(self.store.workspace_update(workspace, &change).await).expect("the workspace is there")
    }

    /// The request as it is now.
    pub async fn request(&self, workspace: WorkspaceId, id: RequestId) -> Request {
        ok(self.store.request_get(workspace, id).await).expect("the request is there")
    }

    /// The execution as it is now, none if it was deleted.
    pub async fn execution(&self, workspace: WorkspaceId, id: ExecutionId) -> Option<Execution> {
        ok(self.store.execution_get(workspace, id).await)
    }

    /// The request's transitions.
    pub async fn timeline(&self, workspace: WorkspaceId, id: RequestId) -> Vec<Event> {
        ok(self.store.request_timeline(workspace, id).await)
    }

    /// The workspace's requests by status.
    pub async fn counts(&self, workspace: WorkspaceId) -> Counts {
        ok(self.store.request_counts(workspace).await)
    }

    /// The workspace's limit and use.
    pub async fn slots(&self, workspace: WorkspaceId) -> SlotUse {
        ok(self.store.workspace_slots(workspace).await).expect("the workspace is there")
    }
}
