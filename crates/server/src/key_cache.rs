//! The cache of API keys: looks keys up in the store and keeps them for a short time. Knows no route.

use leasehold_core::key::Secret;
use leasehold_store::key::Key;
use leasehold_store::{Error, ErrorKind, Result, Store};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of cached keys.
const CACHED_MAX: usize = 10_000;
/// Maximum number of concurrent lookups of uncached keys.
const LOOKUPS_MAX: usize = 4;
/// Time limit for the store before a stale key is used.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

type CachedKeys = HashMap<[u8; 32], (Arc<Key>, Instant)>;

pub(crate) struct KeyCache {
    store: Arc<dyn Store>,
    fresh_for: Duration,
    cached: Mutex<CachedKeys>,
    /// Incremented by every invalidation: a lookup that began before it is not cached.
    invalidations: AtomicU64,
    lookups: Semaphore,
}

impl KeyCache {
    pub(crate) fn new(store: Arc<dyn Store>, fresh_for: Duration) -> Self {
        Self {
            store,
            fresh_for,
            cached: Mutex::default(),
            invalidations: AtomicU64::new(0),
            lookups: Semaphore::new(LOOKUPS_MAX),
        }
    }

    /// Returns the key with this secret, or `None` if it is unknown or revoked.
    pub(crate) async fn find(&self, text: &str) -> Result<Option<Arc<Key>>> {
        let Some(secret) = Secret::parse(text) else {
            return Ok(None);
        };
        self.find_by_hash(secret.hash()).await
    }

    /// Like [`Self::find`], but returns the last known state of the key while the store is unavailable. For monitoring routes, which change nothing.
    pub(crate) async fn find_or_stale(&self, text: &str) -> Result<Option<Arc<Key>>> {
        let error = match timeout(STORE_TIMEOUT, self.find(text)).await {
            Ok(Err(error)) if error.is_retryable() => error,
            Ok(answered) => return answered,
            Err(_) => {
                let text = format!("no answer within {STORE_TIMEOUT:?}");
                Error::new("key_find", ErrorKind::Unavailable(text))
            }
        };
        let hash = Secret::parse(text).map(|secret| secret.hash());
        let cached = self.cached();
        let known = hash.and_then(|hash| cached.get(&hash));
        match known {
            Some((key, _)) => Ok(Some(key.clone())),
            None => Err(error),
        }
    }

    /// Whether a key that was found before is still valid.
    pub(crate) async fn is_valid(&self, key: &Key) -> Result<bool> {
        Ok(self.find_by_hash(key.hash).await?.is_some())
    }

    async fn find_by_hash(&self, hash: [u8; 32]) -> Result<Option<Arc<Key>>> {
        let known = match self.cached().get(&hash) {
            Some((key, since)) if since.elapsed() < self.fresh_for => {
                return Ok(Some(key.clone()));
            }
            known => known.is_some(),
        };
        // Lookups of unknown keys are limited, so that invalid keys cannot exhaust the store's connections.
        let _permit = match known {
            true => None,
            false => self.lookups.acquire().await.ok(),
        };
        let (asked, invalidations) = (Instant::now(), self.invalidations.load(Ordering::Acquire));
        let found = self.store.key_find(&hash).await?;
        let valid =
            found.filter(|key| key.revoked_at.is_none() && bool::from(key.hash.ct_eq(&hash)));
        let mut cached = self.cached();
        let Some(key) = valid.map(Arc::new) else {
            cached.remove(&hash);
            return Ok(None);
        };
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        if self.invalidations.load(Ordering::Acquire) == invalidations {
            cached.insert(hash, (key.clone(), asked));
        }
        Ok(Some(key))
    }

    /// Removes this key from the cache.
    pub(crate) fn invalidate(&self, key: &Key) {
        self.invalidations.fetch_add(1, Ordering::AcqRel);
        self.cached().remove(&key.hash);
    }

    fn cached(&self) -> MutexGuard<'_, CachedKeys> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
