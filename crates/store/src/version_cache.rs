//! An in-memory LRU cache of versions. Versions are immutable, so entries never become stale. Reads nothing itself.

use leasehold_core::graph::{GraphProblem, Machine};
use leasehold_core::{Version, VersionBody, VersionId, WorkspaceId, json};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Approximate maximum size in bytes. A graph can take a megabyte, a binding takes almost nothing. While all versions in use fit,
/// a start reads no version from the database.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Overhead of an entry besides its body.
const EACH_BYTES: usize = 256;

/// Versions by id.
#[derive(Debug, Default)]
pub struct VersionCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    versions: HashMap<VersionId, Entry>,
    /// The versions by last use, a rising number.
    by_use: BTreeMap<u64, VersionId>,
    last_use: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    cached: Arc<CachedVersion>,
    bytes: usize,
    used: u64,
}

/// A version and the machine of its graph, which is built on first use.
#[derive(Debug)]
pub struct CachedVersion {
    version: Arc<Version>,
    machine: OnceLock<Arc<Machine>>,
}

impl VersionCache {
    /// Returns the version of this workspace, if cached.
    pub fn get(&self, workspace: WorkspaceId, id: VersionId) -> Option<Arc<CachedVersion>> {
        self.entries().get(workspace, id)
    }

    /// Inserts a version, and evicts the least recently used ones if the cache is full.
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
    fn get(&mut self, workspace: WorkspaceId, id: VersionId) -> Option<Arc<CachedVersion>> {
        let entry = self.versions.get_mut(&id);
        let entry = entry.filter(|entry| entry.cached.version.workspace == workspace)?;
        self.last_use += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.last_use, id);
        entry.used = self.last_use;
        Some(Arc::clone(&entry.cached))
    }

    fn insert(&mut self, id: VersionId, cached: &Arc<CachedVersion>, bytes: usize, max: usize) {
        self.remove(id);
        while self.bytes + bytes > max
            && let Some((_, oldest)) = self.by_use.first_key_value()
        {
            self.remove(*oldest);
        }
        self.last_use += 1;
        self.by_use.insert(self.last_use, id);
        self.bytes += bytes;
        let entry = Entry {
            cached: Arc::clone(cached),
            bytes,
            used: self.last_use,
        };
        self.versions.insert(id, entry);
    }

    fn remove(&mut self, id: VersionId) {
        if let Some(entry) = self.versions.remove(&id) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

impl CachedVersion {
    /// Returns the version.
    pub fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// Returns the machine that runs its graph; none for a binding.
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

/// Estimates the memory of a version. The machine holds a copy of the graph. Templates and schemas are trees of JSON, which take many times
/// the memory of their text.
fn bytes(version: &Version) -> usize {
    let tree = |value: &Value| json::tree_bytes(value.to_string().as_bytes());
    let body = serde_json::to_vec(&version.body).map_or(0, |text| text.len());
    let body = match &version.body {
        VersionBody::Graph(graph) => {
            let inputs = graph.nodes.iter().filter_map(|node| node.input.as_ref());
            2 * (body + inputs.map(tree).sum::<usize>())
        }
        VersionBody::Binding { .. } => body,
    };
    EACH_BYTES + body + version.params_schema.as_ref().map_or(0, tree)
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
            body: serde_json::from_value(body).expect("valid body"),
            params_schema: None,
            execution_timeout: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn binding() -> Version {
        version(json!({"binding": {"workflow_type": "Order", "task_queue": "orders"}}))
    }

    #[test]
    fn version_is_not_found_in_another_workspace() {
        let (cache, version) = (VersionCache::default(), binding());
        cache.insert(version.clone());
        let found = cache.get(version.workspace, version.id);
        let found = found.expect("it was inserted");
        assert_eq!(**found.version(), version);
        assert!(cache.get(fresh_id(), version.id).is_none());
        assert!(cache.get(version.workspace, fresh_id()).is_none());
    }

    #[test]
    fn machine_is_built_once_and_only_for_a_graph() {
        let cache = VersionCache::default();
        let bound = cache.insert(binding());
        assert!(bound.machine().expect("nothing is wrong").is_none());
        let graph = json!({"nodes": [{"id": "a", "type": "task", "queue": "q"}]});
        let graph = cache.insert(version(json!({ "graph": graph })));
        let machine = || graph.machine().expect("it can run").expect("it is a graph");
        assert!(Arc::ptr_eq(&machine(), &machine()));
    }

    #[test]
    fn full_cache_evicts_the_least_recently_used_versions() {
        let (mut entries, cache) = (Entries::default(), VersionCache::default());
        let cached: Vec<_> = (0..4).map(|_| cache.insert(binding())).collect();
        let used = |entries: &mut Entries, n: usize| {
            let version = cached[n].version();
            entries.get(version.workspace, version.id).is_some()
        };
        for (n, one) in cached.iter().enumerate() {
            entries.insert(one.version().id, one, 300, 1_000);
            assert!(used(&mut entries, 0), "the used version stays: {n}");
        }
        assert_eq!((entries.versions.len(), entries.bytes), (3, 900));
        assert!(!used(&mut entries, 1));
        entries.insert(cached[1].version().id, &cached[1], 1_000, 1_000);
        assert_eq!((entries.versions.len(), entries.bytes), (1, 1_000));
        assert_eq!(entries.by_use.len(), 1);
    }

    #[test]
    fn template_of_small_objects_counts_with_the_memory_of_its_tree() {
        let input = Value::Array(vec![json!({"a": 1}); 10_000]);
        let text = input.to_string().len();
        let node = json!({"id": "a", "type": "task", "queue": "q", "input": input});
        let version = version(json!({"graph": {"nodes": [node]}}));
        assert!(bytes(&version) > 100 * text);
    }

    #[test]
    fn version_inserted_twice_counts_once() {
        let (mut entries, cache) = (Entries::default(), VersionCache::default());
        let cached = cache.insert(binding());
        for _ in 0..3 {
            entries.insert(cached.version().id, &cached, 400, 1_000);
        }
        assert_eq!((entries.versions.len(), entries.bytes), (1, 400));
        assert_eq!(entries.by_use.len(), 1);
    }
}
