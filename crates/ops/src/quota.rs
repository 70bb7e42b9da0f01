//! The quotas of workspaces, checked before requests are enqueued: tracks what this process enqueues, and reads limits and usage from the store
//! about once a second.

use crate::admission::{Admission, Admitted, Sums};
use leasehold_core::WorkspaceId;
use leasehold_core::quota::{QuotaExceeded, Usage, WorkspaceQuota};
use leasehold_store::request::NewRequest;
use leasehold_store::{EpochId, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::Mutex as AsyncMutex;

/// How long a figure is used.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long a figure that leaves no room is used, so that repeated calls of a rejected caller do not each cost a query.
const FULL_FOR: Duration = Duration::from_millis(100);
/// The maximum number of workspaces with a known figure.
const WORKSPACES_MAX: usize = 10_000;

/// Why a request was not enqueued.
#[derive(Debug, Error)]
pub enum QuotaError {
    /// Too many requests are PENDING.
    #[error(
        "backlog full: {pending} requests of the workspace are pending, {added} more would exceed its max_pending of {max}; {}",
        advice(*added, *max, "started")
    )]
    Pending {
        /// The number of PENDING requests.
        pending: u64,
        /// The number of requests of the call.
        added: u64,
        /// The limit.
        max: u64,
    },
    /// The open requests have too many bytes.
    #[error(
        "quota exceeded: the open requests of the workspace have {open} bytes, {added} more would exceed its max_open_bytes of {max}; {}",
        advice(*added, *max, "ended")
    )]
    Bytes {
        /// The bytes of open requests and executions.
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

/// Returns what to do about a call that adds this much to a quota of `max`, which is freed when requests have `freed_when`.
fn advice(added: u64, max: u64, freed_when: &str) -> String {
    if added <= max {
        format!("retry when requests have {freed_when}, or raise the limit")
    } else {
        "waiting does not help, because the call alone exceeds the limit: enqueue less in one call, or raise the limit".to_owned()
    }
}

impl QuotaError {
    /// Whether the same call fits when requests have ended: not if it alone exceeds the limit.
    pub fn may_fit_later(&self) -> bool {
        match self {
            Self::Pending { added, max, .. } | Self::Bytes { added, max, .. } => added <= max,
            Self::Store(_) => true,
        }
    }

    /// Whether a limit was exceeded, not a failure of the store.
    pub(crate) fn is_exceeded(&self) -> bool {
        match self {
            Self::Pending { .. } | Self::Bytes { .. } => true,
            Self::Store(_) => false,
        }
    }
}

/// Limits the PENDING requests and the open bytes of each workspace. Calls of other processes may exceed a limit within a second.
#[derive(Debug, Default)]
pub struct Quotas {
    known: Mutex<HashMap<WorkspaceId, KnownQuota>>,
    /// The epoch of the store in which they were read.
    epoch: Mutex<Option<EpochId>>,
}

/// The quotas of a workspace as last read.
#[derive(Debug, Default)]
struct KnownQuota {
    /// The last answer of the store.
    counted: Option<Counted>,
    /// When a call last began to query the store. None if the next call must query it.
    counted_at: Option<Instant>,
    admitted: Admitted,
    /// Locked by the call that queries the store for the first time.
    first: Arc<AsyncMutex<()>>,
}

/// An answer of the store.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The limits and the usage; none of a workspace that does not exist.
    quota: Option<WorkspaceQuota>,
    /// What this process had admitted when it asked.
    then: Sums,
}

/// A query of the store. While it lasts, its workspace is not forgotten.
struct Query {
    /// What was admitted before.
    then: Sums,
    #[expect(dead_code, reason = "a clone marks the workspace as in use")]
    admitted: Admitted,
}

/// The decision about a call.
enum Step {
    Admit(Admission),
    /// Query the store.
    Count(Query),
    /// Another call may be reading the first figure: take the turn, then decide again.
    Wait(Arc<AsyncMutex<()>>),
    Refuse(QuotaError),
}

/// Returns what the requests of a call add to a workspace.
pub(crate) fn usage_of<'a>(requests: impl IntoIterator<Item = &'a NewRequest>) -> Usage {
    let usage = |new: &NewRequest| Usage {
        requests: 1,
        bytes: new.bytes(),
    };
    let each = requests.into_iter().map(usage);
    each.fold(Usage::default(), Usage::plus)
}

