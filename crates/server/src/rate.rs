//! How often a workspace may call: so many times a second, and more for a moment. Knows no route.

use crate::access::Caller;
use crate::refusal::Refusal;
use crate::state::State;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State as Reached};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use leasehold_api::Code;
use leasehold_core::WorkspaceId;
use leasehold_core::key::KeyScope;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// After so many calls, workspaces that have been quiet are forgotten: an administrator can name any number of them.
const TIDY_EVERY: u32 = 10_000;

pub(crate) struct Rate {
    limiter: DefaultKeyedRateLimiter<WorkspaceId>,
    clock: DefaultClock,
    calls: AtomicU32,
}

impl Rate {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst));
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            calls: AtomicU32::new(0),
        }
    }

    /// Counts a call; if it is one too many, says how many seconds to wait.
    pub(crate) fn call(&self, workspace: WorkspaceId) -> Result<(), u64> {
        if self.calls.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter.check_key(&workspace).map_err(|too_early| {
            let wait = too_early.wait_time_from(self.clock.now());
            wait.as_secs() + 1
        })
    }
}

/// Lets a call through if its workspace has not called too often: the one in the path, or else the key's own.
pub(crate) async fn rate(
    Reached(state): Reached<State>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if let Some(workspace) = workspace(params.as_ref().ok(), &request)
        && let Err(seconds) = state.rate.call(workspace)
    {
        let most = state.options.rate_per_second;
        let detail = format!("a workspace may call {most} times a second");
        return Err(Refusal::of(Code::RateLimited, detail).retry_after(seconds));
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
    fn a_workspace_that_calls_too_often_is_told_to_wait_and_another_is_not() {
        let rate = Rate::new(1, 3);
        let (loud, quiet) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let answers: Vec<_> = (0..4).map(|_| rate.call(loud)).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Ok(()), Err(1)]);
        assert_eq!(rate.call(quiet), Ok(()));
    }

    #[test]
    fn workspaces_that_have_been_quiet_are_forgotten() {
        // At this rate a workspace is quiet again after a microsecond.
        let rate = Rate::new(1_000_000, 1);
        for number in 0..u128::from(3 * TIDY_EVERY) {
            assert_eq!(rate.call(Uuid::from_u128(number).into()), Ok(()));
        }
        assert!(
            rate.limiter.len() < 2 * TIDY_EVERY as usize,
            "{}",
            rate.limiter.len()
        );
    }
}
