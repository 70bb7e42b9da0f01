//! Which key a text is: asked of the store, and remembered for a moment. Knows no route.

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

/// Keys remembered at once.
const KEPT_MAX: usize = 10_000;
/// Texts looked up in the store at once.
const LOOKUPS_AT_ONCE: usize = 4;
/// How long a store is waited for by those who must be served without it.
const PATIENCE: Duration = Duration::from_secs(2);

type Kept = HashMap<[u8; 32], (Arc<Key>, Instant)>;

pub(crate) struct Keyring {
    store: Arc<dyn Store>,
    fresh_for: Duration,
    kept: Mutex<Kept>,
    /// Rises with every key that is forgotten: what was asked before is not kept then.
    forgotten: AtomicU64,
    lookups: Semaphore,
}

impl Keyring {
    pub(crate) fn new(store: Arc<dyn Store>, fresh_for: Duration) -> Self {
        Self {
            store,
            fresh_for,
            kept: Mutex::default(),
            forgotten: AtomicU64::new(0),
            lookups: Semaphore::new(LOOKUPS_AT_ONCE),
        }
    }

    /// The key with this text, unless there is none or it is revoked.
    pub(crate) async fn open(&self, text: &str) -> Result<Option<Arc<Key>>> {
        let Some(secret) = Secret::parse(text) else {
            return Ok(None);
        };
        self.find(secret.hash()).await
    }

    /// The same; but while the store does not answer, a key that was valid when it was last asked for counts. For what must be seen just then, and changes nothing.
    pub(crate) async fn open_even_alone(&self, text: &str) -> Result<Option<Arc<Key>>> {
        let error = match timeout(PATIENCE, self.open(text)).await {
            Ok(Err(error)) if error.is_retryable() => error,
            Ok(answered) => return answered,
            Err(_) => {
                let silent = format!("it has not answered within {PATIENCE:?}");
                Error::new("key_find", ErrorKind::Unavailable(silent))
            }
        };
        let hash = Secret::parse(text).map(|secret| secret.hash());
        let kept = self.kept();
        let known = hash.and_then(|hash| kept.get(&hash));
        match known {
            Some((key, _)) => Ok(Some(key.clone())),
            None => Err(error),
        }
    }

    /// Whether a key that was opened before is still valid.
    pub(crate) async fn holds(&self, key: &Key) -> Result<bool> {
        Ok(self.find(key.hash).await?.is_some())
    }

    async fn find(&self, hash: [u8; 32]) -> Result<Option<Arc<Key>>> {
        let known = match self.kept().get(&hash) {
            Some((key, since)) if since.elapsed() < self.fresh_for => {
                return Ok(Some(key.clone()));
            }
            known => known.is_some(),
        };
        // Anybody can make texts that look like keys; they shall not take the store's connections from those who have one.
        let _turn = match known {
            true => None,
            false => self.lookups.acquire().await.ok(),
        };
        let (asked, forgotten) = (Instant::now(), self.forgotten.load(Ordering::Acquire));
        let found = self.store.key_find(&hash).await?;
        let valid =
            found.filter(|key| key.revoked_at.is_none() && bool::from(key.hash.ct_eq(&hash)));
        let mut kept = self.kept();
        let Some(key) = valid.map(Arc::new) else {
            kept.remove(&hash);
            return Ok(None);
        };
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        if self.forgotten.load(Ordering::Acquire) == forgotten {
            kept.insert(hash, (key.clone(), asked));
        }
        Ok(Some(key))
    }

    /// Asks anew for this key when it is next used.
    pub(crate) fn forget(&self, key: &Key) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.kept().remove(&key.hash);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
