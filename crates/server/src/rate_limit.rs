//! Rate limits: calls per second with a burst, of each workspace or of each key. Knows no route.

use crate::access::Caller;
use crate::api_error::{ApiError, ApiResult};
use crate::state::State;
use axum::extract::{RawPathParams, Request};
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Idle callers are removed after this many calls: an administrator can name any number of workspaces.
const CLEANUP_INTERVAL: usize = 10_000;

/// A token bucket for each caller, a workspace or a key, kept as the time at which the bucket is full again.
pub(crate) struct CallRateLimiter<K> {
    /// The time in which one token returns.
    interval: Duration,
    /// The time in which an empty bucket becomes full.
    refill: Duration,
    buckets: Mutex<Buckets<K>>,
}

struct Buckets<K> {
    full_at: HashMap<K, Instant>,
    calls: usize,
}

impl<K: Copy + Eq + Hash> CallRateLimiter<K> {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self {
            interval,
            refill: interval * burst.max(1),
            buckets: Mutex::new(Buckets {
                full_at: HashMap::new(),
                calls: 0,
            }),
        }
    }

    /// Counts a call. Returns the seconds to wait if the caller is over its rate.
    pub(crate) fn check(&self, caller: K) -> Result<(), u64> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.calls += 1;
        if buckets.calls.is_multiple_of(CLEANUP_INTERVAL) {
            buckets.full_at.retain(|_, full_at| *full_at > now);
            buckets.full_at.shrink_to_fit();
        }
        let full_at = buckets.full_at.entry(caller).or_insert(now);
        let after_call = (*full_at).max(now) + self.interval;
        match (after_call - now).checked_sub(self.refill) {
            None | Some(Duration::ZERO) => {
                *full_at = after_call;
                Ok(())
            }
            Some(wait) => Err(wait.as_secs() + 1),
        }
    }
}

/// Rejects a call whose workspace (the one in the path, or else the key's own) is over its rate.
pub(crate) fn check(
    state: &State,
    params: Option<&RawPathParams>,
    request: &Request,
) -> ApiResult<()> {
    if let Some(workspace) = workspace(params, request)
        && let Err(seconds) = state.rate_limiter.check(workspace)
    {
        let limit = state.options.rate_per_second;
        let detail = format!("the workspace exceeded {limit} calls per second");
        return Err(ApiError::new(Code::RateLimited, detail).retry_after(seconds));
    }
    Ok(())
}

fn workspace(params: Option<&RawPathParams>, request: &Request) -> Option<WorkspaceId> {
    let named = params.and_then(|params| params.iter().find(|(name, _)| *name == "workspace"));
    if let Some(id) = named.and_then(|(_, text)| text.parse().ok()) {
        return Some(id);
    }
    request.extensions().get::<Caller>()?.scope().workspace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn workspace_over_its_rate_is_rejected_and_another_is_not() {
        let limiter: CallRateLimiter<WorkspaceId> = CallRateLimiter::new(1, 3);
        let (loud, quiet) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let answers: Vec<_> = (0..4).map(|_| limiter.check(loud)).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(1)]);
        assert_eq!(limiter.check(quiet), Ok(()));
    }

    #[test]
    fn idle_workspaces_are_removed() {
        // At this rate a workspace is idle after a microsecond.
        let limiter: CallRateLimiter<WorkspaceId> = CallRateLimiter::new(1_000_000, 1);
        for number in 0..3 * CLEANUP_INTERVAL {
            let workspace = Uuid::from_u128(number as u128).into();
            assert_eq!(limiter.check(workspace), Ok(()));
        }
        let left = limiter.buckets.lock().unwrap().full_at.len();
        assert!(left < 2 * CLEANUP_INTERVAL, "{left}");
    }

    #[test]
    fn rejected_calls_do_not_delay_the_next_allowed_one() {
        let limiter: CallRateLimiter<WorkspaceId> = CallRateLimiter::new(1, 1);
        let workspace = Uuid::from_u128(1).into();
        assert_eq!(limiter.check(workspace), Ok(()));
        for _ in 0..100 {
            assert_eq!(limiter.check(workspace), Err(1));
        }
    }
}
