//! How much may wait in a workspace. Knows what this process enqueued, and asks the store for the rest about once a second.

use leasehold_core::WorkspaceId;
use leasehold_store::Store;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long a count holds.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long a count holds that says that the backlog is full: whoever is refused may try again, and each try must not cost a count.
const FULL_FOR: Duration = Duration::from_millis(100);
/// Workspaces remembered at once.
const KEPT_MAX: usize = 10_000;

/// Why nothing more may be enqueued.
#[derive(Debug, Error)]
pub enum BacklogError {
    /// As many wait as may.
    #[error("{pending} requests of the workspace wait; {asked} more would be more than {max}")]
    Full {
        /// How many wait.
        pending: u64,
        /// How many more were to be enqueued.
        asked: u64,
        /// How many may wait.
        max: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] leasehold_store::Error),
}

/// Guards the number of PENDING requests of each workspace. Exact but for what is enqueued at the same time: by other processes within
/// a second, and here while the store is being asked.
#[derive(Debug)]
pub struct Backlog {
    max: u64,
    kept: Mutex<HashMap<WorkspaceId, Known>>,
}

/// What is known of a workspace.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// How many waited when the store was last asked.
    counted: u64,
    /// How many were let in since, whether or not they were new.
    admitted: u64,
    asked_at: Instant,
}

/// What to do with a call.
enum Step {
    Admit,
    /// Ask the store; so many had been let in when that began.
    Ask(u64),
    Refuse(u64),
}

impl Backlog {
    /// A guard that lets so many wait.
    pub fn new(max: u64) -> Self {
        Self {
            max,
            kept: Mutex::default(),
        }
    }

    /// Lets so many more requests in, all or none.
    pub async fn admit(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        asked: usize,
    ) -> Result<(), BacklogError> {
        let asked = asked as u64;
        let before = match self.step(workspace, asked) {
            Step::Admit => return Ok(()),
            Step::Refuse(pending) => return Err(self.full(pending, asked)),
            Step::Ask(before) => before,
        };
        let counted = store.request_counts(workspace).await?.pending;
        let mut kept = self.kept();
        let known = kept.entry(workspace).or_insert_with(Known::nothing);
        known.counted = counted;
        known.admitted = known.admitted.saturating_sub(before);
        let pending = known.counted.saturating_add(known.admitted);
        if pending.saturating_add(asked) > self.max {
            return Err(self.full(pending, asked));
        }
        known.admitted += asked;
        Ok(())
    }

    /// Decides by what is known. Whoever finds that it is old asks; the others go by it meanwhile.
    fn step(&self, workspace: WorkspaceId, asked: u64) -> Step {
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX && !kept.contains_key(&workspace) {
            kept.clear();
        }
        let Some(known) = kept.get_mut(&workspace) else {
            kept.insert(workspace, Known::nothing());
            return Step::Ask(0);
        };
        let age = known.asked_at.elapsed();
        let fits = |pending: u64| pending.saturating_add(asked) <= self.max;
        if !fits(known.counted) && age < FULL_FOR {
            return Step::Refuse(known.counted);
        }
        if fits(known.counted.saturating_add(known.admitted)) && age < FRESH_FOR {
            known.admitted += asked;
            return Step::Admit;
        }
        known.asked_at = Instant::now();
        Step::Ask(known.admitted)
    }

    fn full(&self, pending: u64, asked: u64) -> BacklogError {
        BacklogError::Full {
            pending,
            asked,
            max: self.max,
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Known>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn nothing() -> Self {
        Self {
            counted: 0,
            admitted: 0,
            asked_at: Instant::now(),
        }
    }
}
