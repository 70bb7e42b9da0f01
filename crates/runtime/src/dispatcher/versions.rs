//! Versions that starts need, remembered: they never change.

use leasehold_core::{VersionId, WorkspaceId};
use leasehold_engine::StartVersion;
use leasehold_store::{Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of remembered versions, about. A graph may be a megabyte, but a binding is next to nothing, and every workspace has
/// one of its own: as long as those fit, a start asks the store for nothing.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// What a version takes beside its body.
const EACH_BYTES: usize = 256;

#[derive(Default)]
pub(super) struct Versions(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    versions: HashMap<VersionId, Arc<StartVersion>>,
    bytes: usize,
}

impl Versions {
    pub(super) async fn get(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        id: VersionId,
    ) -> Result<Option<Arc<StartVersion>>> {
        if let Some(version) = self.lock().versions.get(&id) {
            return Ok(Some(version.clone()));
        }
        let Some(version) = store.version_get(workspace, id).await? else {
            return Ok(None);
        };
        let body = serde_json::to_vec(&version.body).map_or(0, |text| text.len());
        let version = Arc::new(StartVersion {
            id,
            body: version.body,
            execution_timeout: version.execution_timeout,
        });
        self.lock().add(version.clone(), EACH_BYTES + body);
        Ok(Some(version))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn add(&mut self, version: Arc<StartVersion>, bytes: usize) {
        if self.bytes + bytes > REMEMBERED_BYTES {
            *self = Self::default();
        }
        if self.versions.insert(version.id, version).is_none() {
            self.bytes += bytes;
        }
    }
}
