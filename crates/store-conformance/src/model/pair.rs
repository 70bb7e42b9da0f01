//! A store and its model side by side on one clock: how both are set up, and how an operation's numbers find their things.

use super::Model;
use super::follow::Round;
use super::op::{Pick, Stray};
use crate::Fixture;
use crate::factory::{TestWorkspace, binding};
use leasehold_core::{
    DefinitionId, ExecutionId, ExecutionStatus, Plan, RequestId, RequestStatus, VersionId,
    WorkspaceId,
};
use leasehold_store::definition::{NewDefinition, NewVersion};
use leasehold_store::request::ClaimRef;
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Result as StoreResult, Store, fresh_id};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

/// Where store and model disagree, or how the store failed.
pub(super) type Disagreement = String;

/// A store, its model and the clock they share.
pub(super) struct Pair {
    pub(super) real: Fixture,
    pub(super) model: Fixture,
    pub(super) inner: Arc<Model>,
    pub(super) sites: Vec<TestWorkspace>,
    /// Who was served when.
    pub(super) round: Round,
    /// Events the model had before the operation at hand.
    pub(super) seen_events: u64,
}

/// Says how two things differ, if they do.
pub(super) fn same<T: PartialEq + Debug>(
    what: &str,
    real: &T,
    model: &T,
) -> Result<(), Disagreement> {
    if real == model {
        return Ok(());
    }
    Err(format!(
        "{what} differ\n  store: {real:?}\n  model: {model:?}"
    ))
}

/// The value of a store's answer.
pub(super) fn answer<T>(what: &str, answer: StoreResult<T>) -> Result<T, Disagreement> {
    answer.map_err(|error| format!("{what} failed: {error:?}"))
}

impl Pair {
    /// Both, empty but for two workspaces: a short list of operations should already do something.
    pub(super) async fn new(real: Fixture) -> Result<Self, Disagreement> {
        let inner = Arc::new(Model::new(real.clock.clone()));
        let model = Fixture::new(inner.clone(), real.clock.clone());
        let mut pair = Self {
            real,
            model,
            inner,
            sites: Vec::new(),
            round: Round::default(),
            seen_events: 0,
        };
        for limit in [2, 3] {
            pair.create_site(limit).await?;
        }
        Ok(pair)
    }

    /// The same call on both, whose answers must be the same.
    pub(super) async fn both<T: PartialEq + Debug>(
        &self,
        what: &str,
        call: impl AsyncFn(&dyn Store) -> StoreResult<T>,
    ) -> Result<T, Disagreement> {
        let real = answer(what, call(&*self.real.store).await)?;
        let model = answer(what, call(&*self.inner).await)?;
        same(what, &real, &model)?;
        Ok(real)
    }

    pub(super) async fn create_site(&mut self, limit: u32) -> Result<(), Disagreement> {
        let id: WorkspaceId = fresh_id();
        let new = NewWorkspace {
            id,
            name: format!("workspace {id}"),
            plan: Plan::Free,
            limit_override: Some(limit),
        };
        let create = async |store: &dyn Store| store.workspace_create(&new).await;
        self.both("workspace_create", create).await?;
        let (definition, version) = self.create_definition(id).await?;
        self.sites.push(TestWorkspace {
            workspace: id,
            definition,
            version,
        });
        Ok(())
    }

    pub(super) async fn create_definition(
        &self,
        workspace: WorkspaceId,
    ) -> Result<(DefinitionId, VersionId), Disagreement> {
        let id: DefinitionId = fresh_id();
        let new = NewDefinition {
            id,
            workspace,
            name: format!("definition {id}"),
        };
        let create = async |store: &dyn Store| store.definition_create(&new).await;
        self.both("definition_create", create).await?;
        Ok((id, self.publish(workspace, id).await?))
    }

    pub(super) async fn publish(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
    ) -> Result<VersionId, Disagreement> {
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: binding(),
            params_schema: None,
            execution_timeout: None,
        };
        let publish = async |store: &dyn Store| store.version_publish(&new).await;
        self.both("version_publish", publish).await?;
        Ok(new.id)
    }

    /// The workspace a number names.
    pub(super) fn place(&self, site: u8) -> usize {
        usize::from(site) % self.sites.len()
    }

    /// The site a number names.
    pub(super) fn site(&self, site: u8) -> TestWorkspace {
        self.sites[self.place(site)]
    }

    /// The request a number names, with its workspace.
    pub(super) fn any_request(&self, n: u8) -> Option<(WorkspaceId, RequestId)> {
        let state = self.inner.state();
        let rows: Vec<_> = state.requests.values().collect();
        let row = rows.get(usize::from(n) % rows.len().max(1))?;
        Some((row.request.workspace, row.request.id))
    }

    /// The claim an operation is about, and who shows it.
    pub(super) fn claim_of(&self, pick: Pick) -> Option<(String, ClaimRef)> {
        let state = self.inner.state();
        let claimed = |status| pick.stray == Stray::Any || status == RequestStatus::Claimed;
        let rows = state.requests.values();
        let rows: Vec<_> = rows.filter(|row| claimed(row.request.status)).collect();
        let row = rows.get(usize::from(pick.n) % rows.len().max(1))?;
        let owner = match (pick.stray, &row.request.claimed_by) {
            (Stray::Owner, _) | (_, None) => "stranger".to_owned(),
            (_, Some(owner)) => owner.clone(),
        };
        let claim = ClaimRef {
            request: row.request.id,
            token: row.token - i64::from(pick.stray == Stray::Token),
        };
        Some((owner, claim))
    }

    /// The execution an operation is about: a running one, or one that ended, or one nobody made.
    pub(super) fn execution_of(&self, pick: Pick) -> ExecutionId {
        let state = self.inner.state();
        let fits = |status| match pick.stray {
            Stray::No => status == ExecutionStatus::Running,
            Stray::Any => true,
            Stray::Owner | Stray::Token => false,
        };
        let all = state.executions.values();
        let all: Vec<_> = all.filter(|e| fits(e.status)).collect();
        let chosen = all.get(usize::from(pick.n) % all.len().max(1));
        chosen.map_or_else(fresh_id, |e| e.id)
    }

    /// The requests that moved since the last look.
    pub(super) fn moved(&mut self) -> BTreeSet<(WorkspaceId, RequestId)> {
        let state = self.inner.state();
        self.round.look(&state, self.real.clock.now());
        let new = state.events.range(self.seen_events..);
        let moved = new
            .map(|(_, event)| (event.workspace, event.request))
            .collect();
        self.seen_events = state.next_event;
        moved
    }
}
