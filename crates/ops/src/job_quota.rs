//! The quota of worker keys: how many bytes the open jobs in the queues of a key may have, progress included. Counts what this process enqueues, and measures in the
//! store when that is much.

use crate::admission::{Admission, Admitted, Sums};
use leasehold_core::key::KeyScope;
use leasehold_core::limits::{JOB_OVERHEAD_BYTES, KEY_MAX_OPEN_BYTES};
use leasehold_core::{KeyId, Usage};
use leasehold_store::job::NewJob;
use leasehold_store::{EpochId, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a measurement that leaves no room is used: it reads every open job of the key's queues.
const FULL_FOR: Duration = Duration::from_secs(1);
/// The maximum number of keys with a known measurement.
const KEYS_MAX: usize = 10_000;

/// Why jobs were not enqueued.
#[derive(Debug, Error)]
pub enum JobQuotaError {
    /// The open jobs have too many bytes.
    #[error(
        "quota exceeded: the open jobs in the queues of this key have {open} bytes, {added} more would exceed its maximum of {max}; {}",
        if *added <= *max { "retry when jobs have ended" } else { "waiting does not help, because the call alone exceeds it: enqueue less in one call" }
    )]
    Bytes {
        /// The bytes of the open jobs.
        open: u64,
        /// The bytes of the call.
        added: u64,
        /// The limit.
        max: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

impl JobQuotaError {
    /// Whether the same call fits when jobs have ended: not if it alone exceeds the limit.
    pub fn may_fit_later(&self) -> bool {
        match self {
            Self::Bytes { added, max, .. } => added <= max,
            Self::Store(_) => true,
        }
    }
}

/// Limits the bytes of open jobs in the queues of each worker key. Measures again when a key has enqueued an eighth of the limit since the last
/// measurement, so a limit may be exceeded by an eighth for each process, and by what is in flight.
#[derive(Debug)]
pub struct JobQuotas {
    max: u64,
    known: Mutex<HashMap<KeyId, KeyUsage>>,
    /// The epoch of the store in which they were measured.
    epoch: Mutex<Option<EpochId>>,
}

/// The usage of a key. The bytes of jobs that ended since the measurement are still counted.
#[derive(Debug, Default)]
struct KeyUsage {
    measured: u64,
    measured_at: Option<Instant>,
    /// What this process had admitted when it began to measure.
    then: Sums,
    admitted: Admitted,
    /// Locked by the call that measures.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The decision about a call.
enum Step {
    Admit(Admission),
    /// Measure, one call of the key after the other.
    Measure {
        /// What was admitted before.
        then: Sums,
        turn: Arc<tokio::sync::Mutex<()>>,
    },
    Refuse(u64),
}

impl Default for JobQuotas {
    fn default() -> Self {
        Self::new(KEY_MAX_OPEN_BYTES)
    }
}

impl JobQuotas {
    /// Creates quotas with this limit for each key.
    pub fn new(max: u64) -> Self {
        Self {
            max,
            known: Mutex::default(),
            epoch: Mutex::default(),
        }
    }

    /// Admits these jobs of a key, all or none. Only worker keys are limited; the others need no admission.
    pub async fn admit(
        &self,
        store: &dyn Store,
        key: KeyId,
        scope: &KeyScope,
        jobs: impl IntoIterator<Item = &NewJob>,
    ) -> Result<Option<Admission>, JobQuotaError> {
        let bytes = |job: &NewJob| job.payload.as_str().len() as u64 + JOB_OVERHEAD_BYTES;
        let added: u64 = jobs.into_iter().map(bytes).sum();
        self.admit_bytes(store, key, scope, added).await
    }

    /// Admits this many more bytes of a key's jobs. One call of a key measures at a time; the others wait for its figure.
    pub async fn admit_bytes(
        &self,
        store: &dyn Store,
        key: KeyId,
        scope: &KeyScope,
        added: u64,
    ) -> Result<Option<Admission>, JobQuotaError> {
        let KeyScope::Worker { queues } = scope else {
            return Ok(None);
        };
        self.enter(store.epoch());
        let turn = match self.step(key, added) {
            Step::Admit(admission) => return Ok(Some(admission)),
            Step::Refuse(open) => return Err(self.full(open, added)),
            Step::Measure { turn, .. } => turn,
        };
        let _turn = turn.lock().await;
        let then = match self.step(key, added) {
            Step::Admit(admission) => return Ok(Some(admission)),
            Step::Refuse(open) => return Err(self.full(open, added)),
            Step::Measure { then, .. } => then,
        };
        let measured = store.queue_open_bytes(queues, self.max).await?;
        let mut known = self.known();
        let usage = known.entry(key).or_default();
        usage.measured = measured;
        usage.measured_at = Some(Instant::now());
        usage.then = then;
        let open = usage.open();
        if open.saturating_add(added) > self.max {
            return Err(self.full(open, added));
        }
        Ok(Some(usage.admitted.begin(bytes(added))))
    }

    fn step(&self, key: KeyId, added: u64) -> Step {
        let mut known = self.known();
        if known.len() >= KEYS_MAX && !known.contains_key(&key) {
            known.retain(|_, usage| usage.is_in_use());
        }
        let usage = known.entry(key).or_default();
        let fits = usage.open().saturating_add(added) <= self.max;
        let since = usage.admitted.begun_since(usage.then).bytes;
        if fits && since.saturating_add(added) <= self.max / 8 {
            return Step::Admit(usage.admitted.begin(bytes(added)));
        }
        let is_fresh = usage.measured_at.is_some_and(|at| at.elapsed() < FULL_FOR);
        if !fits && is_fresh {
            return Step::Refuse(usage.open());
        }
        Step::Measure {
            then: usage.admitted.sums(),
            turn: Arc::clone(&usage.turn),
        }
    }

    fn full(&self, open: u64, added: u64) -> JobQuotaError {
        JobQuotaError::Bytes {
            open,
            added,
            max: self.max,
        }
    }

    /// Forgets the figures of another epoch. What is in flight stays counted.
    fn enter(&self, epoch: Option<EpochId>) {
        let mut entered = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if *entered != epoch {
            *entered = epoch;
            self.known().retain(|_, usage| {
                usage.measured = 0;
                usage.measured_at = None;
                usage.then = usage.admitted.sums();
                usage.is_in_use()
            });
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<KeyId, KeyUsage>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyUsage {
    /// Whether a call of the key is in flight or measures.
    fn is_in_use(&self) -> bool {
        self.admitted.is_in_use() || Arc::strong_count(&self.turn) > 1
    }

    fn open(&self) -> u64 {
        let missed = self.admitted.missed(self.then).bytes;
        self.measured.saturating_add(missed)
    }
}

/// Returns the usage of these bytes of jobs. Their number is not limited.
fn bytes(bytes: u64) -> Usage {
    Usage { requests: 0, bytes }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_store::{SchemaStore, fresh_id};
    use leasehold_store_sqlite::{SqliteOptions, SqliteStore};

    #[tokio::test]
    async fn jobs_in_flight_count_while_many_other_keys_are_used() {
        let store = SqliteStore::open_in_memory(&SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        let quotas = JobQuotas::new(1_000);
        let scope = KeyScope::Worker {
            queues: vec!["a".to_owned()],
        };
        let key: KeyId = fresh_id();
        let in_flight = quotas.admit_bytes(&store, key, &scope, 600).await.unwrap();
        for _ in 1..KEYS_MAX {
            quotas.known().entry(fresh_id()).or_default();
        }
        drop(
            quotas
                .admit_bytes(&store, fresh_id(), &scope, 1)
                .await
                .unwrap(),
        );
        assert_eq!(quotas.known().len(), 2, "the idle ones are forgotten");
        let refused = quotas.admit_bytes(&store, key, &scope, 600).await;
        assert!(matches!(
            refused,
            Err(JobQuotaError::Bytes { open: 600, .. })
        ));
        drop(in_flight);
    }
}
