//! The limit of PENDING requests per workspace. Tracks what this process enqueues, and reads the count from the store about once a second.

use leasehold_core::WorkspaceId;
use leasehold_store::Store;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a count is used.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long a count that shows a full backlog is used, so that repeated calls of a rejected caller do not each cost a count.
const FULL_FOR: Duration = Duration::from_millis(100);
/// The maximum number of workspaces with a known count.
const WORKSPACES_MAX: usize = 10_000;

/// Why a request was not enqueued.
#[derive(Debug, Error)]
pub enum BacklogError {
    /// The backlog is full.
    #[error(
        "backlog full: {pending} requests of the workspace are pending, {added} more would exceed the limit of {max}"
    )]
    Full {
        /// The number of PENDING requests.
        pending: u64,
        /// The number of requests of the call.
        added: u64,
        /// The limit.
        max: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Limits the number of PENDING requests of each workspace. Concurrent calls may exceed the limit: those of other processes within
/// a second, and those of this process while the store is being queried.
#[derive(Debug)]
pub struct Backlog {
    max: u64,
    known_counts: Mutex<HashMap<WorkspaceId, KnownCount>>,
}

/// The known count of a workspace.
#[derive(Clone, Copy, Debug)]
struct KnownCount {
    /// The PENDING requests when the store was last queried.
    counted: u64,
    /// The requests admitted since, whether or not they were new.
    admitted: u64,
    counted_at: Instant,
}

/// The decision about a call.
enum Step {
    Admit,
    /// Query the store; the value is the number admitted before the query.
    Count(u64),
    Refuse(u64),
}

impl Backlog {
    /// Creates a backlog with this limit.
    pub fn new(max: u64) -> Self {
        Self {
            max,
            known_counts: Mutex::default(),
        }
    }

    /// Admits this many more requests, all or none.
    pub async fn admit(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        added: usize,
    ) -> Result<(), BacklogError> {
        let added = added as u64;
        let before = match self.step(workspace, added) {
            Step::Admit => return Ok(()),
            Step::Refuse(pending) => return Err(self.full(pending, added)),
            Step::Count(before) => before,
        };
        let counted = store.request_counts(workspace).await?.pending;
        let mut counts = self.known_counts();
        let known = counts.entry(workspace).or_insert_with(KnownCount::empty);
        known.counted = counted;
        known.admitted = known.admitted.saturating_sub(before);
        let pending = known.counted.saturating_add(known.admitted);
        if pending.saturating_add(added) > self.max {
            return Err(self.full(pending, added));
        }
        known.admitted += added;
        Ok(())
    }

    /// Decides by the known count. The first caller that finds it stale queries the store; the others use it meanwhile.
    fn step(&self, workspace: WorkspaceId, added: u64) -> Step {
        let mut counts = self.known_counts();
        if counts.len() >= WORKSPACES_MAX && !counts.contains_key(&workspace) {
            counts.clear();
        }
        let Some(known) = counts.get_mut(&workspace) else {
            counts.insert(workspace, KnownCount::empty());
            return Step::Count(0);
        };
        let age = known.counted_at.elapsed();
        let fits = |pending: u64| pending.saturating_add(added) <= self.max;
        if !fits(known.counted) && age < FULL_FOR {
            return Step::Refuse(known.counted);
        }
        if fits(known.counted.saturating_add(known.admitted)) && age < FRESH_FOR {
            known.admitted += added;
            return Step::Admit;
        }
        known.counted_at = Instant::now();
        Step::Count(known.admitted)
    }

    fn full(&self, pending: u64, added: u64) -> BacklogError {
        BacklogError::Full {
            pending,
            added,
            max: self.max,
        }
    }

    fn known_counts(&self) -> MutexGuard<'_, HashMap<WorkspaceId, KnownCount>> {
        self.known_counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownCount {
    fn empty() -> Self {
        Self {
            counted: 0,
            admitted: 0,
            counted_at: Instant::now(),
        }
    }
}
