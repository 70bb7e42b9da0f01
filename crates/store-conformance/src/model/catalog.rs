//! Workspaces, definitions and versions in the model.

use super::read::page;
use super::state::{State, WorkspaceRow, refused};
use leasehold_core::plan::effective_limit;
use leasehold_core::{DefinitionId, Timestamp, WorkspaceId};
use leasehold_store::definition::{
    Definition, DefinitionCreated, NewDefinition, NewVersion, Version,
};
use leasehold_store::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceCreated};
use leasehold_store::{Page, Result};

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
            return Err(refused("workspace_limit_range"));
        }
        let workspace = Workspace {
            id: new.id,
            name: new.name.clone(),
            plan: new.plan,
            limit_override: new.limit_override,
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
        next.paused = change.paused.unwrap_or(next.paused);
        if effective_limit(next.plan, next.limit_override).is_err() {
            return Err(refused("workspace_limit_range"));
        }
        row.workspace = next.clone();
        Ok(Some(next))
    }

    pub(super) fn delete_workspace(&mut self, id: WorkspaceId, now: Timestamp) -> bool {
        if !self.lives(id) {
            return false;
        }
        if let Some(row) = self.workspaces.get_mut(&id) {
            row.workspace.deleted_at = Some(now);
        }
        true
    }

    /// Workspaces that are not deleted.
    pub(super) fn living(&self) -> impl Iterator<Item = &Workspace> {
        let all = self.workspaces.values().map(|row| &row.workspace);
        all.filter(|workspace| workspace.deleted_at.is_none())
    }

    pub(super) fn workspace_named(&self, name: &str) -> Option<&Workspace> {
        self.living().find(|workspace| workspace.name == name)
    }

    pub(super) fn list_workspaces(&self, at: Page<WorkspaceId>) -> Vec<Workspace> {
        page(self.living().cloned().collect(), at, |w| w.id)
    }

    pub(super) fn definition_named(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Option<&Definition> {
        let all = self.definitions.keys();
        let mut living = all.filter_map(|id| self.definition(workspace, *id));
        living.find(|definition| definition.name == name)
    }

    pub(super) fn list_definitions(
        &self,
        workspace: WorkspaceId,
        at: Page<DefinitionId>,
    ) -> Vec<Definition> {
        let all = self.definitions.keys();
        let living = all.filter_map(|id| self.definition(workspace, *id));
        page(living.cloned().collect(), at, |d| d.id)
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

    /// The living definition of a workspace.
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
        if !self.lives(new.workspace) {
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
