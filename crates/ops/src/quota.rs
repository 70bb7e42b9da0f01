//! The quotas of workspaces, checked before requests are enqueued: tracks what this process enqueues, and reads limits and usage from the store
//! about once a second.

use leasehold_core::WorkspaceId;
use leasehold_core::quota::{QuotaExceeded, Usage, WorkspaceQuota};
use leasehold_store::Store;
use leasehold_store::request::NewRequest;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

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

/// Limits the PENDING requests and the open bytes of each workspace. Calls of other processes may exceed a limit within a second, and those of this
/// process while it queries a figure for the first time.
#[derive(Debug, Default)]
pub struct Quotas {
    known: Mutex<HashMap<WorkspaceId, KnownQuota>>,
}

/// The quotas of a workspace as last read.
#[derive(Clone, Copy, Debug)]
struct KnownQuota {
    /// The limits and the usage when the store was last queried; none before the first answer, and of a workspace that does not exist.
    counted: Option<WorkspaceQuota>,
    /// What was admitted and written since, whether or not it was new.
    admitted: Usage,
    /// What calls that have not ended were admitted with. A query of the store may miss it.
    in_flight: Usage,
    counted_at: Instant,
}

/// What a call was admitted with. Keep it until the store has the requests.
#[derive(Debug)]
#[must_use = "what is dropped before the store has the requests is not counted while they are written"]
pub struct Admission<'a> {
    quotas: &'a Quotas,
    workspace: WorkspaceId,
    usage: Usage,
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.quotas.known().get_mut(&self.workspace) {
            known.in_flight = known.in_flight.minus(self.usage);
            known.admitted = known.admitted.plus(self.usage);
        }
    }
}

/// The decision about a call.
enum Step {
    Admit,
    /// Query the store; the value is what was written before the query.
    Count(Usage),
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
    ) -> Result<Admission<'_>, QuotaError> {
        match self.step(workspace, added) {
            Step::Admit => {}
            Step::Refuse(error) => return Err(error),
            Step::Count(before) => {
                let counted = store.workspace_quota(workspace).await?;
                let mut known = self.known();
                let known = known.entry(workspace).or_insert_with(KnownQuota::empty);
                known.counted = counted;
                known.admitted = known.admitted.minus(before);
                known.check(added)?;
                known.in_flight = known.in_flight.plus(added);
            }
        }
        Ok(Admission {
            quotas: self,
            workspace,
            usage: added,
        })
    }

    /// Returns how much of `wanted` requests fits, and how many bytes; fails if no request fits. Reserves the requests until [`Self::forget`].
    pub async fn room(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        wanted: u64,
    ) -> Result<Usage, QuotaError> {
        let one = Usage {
            requests: 1,
            bytes: 1,
        };
        self.expire(workspace);
        drop(self.admit(store, workspace, one).await?);
        let mut known = self.known();
        let room = match known.get_mut(&workspace) {
            Some(known) => known.reserve(wanted, one),
            None => None,
        };
        // Without a figure the workspace does not exist, or this process has forgotten it meanwhile: the store decides.
        Ok(room.unwrap_or(Usage {
            requests: wanted,
            bytes: u64::MAX,
        }))
    }

    /// Makes the next call query the store. What is admitted meanwhile stays counted.
    fn expire(&self, workspace: WorkspaceId) {
        if let Some(known) = self.known().get_mut(&workspace) {
            let past = known.counted_at.checked_sub(FRESH_FOR);
            known.counted_at = past.unwrap_or(known.counted_at);
        }
    }

    /// Forgets what is known of a workspace: the next call queries the store.
    pub fn forget(&self, workspace: WorkspaceId) {
        self.known().remove(&workspace);
    }

    /// Decides by the known figure. The first caller that finds it stale queries the store; the others use it meanwhile.
    fn step(&self, workspace: WorkspaceId, added: Usage) -> Step {
        let mut all = self.known();
        if all.len() >= WORKSPACES_MAX && !all.contains_key(&workspace) {
            all.clear();
        }
        let Some(known) = all.get_mut(&workspace) else {
            all.insert(workspace, KnownQuota::empty());
            return Step::Count(Usage::default());
        };
        let age = known.counted_at.elapsed();
        let counted = KnownQuota {
            admitted: Usage::default(),
            in_flight: Usage::default(),
            ..*known
        };
        if let Err(error) = counted.check(added)
            && age < FULL_FOR
        {
            return Step::Refuse(error);
        }
        if known.check(added).is_ok() && age < FRESH_FOR {
            known.in_flight = known.in_flight.plus(added);
            return Step::Admit;
        }
        known.counted_at = Instant::now();
        Step::Count(known.admitted)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkspaceId, KnownQuota>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownQuota {
    fn empty() -> Self {
        Self {
            counted: None,
            admitted: Usage::default(),
            in_flight: Usage::default(),
            counted_at: Instant::now(),
        }
    }

    /// Checks whether `added` fits. The store rejects requests of a workspace that does not exist.
    fn check(&self, added: Usage) -> Result<(), QuotaError> {
        let Some(quota) = self.counted else {
            return Ok(());
        };
        let used = quota.used.plus(self.admitted).plus(self.in_flight);
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

    /// Reserves up to `wanted` requests beside `reserved` ones, which count towards them, and returns how many and the bytes that are free.
    fn reserve(&mut self, wanted: u64, reserved: Usage) -> Option<Usage> {
        let quota = self.counted?;
        let written = quota.used.plus(self.admitted.minus(reserved));
        let others = written.plus(self.in_flight);
        let mut room = quota.room(others);
        room.requests = room.requests.min(wanted);
        let more = Usage {
            requests: room.requests.saturating_sub(reserved.requests),
            bytes: 0,
        };
        self.admitted = self.admitted.plus(more);
        Some(room)
    }
}
