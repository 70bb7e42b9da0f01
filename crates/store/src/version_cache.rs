//! Versions that a store read lately, kept in memory: a version never changes. Reads nothing itself.

use leasehold_core::graph::{GraphProblem, Machine};
use leasehold_core::{Version, VersionBody, VersionId, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of cached versions, about. A graph may be a megabyte, but a binding is next to nothing, and every workspace has
/// one of its own: as long as those fit, a start reads no version from the database.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// What a version takes beside its body.
const EACH_BYTES: usize = 256;

/// Versions by id.
#[derive(Debug, Default)]
pub struct VersionCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    versions: HashMap<VersionId, Arc<CachedVersion>>,
    bytes: usize,
}

/// A version, and the machine of its graph, made when it is first asked for.
#[derive(Debug)]
pub struct CachedVersion {
    version: Arc<Version>,
    machine: OnceLock<Arc<Machine>>,
}

impl VersionCache {
    /// The version of this workspace, if it is cached.
    pub fn get(&self, workspace: WorkspaceId, id: VersionId) -> Option<Arc<CachedVersion>> {
        let entries = self.entries();
        let found = entries.versions.get(&id);
        found
            .filter(|cached| cached.version.workspace == workspace)
            .cloned()
    }

    /// Keeps a version that was read. When there is no room, all others are dropped.
    pub fn insert(&self, version: Version) -> Arc<CachedVersion> {
        let (id, bytes) = (version.id, bytes(&version));
        let cached = Arc::new(CachedVersion {
            version: Arc::new(version),
            machine: OnceLock::new(),
        });
        self.entries().insert(id, &cached, bytes, MAX_BYTES);
        cached
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn insert(&mut self, id: VersionId, cached: &Arc<CachedVersion>, bytes: usize, max: usize) {
        if self.bytes + bytes > max {
            *self = Self::default();
        }
        if self.versions.insert(id, Arc::clone(cached)).is_none() {
            self.bytes += bytes;
        }
    }
}

impl CachedVersion {
    /// The version.
    pub fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// The machine that runs its graph; none if it has no graph.
    pub fn machine(&self) -> Result<Option<Arc<Machine>>, GraphProblem> {
        let VersionBody::Graph(graph) = &self.version.body else {
            return Ok(None);
        };
        if let Some(machine) = self.machine.get() {
            return Ok(Some(Arc::clone(machine)));
        }
        let machine = Arc::new(Machine::new(graph.clone())?);
        Ok(Some(Arc::clone(self.machine.get_or_init(|| machine))))
    }
}

/// What a version takes in memory, about. The machine has a copy of the graph.
fn bytes(version: &Version) -> usize {
    let body = serde_json::to_vec(&version.body).map_or(0, |text| text.len());
    let schema = version.params_schema.as_ref();
    let schema = schema.map_or(0, |schema| schema.to_string().len());
    let copies = match version.body {
        VersionBody::Graph(_) => 2,
        VersionBody::Binding { .. } => 1,
    };
    EACH_BYTES + copies * body + schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fresh_id;
    use leasehold_core::Timestamp;
    use serde_json::json;

    fn version(body: serde_json::Value) -> Version {
        Version {
            id: fresh_id(),
            workspace: fresh_id(),
            definition: fresh_id(),
            number: 1,
            body: serde_json::from_value(body).expect("it is a body"),
            params_schema: None,
            execution_timeout: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn binding() -> Version {
        version(json!({"binding": {"workflow_type": "Order", "task_queue": "orders"}}))
    }

    #[test]
    fn another_workspace_does_not_find_it() {
        let (cache, version) = (VersionCache::default(), binding());
        cache.insert(version.clone());
        let found = cache.get(version.workspace, version.id);
        let found = found.expect("it was inserted");
        assert_eq!(**found.version(), version);
        assert!(cache.get(fresh_id(), version.id).is_none());
        assert!(cache.get(version.workspace, fresh_id()).is_none());
    }

    #[test]
    fn a_machine_is_made_once_and_only_of_a_graph() {
        let cache = VersionCache::default();
        let bound = cache.insert(binding());
        assert!(bound.machine().expect("nothing is wrong").is_none());
        let graph = json!({"nodes": [{"id": "a", "type": "task", "queue": "q"}]});
        let graph = cache.insert(version(json!({ "graph": graph })));
        let machine = || graph.machine().expect("it can run").expect("it is a graph");
        assert!(Arc::ptr_eq(&machine(), &machine()));
    }

    #[test]
    fn a_full_cache_drops_the_others() {
        let (mut entries, cache) = (Entries::default(), VersionCache::default());
        for _ in 0..3 {
            let cached = cache.insert(binding());
            entries.insert(cached.version().id, &cached, 400, 1_000);
        }
        assert_eq!((entries.versions.len(), entries.bytes), (1, 400));
    }
}
