//! Workspaces, definitions and versions in the model.

use super::Model;
use super::read::page;
use super::state::{State, WorkspaceRow, constraint_error};
use async_trait::async_trait;
use leasehold_core::limits::{CATALOG_ROW_BYTES, MAX_OPEN_BYTES_MAX, MAX_PENDING_MAX};
use leasehold_core::plan::effective_limit;
use leasehold_core::{DefinitionId, JsonText, Timestamp, VersionId, WorkspaceId, WorkspaceQuota};
use leasehold_store::audit::AuditRecord;
use leasehold_store::definition::{
    Definition, DefinitionCreated, DefinitionStore, NewDefinition, NewVersion, Version,
    VersionPublished, VersionRecord,
};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated, WorkspaceOverview,
    WorkspaceStore,
};
use leasehold_store::{Actor, Page, Result};
use std::sync::Arc;

impl State {
    pub(super) fn create_workspace(
        &mut self,
        new: &NewWorkspace,
        now: Timestamp,
    ) -> Result<WorkspaceCreated> {
        if self.workspace_named(&new.name).is_some() {
            return Ok(WorkspaceCreated::NameTaken);
        }
        if effective_limit(new.plan, new.limit_override).is_err() {
            return Err(constraint_error("workspace_limit_range"));
        }
        let workspace = Workspace {
            id: new.id,
            name: new.name.clone(),
            plan: new.plan,
            limit_override: new.limit_override,
            max_pending_override: None,
            max_open_bytes_override: None,
            paused: false,
            created_at: now,
            deleted_at: None,
        };
        let row = WorkspaceRow {
            workspace: workspace.clone(),
            turn: 0,
        };
        self.workspaces.insert(new.id, row);
        Ok(WorkspaceCreated::Created(workspace))
    }

