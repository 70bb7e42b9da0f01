//! Load shedding: limits concurrent calls and the total size of their bodies. Excess calls are rejected at once, never queued.

use crate::api_error::{ApiError, ApiResult};
use crate::route::RoutePolicy;
use crate::state::State;
use axum::Extension;
use axum::extract::{Request, State as AxumState};
use axum::middleware::Next;
use axum::response::Response;
use leasehold_api::Code;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `Retry-After` in seconds for a rejected call.
const RETRY_AFTER: u64 = 1;
/// Bytes per semaphore permit: a semaphore cannot hold one permit per byte.
const UNIT: usize = 1024;

pub(crate) struct LoadShedder {
    calls: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

/// The permits of one call. They are released when the call ends, even if its caller has disconnected.
#[derive(Clone)]
pub(crate) struct CallPermit(Arc<CallResources>);

struct CallResources {
    bodies: Arc<Semaphore>,
    body: Mutex<Body>,
    _call: OwnedSemaphorePermit,
}

#[derive(Default)]
struct Body {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl LoadShedder {
    pub(crate) fn new(calls: usize, body_bytes: usize) -> Self {
        let bounded = |number: usize| Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: bounded(calls),
            bodies: bounded(body_bytes / UNIT),
        }
    }

    fn acquire(&self) -> Option<CallPermit> {
        let call = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        Some(CallPermit(Arc::new(CallResources {
            bodies: Arc::clone(&self.bodies),
            body: Mutex::default(),
            _call: call,
        })))
    }
}

impl CallPermit {
    /// Counts bytes of the body as they arrive. A `Content-Length` alone reserves nothing.
    pub(crate) fn count_body_bytes(&self, bytes: usize) -> ApiResult<()> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        let before = body.bytes.div_ceil(UNIT);
        body.bytes += bytes;
        let more = body.bytes.div_ceil(UNIT) - before;
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0.bodies).try_acquire_many_owned(more);
        let permit = permit.map_err(|_| {
            overloaded("request bodies in memory have reached server.bodies_max_bytes")
        })?;
        match &mut body.permit {
            Some(held) => held.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }
}

/// Rejects a call while the server is at its limit, unless the route is never shed.
pub(crate) async fn shed_load(
    AxumState(state): AxumState<State>,
    Extension(policy): Extension<RoutePolicy>,
    mut request: Request,
    next: Next,
) -> ApiResult<Response> {
    if !policy.sheddable {
        return Ok(next.run(request).await);
    }
    let permit = state.load_shedder.acquire();
    let permit = permit.ok_or_else(|| overloaded("too many concurrent calls"))?;
    request.extensions_mut().insert(permit.clone());
    let response = next.run(request).await;
    drop(permit);
    Ok(response)
}

fn overloaded(detail: &str) -> ApiError {
    ApiError::new(Code::Overloaded, detail).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn calls_above_the_limit_are_rejected_until_one_ends() {
        let shedder = LoadShedder::new(2, UNIT);
        let first = shedder.acquire().unwrap();
        let _second = shedder.acquire().unwrap();
        assert!(shedder.acquire().is_none());
        drop(first);
        assert!(shedder.acquire().is_some());
    }

    #[test]
    fn body_bytes_are_released_when_the_call_ends() {
        let shedder = LoadShedder::new(10, 4 * UNIT);
        let (one, other) = (shedder.acquire().unwrap(), shedder.acquire().unwrap());
        for _ in 0..3 * UNIT {
            one.count_body_bytes(1).unwrap();
        }
        other.count_body_bytes(UNIT).unwrap();
        assert!(other.count_body_bytes(1).is_err());
        drop(one);
        assert!(other.count_body_bytes(2 * UNIT).is_ok());
    }
}
