//! The rate limit of a workspace: calls per second, with a burst. Knows no route.

use crate::access::Caller;
use crate::api_error::ApiError;
use crate::state::State;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State as AxumState};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use leasehold_core::key::KeyScope;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// Idle workspaces are removed after this many calls: an administrator can name any number of workspaces.
const CLEANUP_INTERVAL: u32 = 10_000;

pub(crate) struct CallRateLimiter {
    limiter: DefaultKeyedRateLimiter<WorkspaceId>,
    clock: DefaultClock,
    calls: AtomicU32,
}

impl CallRateLimiter {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst));
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            calls: AtomicU32::new(0),
        }
    }

    /// Counts a call. Returns the seconds to wait if the workspace is over its rate.
    pub(crate) fn check(&self, workspace: WorkspaceId) -> Result<(), u64> {
        if self.calls.fetch_add(1, Ordering::Relaxed) % CLEANUP_INTERVAL == CLEANUP_INTERVAL - 1 {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter.check_key(&workspace).map_err(|too_early| {
            let wait = too_early.wait_time_from(self.clock.now());
            wait.as_secs() + 1
        })
    }
}

/// Rejects a call whose workspace (the one in the path, or else the key's own) is over its rate.
pub(crate) async fn limit_rate(
    AxumState(state): AxumState<State>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if let Some(workspace) = workspace(params.as_ref().ok(), &request)
        && let Err(seconds) = state.rate_limiter.check(workspace)
    {
        let limit = state.options.rate_per_second;
        let detail = format!("the workspace exceeded {limit} calls per second");
        return Err(ApiError::new(Code::RateLimited, detail).retry_after(seconds));
    }
    Ok(next.run(request).await)
}

fn workspace(params: Option<&RawPathParams>, request: &Request) -> Option<WorkspaceId> {
    let named = params.and_then(|params| params.iter().find(|(name, _)| *name == "workspace"));
    if let Some(id) = named.and_then(|(_, text)| text.parse().ok()) {
        return Some(id);
    }
    match request.extensions().get::<Caller>()?.0.scope {
        KeyScope::Workspace(id) => Some(id),
        KeyScope::Admin | KeyScope::Worker { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn workspace_over_its_rate_is_rejected_and_another_is_not() {
        let limiter = CallRateLimiter::new(1, 3);
        let (loud, quiet) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let answers: Vec<_> = (0..4).map(|_| limiter.check(loud)).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(1)]);
        assert_eq!(limiter.check(quiet), Ok(()));
    }

    #[test]
    fn idle_workspaces_are_removed() {
        // At this rate a workspace is idle after a microsecond.
        let limiter = CallRateLimiter::new(1_000_000, 1);
        for number in 0..u128::from(3 * CLEANUP_INTERVAL) {
            assert_eq!(limiter.check(Uuid::from_u128(number).into()), Ok(()));
        }
        assert!(
            limiter.limiter.len() < 2 * CLEANUP_INTERVAL as usize,
            "{}",
            limiter.limiter.len()
        );
    }
}
