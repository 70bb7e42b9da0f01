//! Looks up keys, caches them for a short time, and records their use. Knows no route.

use crate::call_owner::{Owner, Place, RunningCall};
use crate::call_task;
use crate::owner_pool::OwnerPool;
use leasehold_core::fair_pool::FairPool;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_core::limits::KEY_LOOKUPS_WAITING_MAX;
use leasehold_core::{KeyId, Timestamp, WorkspaceId};
use leasehold_store::key::Key;
use leasehold_store::{EpochId, Error, ErrorKind, Result, Store};
use leasehold_telemetry::FloatGauge;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of cached keys.
const CACHED_MAX: usize = 10_000;
/// Maximum number of concurrent lookups of uncached keys, and of the known keys of one workspace, or of one key that has none.
const LOOKUPS_MAX: usize = 4;
/// Time limit for the store before a stale key is used.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// The batching delay of records of use.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// The result of looking up a secret.
#[derive(Clone, Debug)]
pub(crate) enum KeyLookup {
    /// The key is valid.
    Valid(Arc<Key>),
    /// The key expired at this time.
    Expired(Timestamp),
    /// There is no such key, it is revoked, or its workspace is deleted.
    Unknown,
    /// Too many calls wait for the lookup of their key.
    Overloaded,
}

struct CachedKey {
    key: Arc<Key>,
    /// When it was read from the store, and in which epoch.
    read_at: Instant,
    epoch: Option<EpochId>,
    /// When its use was last recorded, or put into the next batch.
    use_recorded_at: Option<Instant>,
}

type CachedKeys = HashMap<[u8; 32], CachedKey>;

/// The intervals of a [`KeyCache`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyCacheIntervals {
    /// How long a key is used without asking the store again.
    pub(crate) fresh_for: Duration,
    /// Shortest time between two records of the use of a key.
    pub(crate) use_interval: Duration,
}

pub(crate) struct KeyCache {
    store: Arc<dyn Store>,
    intervals: KeyCacheIntervals,
    cached: Mutex<CachedKeys>,
    /// Incremented by every invalidation: a lookup that began before it is not cached.
    invalidations: AtomicU64,
    lookups: Arc<Semaphore>,
    /// Lookups that run or wait.
    waiting: Arc<Semaphore>,
    /// Lookups of known keys, by owner.
    known_lookups: Arc<OwnerPool>,
    /// Keys whose use the next batch records.
    used: Arc<Mutex<Vec<KeyId>>>,
}

impl KeyCache {
    pub(crate) fn new(store: Arc<dyn Store>, intervals: KeyCacheIntervals) -> Self {
        Self {
            store,
            intervals,
            cached: Mutex::default(),
            invalidations: AtomicU64::new(0),
            lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            waiting: Arc::new(Semaphore::new(LOOKUPS_MAX + KEY_LOOKUPS_WAITING_MAX)),
            known_lookups: OwnerPool::with(
                FairPool::new(usize::MAX).with_owner_max(LOOKUPS_MAX),
                FloatGauge::default(),
            ),
            used: Arc::default(),
        }
    }

    /// Looks up the key with this secret. Only the holder of a secret learns that its key expired.
    pub(crate) async fn find(&self, text: &str) -> Result<KeyLookup> {
        let Some(secret) = Secret::parse(text) else {
            return Ok(KeyLookup::Unknown);
        };
        self.find_by_hash(secret.hash(), None).await
    }

    /// Like [`Self::find`], but returns the last known state of the key while the store is unavailable. For monitoring routes, which change nothing.
    pub(crate) async fn find_or_stale(&self, text: &str) -> Result<KeyLookup> {
        let error = match timeout(STORE_TIMEOUT, self.find(text)).await {
            Ok(Err(error)) if error.is_retryable() => error,
            Ok(answered) => return answered,
            Err(_) => {
                let text = format!("no answer within {STORE_TIMEOUT:?}");
                Error::new("key_find", ErrorKind::Unavailable(text))
            }
        };
        let hash = Secret::parse(text).map(|secret| secret.hash());
        let cached = lock(&self.cached);
        match hash.and_then(|hash| cached.get(&hash)) {
            // Without the store this machine's clock decides.
            Some(CachedKey { key, .. }) => Ok(match key.expires_at {
                Some(at) if at <= Timestamp::now() => KeyLookup::Expired(at),
                _ => KeyLookup::Valid(key.clone()),
            }),
            None => Err(error),
        }
    }

    /// Looks up a key that was found before. Does not wait for the lookups of unknown keys.
    pub(crate) async fn find_again(&self, key: &Key) -> Result<KeyLookup> {
        self.find_by_hash(key.hash, Some(Owner::of(key))).await
    }

