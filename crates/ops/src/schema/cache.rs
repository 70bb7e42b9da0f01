//! A cache of compiled schemas by version, bounded by count and bytes. The least recently used are evicted first.

use leasehold_core::VersionId;
use leasehold_core::limits::{SCHEMA_CACHE_MAX, SCHEMA_CACHE_MAX_BYTES};
use leasehold_schema::{Schema, SchemaError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of an entry beside its schema.
const ENTRY_BYTES: usize = 256;

/// What is known of a version's params schema.
#[derive(Debug, Clone)]
pub(crate) enum VersionSchema {
    /// It has none.
    Absent,
    /// It is compiled.
    Compiled(Arc<Schema>),
    /// It was published when other rules held, and is refused now.
    Refused(Arc<SchemaError>),
}

impl VersionSchema {
    fn bytes(&self) -> usize {
        match self {
            Self::Absent | Self::Refused(_) => ENTRY_BYTES,
            Self::Compiled(schema) => ENTRY_BYTES + schema.bytes(),
        }
    }
}

/// A cache of schemas by version.
#[derive(Debug, Default)]
pub(super) struct SchemaCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_version: HashMap<VersionId, Entry>,
    bytes: usize,
    /// Rises with every use.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    schema: VersionSchema,
    last_use: u64,
}

impl SchemaCache {
    pub(super) fn get(&self, version: VersionId) -> Option<VersionSchema> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.uses += 1;
        let last_use = entries.uses;
        let entry = entries.by_version.get_mut(&version)?;
        entry.last_use = last_use;
        Some(entry.schema.clone())
    }

    pub(super) fn insert(&self, version: VersionId, schema: VersionSchema) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(version);
        let bytes = schema.bytes();
        while entries.by_version.len() >= SCHEMA_CACHE_MAX
            || entries.bytes + bytes > SCHEMA_CACHE_MAX_BYTES
        {
            let by_use = entries.by_version.iter();
            let Some(oldest) = by_use.min_by_key(|(_, entry)| entry.last_use) else {
                break;
            };
            let oldest = *oldest.0;
            entries.remove(oldest);
        }
        entries.uses += 1;
        entries.bytes += bytes;
        let last_use = entries.uses;
        entries
            .by_version
            .insert(version, Entry { schema, last_use });
    }
}

impl Entries {
    fn remove(&mut self, version: VersionId) {
        if let Some(removed) = self.by_version.remove(&version) {
            self.bytes -= removed.schema.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_store::fresh_id;
    use serde_json::json;

    impl SchemaCache {
        fn len(&self) -> usize {
            self.0.lock().unwrap().by_version.len()
        }
    }

    #[test]
    fn least_recently_used_schema_is_evicted_first() {
        let cache = SchemaCache::default();
        let versions: Vec<VersionId> = (0..=SCHEMA_CACHE_MAX).map(|_| fresh_id()).collect();
        for version in &versions[..SCHEMA_CACHE_MAX] {
            cache.insert(*version, VersionSchema::Absent);
        }
        assert!(cache.get(versions[0]).is_some());
        cache.insert(versions[SCHEMA_CACHE_MAX], VersionSchema::Absent);
        assert_eq!(cache.len(), SCHEMA_CACHE_MAX);
        assert!(cache.get(versions[0]).is_some());
        assert!(cache.get(versions[1]).is_none());
    }

    #[test]
    fn bytes_of_cached_schemas_are_bounded() {
        // Each pattern has a program of its own.
        let pattern = |n: usize| (format!("^[a-f]{{100,{}}}$", 200 + n), json!({}));
        let patterns: serde_json::Map<_, _> = (0..16).map(pattern).collect();
        let schema = Schema::compile(&json!({ "patternProperties": patterns })).unwrap();
        let schema = Arc::new(schema);
        let fits = SCHEMA_CACHE_MAX_BYTES / (schema.bytes() + ENTRY_BYTES);
        assert!(fits < SCHEMA_CACHE_MAX / 2, "{fits} of such schemas fit");
        let cache = SchemaCache::default();
        for _ in 0..2 * fits {
            cache.insert(fresh_id(), VersionSchema::Compiled(schema.clone()));
        }
        assert_eq!(cache.len(), fits);
        let same = fresh_id();
        for _ in 0..3 {
            cache.insert(same, VersionSchema::Compiled(schema.clone()));
        }
        assert_eq!(cache.len(), fits);
    }
}