    pub(super) fn update_workspace(
        &mut self,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Option<Workspace>> {
        let Some(row) = self.workspaces.get_mut(&id) else {
            return Ok(None);
        };
        if row.workspace.deleted_at.is_some() {
            return Ok(None);
        }
        let mut next = row.workspace.clone();
        next.plan = change.plan.unwrap_or(next.plan);
        next.limit_override = change.limit_override.unwrap_or(next.limit_override);
        next.max_pending_override = change
            .max_pending_override
            .unwrap_or(next.max_pending_override);
        next.max_open_bytes_override = change
            .max_open_bytes_override
            .unwrap_or(next.max_open_bytes_override);
        next.paused = change.paused.unwrap_or(next.paused);
        if effective_limit(next.plan, next.limit_override).is_err() {
            return Err(constraint_error("workspace_limit_range"));
        }
        if next.max_pending_override > Some(MAX_PENDING_MAX) {
            return Err(constraint_error("workspace_max_pending"));
        }
        if next.max_open_bytes_override > Some(MAX_OPEN_BYTES_MAX) {
            return Err(constraint_error("workspace_max_open_bytes"));
        }
        row.workspace = next.clone();
        Ok(Some(next))
    }

    pub(super) fn delete_workspace(&mut self, id: WorkspaceId, now: Timestamp) -> bool {
        if !self.exists(id) {
            return false;
        }
        if let Some(row) = self.workspaces.get_mut(&id) {
            row.workspace.deleted_at = Some(now);
        }
        true
    }

    /// Workspaces that are not deleted.
    pub(super) fn existing(&self) -> impl Iterator<Item = &Workspace> {
        let all = self.workspaces.values().map(|row| &row.workspace);
        all.filter(|workspace| workspace.deleted_at.is_none())
    }

    pub(super) fn workspace_named(&self, name: &str) -> Option<&Workspace> {
        self.existing().find(|workspace| workspace.name == name)
    }

    pub(super) fn list_workspaces(&self, at: Page<WorkspaceId>) -> Vec<Workspace> {
        page(self.existing().cloned().collect(), at, |w| w.id)
    }

    pub(super) fn definition_named(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Option<&Definition> {
        let all = self.definitions.keys();
        let mut existing = all.filter_map(|id| self.definition(workspace, *id));
        existing.find(|definition| definition.name == name)
    }

    pub(super) fn list_definitions(
        &self,
        workspace: WorkspaceId,
        at: Page<DefinitionId>,
    ) -> Vec<Definition> {
        let all = self.definitions.keys();
        let existing = all.filter_map(|id| self.definition(workspace, *id));
        page(existing.cloned().collect(), at, |d| d.id)
    }

    pub(super) fn list_versions(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        at: Page<u32>,
    ) -> Vec<Version> {
        let all = self.versions.values();
        let own = all.filter(|v| v.workspace == workspace && v.definition == definition);
        page(own.cloned().collect(), at, |v| v.number)
    }

    /// The existing definition of a workspace.
    pub(super) fn definition(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Option<&Definition> {
        let definition = self.definitions.get(&id)?;
        let there = definition.workspace == workspace && !self.deleted_definitions.contains(&id);
        there.then_some(definition)
    }

    pub(super) fn create_definition(
        &mut self,
        new: &NewDefinition,
        now: Timestamp,
    ) -> DefinitionCreated {
        if !self.exists(new.workspace) {
            return DefinitionCreated::WorkspaceNotFound;
        }
        let taken = self.definitions.values().any(|d| {
            d.workspace == new.workspace
                && d.name == new.name
                && !self.deleted_definitions.contains(&d.id)
        });
        if taken {
            return DefinitionCreated::NameTaken;
        }
        if !self.has_room(new.workspace, CATALOG_ROW_BYTES) {
            return DefinitionCreated::QuotaExceeded;
        }
        let definition = Definition {
            id: new.id,
            workspace: new.workspace,
            name: new.name.clone(),
            current_version: None,
            created_at: now,
        };
        self.definitions.insert(new.id, definition.clone());
        DefinitionCreated::Created(definition)
    }

    /// Whether definitions and versions of this many bytes fit beside those of the workspace, deleted ones included.
    pub(super) fn has_room(&self, workspace: WorkspaceId, bytes: u64) -> bool {
        let definitions = self
            .definitions
            .values()
            .filter(|d| d.workspace == workspace);
        let versions = self.versions.values().filter(|v| v.workspace == workspace);
        let versions = versions.map(|version| {
            let schema = version.params_schema.as_ref();
            let schema = schema.map_or(0, |schema| schema.to_string().len());
            let body = JsonText::of(&version.body).map_or(0, |body| body.as_str().len());
            CATALOG_ROW_BYTES + (body + schema) as u64
        });
        let used = definitions.count() as u64 * CATALOG_ROW_BYTES + versions.sum::<u64>();
        let quota = self.quota(workspace);
        quota.is_some_and(|quota| used + bytes <= quota.max_open_bytes)
    }

    pub(super) fn publish(&mut self, new: &NewVersion, now: Timestamp) -> Option<Version> {
        self.definition(new.workspace, new.definition)?;
        let mut versions = self.versions.values();
        let last = versions.by_ref().filter(|v| v.definition == new.definition);
        let number = last.map(|v| v.number).max().unwrap_or(0) + 1;
        let version = Version {
            id: new.id,
            workspace: new.workspace,
            definition: new.definition,
            number,
            body: new.body.clone(),
            params_schema: new.params_schema.clone(),
            execution_timeout: new.execution_timeout,
            created_at: now,
        };
        self.versions.insert(new.id, version.clone());
        let definition = self.definitions.get_mut(&new.definition)?;
        definition.current_version = Some(new.id);
        Some(version)
    }
}

#[async_trait]
impl WorkspaceStore for Model {
    async fn workspace_create(&self, new: &NewWorkspace, by: &Actor) -> Result<WorkspaceCreated> {
        let (mut state, now) = (self.state(), self.now());
        let created = state.create_workspace(new, now)?;
        if let WorkspaceCreated::Created(workspace) = &created {
            state.audit(by, AuditRecord::workspace_create(workspace), now);
        }
        Ok(created)
    }

    async fn workspace_get(&self, id: WorkspaceId) -> Result<Option<Workspace>> {
        let state = self.state();
        Ok(state.workspaces.get(&id).map(|row| row.workspace.clone()))
    }

    async fn workspace_find(&self, name: &str) -> Result<Option<Workspace>> {
        Ok(self.state().workspace_named(name).cloned())
    }

    async fn workspace_list(&self, at: Page<WorkspaceId>) -> Result<Vec<Workspace>> {
        Ok(self.state().list_workspaces(at))
    }

    async fn workspace_update(
        &self,
        id: WorkspaceId,
        change: &WorkspaceChange,
        by: &Actor,
    ) -> Result<Option<Workspace>> {
        let updated = self.state().update_workspace(id, change)?;
        if let Some(updated) = &updated {
            let record = AuditRecord::workspace_update(updated, change);
            self.state().audit(by, record, self.now());
        }
        self.notifiers.notify_work(updated.is_some());
        Ok(updated)
    }

    async fn workspace_delete(&self, id: WorkspaceId, by: &Actor) -> Result<bool> {
        let deleted = self.state().delete_workspace(id, self.now());
        if deleted {
            let mut state = self.state();
            let name = state.workspaces[&id].workspace.name.clone();
            state.audit(by, AuditRecord::workspace_delete(id, &name), self.now());
            drop(state);
            self.jobs(|jobs, _| jobs.release_queues(id));
        }
        self.notifiers.notify_work(deleted);
        Ok(deleted)
    }

    async fn workspace_quota(&self, id: WorkspaceId) -> Result<Option<WorkspaceQuota>> {
        Ok(self.state().quota(id))
    }

    async fn workspace_slots(&self, id: WorkspaceId) -> Result<Option<SlotUse>> {
        Ok(self.state().slots(id))
    }

    async fn workspace_overview(&self, limit: u32) -> Result<WorkspaceOverview> {
        Ok(self.state().workspace_overview(limit, self.now()))
    }
}

#[async_trait]
impl DefinitionStore for Model {
    async fn definition_create(
        &self,
        new: &NewDefinition,
        by: &Actor,
    ) -> Result<DefinitionCreated> {
        let (mut state, now) = (self.state(), self.now());
        let created = state.create_definition(new, now);
        if let DefinitionCreated::Created(definition) = &created {
            state.audit(by, AuditRecord::definition_create(definition), now);
        }
        Ok(created)
    }

    async fn definition_get(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> Result<Option<Definition>> {
        Ok(self.state().definition(workspace, id).cloned())
    }

    async fn definition_find(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Definition>> {
        Ok(self.state().definition_named(workspace, name).cloned())
    }

    async fn definition_list(
        &self,
        workspace: WorkspaceId,
        at: Page<DefinitionId>,
    ) -> Result<Vec<Definition>> {
        Ok(self.state().list_definitions(workspace, at))
    }

    async fn definition_delete(
        &self,
        workspace: WorkspaceId,
        id: DefinitionId,
        by: &Actor,
    ) -> Result<bool> {
        let mut state = self.state();
        let Some(definition) = state.definition(workspace, id) else {
            return Ok(false);
        };
        let record = AuditRecord::definition_delete(workspace, id, &definition.name);
        state.audit(by, record, self.now());
        Ok(state.deleted_definitions.insert(id))
    }

    async fn version_publish(&self, new: &NewVersion, by: &Actor) -> Result<VersionPublished> {
        Ok(self.publish(new, by))
    }

    async fn version_get(
        &self,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<Version>>> {
        let state = self.state();
        let version = state.versions.get(&id);
        let version = version.filter(|v| v.workspace == workspace);
        Ok(version.cloned().map(Arc::new))
    }

    async fn version_list(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        at: Page<u32>,
    ) -> Result<Vec<VersionRecord>> {
        let versions = self.state().list_versions(workspace, definition, at);
        let records = versions.iter().map(VersionRecord::try_from);
        records
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| {
                let kind = leasehold_store::ErrorKind::Broken(error.to_string());
                leasehold_store::Error::new("version_list", kind)
            })
    }
}
