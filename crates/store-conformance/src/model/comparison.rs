//! A store and the model on one clock: their setup, and the lookup of what an operation refers to by number.

use super::Model;
use super::claim_check::TurnTracker;
use super::op::{ClaimFault, Pick};
use crate::Fixture;
use crate::factory::{TestWorkspace, binding, known};
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, Plan, RequestId, RequestStatus, VersionId,
    WorkspaceId,
};
use leasehold_store::definition::{NewDefinition, NewVersion, Publisher};
use leasehold_store::request::ClaimRef;
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Result as StoreResult, Store, fresh_id};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

/// How store and model differ, or how the store failed.
pub(super) type Mismatch = String;

/// A store and the model, compared on requests.
pub(super) struct RequestComparison {
    pub(super) real: Fixture,
    pub(super) model: Fixture,
    pub(super) inner: Arc<Model>,
    pub(super) workspaces: Vec<TestWorkspace>,
    /// When each workspace was served.
    pub(super) turns: TurnTracker,
    /// Events that the model had before the current operation.
    pub(super) seen_events: u64,
}

/// Returns an error if the two values differ.
pub(super) fn same<T: PartialEq + Debug>(what: &str, real: &T, model: &T) -> Result<(), Mismatch> {
    if real == model {
        return Ok(());
    }
    Err(format!(
        "{what} differ\n  store: {real:?}\n  model: {model:?}"
    ))
}

/// Returns the value of a store's result.
pub(super) fn answer<T>(what: &str, answer: StoreResult<T>) -> Result<T, Mismatch> {
    answer.map_err(|error| format!("{what} failed: {error:?}"))
}

impl RequestComparison {
    /// Creates both with two workspaces, so that a short list of operations already has an effect.
    pub(super) async fn new(real: Fixture) -> Result<Self, Mismatch> {
        let inner = Arc::new(Model::new(real.clock.clone()));
        let model = Fixture::new(inner.clone(), real.clock.clone());
        let mut comparison = Self {
            real,
            model,
            inner,
            workspaces: Vec::new(),
            turns: TurnTracker::default(),
            seen_events: 0,
        };
        for limit in [2, 3] {
            comparison.create_workspace(limit).await?;
        }
        Ok(comparison)
    }

    /// Makes the same call on both and compares the results.
    pub(super) async fn both<T: PartialEq + Debug>(
        &self,
        what: &str,
        call: impl AsyncFn(&dyn Store) -> StoreResult<T>,
    ) -> Result<T, Mismatch> {
        let real = answer(what, call(&*self.real.store).await)?;
        let model = answer(what, call(&*self.inner).await)?;
        same(what, &real, &model)?;
        Ok(real)
    }

    pub(super) async fn create_workspace(&mut self, limit: u32) -> Result<(), Mismatch> {
        let id: WorkspaceId = fresh_id();
        let new = NewWorkspace {
            id,
            name: format!("workspace {id}"),
            plan: Plan::Free,
            limit_override: Some(limit),
        };
        let create = async |store: &dyn Store| {
            store
                .workspace_create(&new, &leasehold_store::Actor::Local)
                .await
        };
        self.both("workspace_create", create).await?;
        let (definition, version) = self.create_definition(id).await?;
        self.workspaces.push(TestWorkspace {
            workspace: id,
            definition,
            version,
        });
        Ok(())
    }

    pub(super) async fn create_definition(
        &self,
        workspace: WorkspaceId,
    ) -> Result<(DefinitionId, VersionId), Mismatch> {
        let id: DefinitionId = fresh_id();
        let new = NewDefinition {
            id,
            workspace,
            name: format!("definition {id}"),
        };
        let create = async |store: &dyn Store| {
            store
                .definition_create(&new, &leasehold_store::Actor::Local)
                .await
        };
        self.both("definition_create", create).await?;
        Ok((id, self.publish(workspace, id).await?))
    }

    pub(super) async fn publish(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
    ) -> Result<VersionId, Mismatch> {
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: binding(),
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Administrator,
        };
        let publish = async |store: &dyn Store| {
            store
                .version_publish(&new, &leasehold_store::Actor::Local)
                .await
        };
        self.both("version_publish", publish).await?;
        Ok(new.id)
    }

    /// The index of the workspace with this number.
    pub(super) fn index_of(&self, workspace: u8) -> usize {
        usize::from(workspace) % self.workspaces.len()
    }

    /// The workspace with this number.
    pub(super) fn workspace(&self, workspace: u8) -> TestWorkspace {
        self.workspaces[self.index_of(workspace)]
    }

    /// The request with this number, and its workspace.
    pub(super) fn any_request(&self, n: u8) -> Option<(WorkspaceId, RequestId)> {
        let state = self.inner.state();
        let rows: Vec<_> = state.requests.values().collect();
        let row = rows.get(usize::from(n) % rows.len().max(1))?;
        Some((row.request.workspace, row.request.id))
    }

    /// The claim of an operation, and the owner that uses it.
    pub(super) fn claim_of(&self, pick: Pick) -> Option<(String, ClaimRef)> {
        let state = self.inner.state();
        let claimed =
            |status| pick.fault == ClaimFault::AnyStatus || status == RequestStatus::Claimed;
        let rows = state.requests.values();
        let rows: Vec<_> = rows
            .filter(|row| claimed(known(&row.request.status)))
            .collect();
        let row = rows.get(usize::from(pick.n) % rows.len().max(1))?;
        let owner = match (pick.fault, &row.request.claimed_by) {
            (ClaimFault::WrongOwner, _) | (_, None) => "stranger".to_owned(),
            (_, Some(owner)) => owner.clone(),
        };
        let claim = ClaimRef {
            request: row.request.id,
            token: row.token - i64::from(pick.fault == ClaimFault::OldToken),
        };
        Some((owner, claim))
    }

    /// The execution of an operation: running, ended or unknown.
    pub(super) fn execution_of(&self, pick: Pick) -> ExecutionId {
        let state = self.inner.state();
        let fits = |status| match pick.fault {
            ClaimFault::None => status == ExecutionStatus::Running,
            ClaimFault::AnyStatus => true,
            ClaimFault::WrongOwner | ClaimFault::OldToken => false,
        };
        let all = state.executions.values();
        let all: Vec<_> = all.filter(|e| fits(known(&e.status))).collect();
        let chosen = all.get(usize::from(pick.n) % all.len().max(1));
        chosen.map_or_else(fresh_id, |e| e.id)
    }

    /// The requests that changed since the last call.
    pub(super) fn moved(&mut self) -> BTreeSet<(WorkspaceId, RequestId)> {
        let state = self.inner.state();
        self.turns.update(&state, self.real.clock.now());
        let new = state.events.range(self.seen_events..);
        let moved = new
            .map(|(_, event)| (event.workspace, event.request))
            .collect();
        self.seen_events = state.next_event;
        moved
    }
}
