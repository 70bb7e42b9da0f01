//! Remembers the current versions of definitions, so that an enqueue call need not read them. A remembered version may be an older one: the store
//! compares it and rejects it.

use leasehold_core::{DefinitionId, VersionId, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Definitions above which all are forgotten.
const DEFINITIONS_MAX: usize = 10_000;

/// Versions by definition and its workspace: a workspace must not be validated against the schema of another one.
#[derive(Debug, Default)]
pub(crate) struct CurrentVersions(Mutex<HashMap<(WorkspaceId, DefinitionId), VersionId>>);

impl CurrentVersions {
    pub(crate) fn get(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
    ) -> Option<VersionId> {
        self.known().get(&(workspace, definition)).copied()
    }

    pub(crate) fn set(&self, workspace: WorkspaceId, definition: DefinitionId, version: VersionId) {
        let mut known = self.known();
        if known.len() >= DEFINITIONS_MAX {
            known.clear();
        }
        known.insert((workspace, definition), version);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(WorkspaceId, DefinitionId), VersionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