    async fn find_by_hash(&self, hash: [u8; 32], found: Option<Owner>) -> Result<KeyLookup> {
        let known = match self.fresh(&hash) {
            Ok(key) => return Ok(KeyLookup::Valid(key)),
            Err(known) => known.or(found),
        };
        let Some(place) = self.place(known).await else {
            return Ok(KeyLookup::Overloaded);
        };
        // Another call may have read it meanwhile.
        if let Ok(key) = self.fresh(&hash) {
            return Ok(KeyLookup::Valid(key));
        }
        let (read_at, invalidations) = (Instant::now(), self.invalidations.load(Ordering::Acquire));
        let epoch = self.store.epoch();
        let call = RunningCall::new(known.unwrap_or(Owner::Anonymous), Some(place));
        let store = Arc::clone(&self.store);
        let read = async move { store.key_find(&hash).await };
        let found = call_task::run_for(call, read).await?;
        let found =
            found.filter(|key| key.revoked_at.is_none() && bool::from(key.hash.ct_eq(&hash)));
        let mut cached = lock(&self.cached);
        let key = match found {
            Some(key) if !key.is_expired => Arc::new(key),
            invalid => {
                cached.remove(&hash);
                let expired_at = invalid.and_then(|key| key.expires_at);
                return Ok(expired_at.map_or(KeyLookup::Unknown, KeyLookup::Expired));
            }
        };
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        let mut read = CachedKey {
            key: key.clone(),
            read_at,
            epoch,
            use_recorded_at: cached.get(&hash).and_then(|known| known.use_recorded_at),
        };
        self.record_use(&mut read);
        if self.invalidations.load(Ordering::Acquire) == invalidations {
            cached.insert(hash, read);
        }
        Ok(KeyLookup::Valid(key))
    }

    /// Returns a key that was read recently; otherwise the owner of its last known state.
    fn fresh(&self, hash: &[u8; 32]) -> Result<Arc<Key>, Option<Owner>> {
        match lock(&self.cached).get_mut(hash) {
            Some(cached)
                if cached.read_at.elapsed() < self.intervals.fresh_for
                    && cached.epoch == self.store.epoch() =>
            {
                self.record_use(cached);
                Ok(cached.key.clone())
            }
            known => Err(known.map(|cached| Owner::of(&cached.key))),
        }
    }

    /// Waits for the place of a lookup, which it holds until the store has answered, even if its caller disconnects. Lookups of unknown keys are limited
    /// together, so that invalid keys can neither exhaust the store's connections nor delay valid ones without end; too many get no place.
    async fn place(&self, known: Option<Owner>) -> Option<Place> {
        if let Some(owner) = known {
            return Some(Arc::new(self.known_lookups.acquire(owner).await));
        }
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        let running = Arc::clone(&self.lookups).acquire_owned().await.ok()?;
        Some(Arc::new((waiting, running)))
    }

    /// Puts the key into the next batch, unless its use was recorded recently. The first key of a batch starts the task that writes it, so a call never
    /// waits for the write.
    fn record_use(&self, cached: &mut CachedKey) {
        let recorded = cached.use_recorded_at.map(|at| at.elapsed());
        if recorded.is_some_and(|ago| ago < self.intervals.use_interval) {
            return;
        }
        cached.use_recorded_at = Some(Instant::now());
        let mut used = lock(&self.used);
        used.push(cached.key.id);
        if used.len() > 1 {
            return;
        }
        // The task does not keep the store open.
        let (store, used) = (Arc::downgrade(&self.store), self.used.clone());
        let delay = FLUSH_DELAY.min(self.intervals.use_interval);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let ids = std::mem::take(&mut *lock(&used));
            let Some(store) = store.upgrade() else {
                return;
            };
            if let Err(error) = store.key_used(&ids).await {
                let keys = ids.len();
                tracing::debug!(%error, keys, "failed to record the last use of keys");
            }
        });
    }

    /// Removes this key from the cache.
    pub(crate) fn invalidate(&self, key: &Key) {
        self.invalidations.fetch_add(1, Ordering::AcqRel);
        lock(&self.cached).remove(&key.hash);
    }

    /// Removes the keys of this workspace from the cache.
    pub(crate) fn invalidate_workspace(&self, workspace: WorkspaceId) {
        self.invalidations.fetch_add(1, Ordering::AcqRel);
        let scope = KeyScope::Workspace(workspace);
        lock(&self.cached).retain(|_, cached| cached.key.rights.scope != scope);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