impl Quotas {
    /// Admits this many more requests and bytes, all or none.
    pub async fn admit(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        added: Usage,
    ) -> Result<Admission, QuotaError> {
        self.enter(store.epoch());
        let mut turn = None;
        let query = loop {
            match self.step(workspace, added, turn.is_some()) {
                Step::Admit(admission) => return Ok(admission),
                Step::Refuse(error) => return Err(error),
                Step::Wait(first) => turn = Some(first.lock_owned().await),
                Step::Count(query) => break query,
            }
        };
        let quota = store.workspace_quota(workspace).await?;
        let mut known = self.known();
        let known = known.entry(workspace).or_default();
        known.counted = Some(Counted {
            quota,
            then: query.then,
        });
        known.check(added)?;
        Ok(known.admitted.begin(added))
    }

    /// Admits as much of `wanted` as fits; fails if no request fits. What the call did not use counts until [`Self::expire`].
    pub(crate) async fn admit_part(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        wanted: Usage,
    ) -> Result<Admission, QuotaError> {
        let least = Usage {
            requests: 1,
            bytes: 1,
        };
        self.expire(workspace);
        let least = self.admit(store, workspace, least).await?;
        let mut known = self.known();
        let known = known.entry(workspace).or_default();
        // Without a figure the workspace does not exist, or this process has forgotten it meanwhile: the store decides.
        let room = match known.quota() {
            Some((quota, used)) => quota.room(used.minus(least.usage())),
            None => wanted,
        };
        Ok(known.admitted.begin(Usage {
            // The least is admitted, whatever a newer figure says.
            requests: wanted.requests.min(room.requests.max(1)),
            bytes: wanted.bytes.min(room.bytes.max(1)),
        }))
    }

    /// Makes the next call query the store. What is in flight stays counted.
    pub(crate) fn expire(&self, workspace: WorkspaceId) {
        if let Some(known) = self.known().get_mut(&workspace) {
            known.counted_at = None;
        }
    }

    /// Decides by the known figure. The first caller that finds it stale queries the store; the others use it meanwhile. Without a figure they wait for
    /// the first; `has_turn` says that the caller has waited.
    fn step(&self, workspace: WorkspaceId, added: Usage, has_turn: bool) -> Step {
        let mut all = self.known();
        if all.len() >= WORKSPACES_MAX && !all.contains_key(&workspace) {
            all.retain(|_, known| known.is_in_use());
        }
        let known = all.entry(workspace).or_default();
        let Some(counted) = known.counted else {
            return if has_turn {
                Step::Count(known.begin_query())
            } else {
                Step::Wait(Arc::clone(&known.first))
            };
        };
        let age = known.counted_at.map(|at| at.elapsed());
        if let Some(quota) = counted.quota
            && let Err(error) = check(&quota, quota.used, added)
            && age.is_some_and(|age| age < FULL_FOR)
        {
            return Step::Refuse(error);
        }
        if known.check(added).is_ok() && age.is_some_and(|age| age < FRESH_FOR) {
            return Step::Admit(known.admitted.begin(added));
        }
        Step::Count(known.begin_query())
    }

    /// Forgets the figures of another epoch. What is in flight stays counted.
    fn enter(&self, epoch: Option<EpochId>) {
        let mut entered = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if *entered != epoch {
            *entered = epoch;
            self.known().retain(|_, known| {
                known.counted = None;
                known.is_in_use()
            });
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkspaceId, KnownQuota>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownQuota {
    /// Notes that a query of the store begins; the others use the known figure meanwhile.
    fn begin_query(&mut self) -> Query {
        self.counted_at = Some(Instant::now());
        Query {
            then: self.admitted.sums(),
            admitted: self.admitted.clone(),
        }
    }

    /// Whether a call of the workspace is in flight or asks the store.
    fn is_in_use(&self) -> bool {
        self.admitted.is_in_use() || Arc::strong_count(&self.first) > 1
    }

    /// Returns the limits, and what is used of them; none if the workspace does not exist.
    fn quota(&self) -> Option<(WorkspaceQuota, Usage)> {
        let Counted { quota, then } = self.counted?;
        let quota = quota?;
        Some((quota, quota.used.plus(self.admitted.missed(then))))
    }

    /// Checks whether `added` fits. The store rejects requests of a workspace that does not exist.
    fn check(&self, added: Usage) -> Result<(), QuotaError> {
        let quota = self.quota();
        quota.map_or(Ok(()), |(quota, used)| check(&quota, used, added))
    }
}

fn check(quota: &WorkspaceQuota, used: Usage, added: Usage) -> Result<(), QuotaError> {
    quota.check(used, added).map_err(|exceeded| match exceeded {
        QuotaExceeded::Pending => QuotaError::Pending {
            pending: used.requests,
            added: added.requests,
            max: quota.max_pending,
        },
        QuotaExceeded::Bytes => QuotaError::Bytes {
            open: used.bytes,
            added: added.bytes,
            max: quota.max_open_bytes,
        },
    })
}

#[cfg(test)]
mod tests;
