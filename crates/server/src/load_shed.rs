//! Load shedding: limits concurrent calls, shared fairly by workspace or key, and the total size of their bodies. Excess calls are rejected at once, never queued.

use crate::access::Caller;
use crate::api_error::{ApiError, ApiResult};
use crate::call_owner::{Owner, Place, RunningCall};
use crate::memory_budget::{MemoryBudget, Reservation};
use crate::owner_pool::{OwnerPermit, OwnerPool, PoolFull};
use crate::route::RoutePolicy;
use crate::state::State;
use axum::extract::Request;
use leasehold_api::Code;
use std::sync::{Arc, Mutex, PoisonError};

/// `Retry-After` in seconds for a rejected call.
const RETRY_AFTER: u64 = 1;

pub(crate) struct LoadShedder {
    calls: Arc<OwnerPool>,
    bodies: Arc<MemoryBudget>,
}

/// The permits of one call. They are released when the call ends, even if its caller has disconnected.
#[derive(Clone)]
pub(crate) struct CallPermit(Arc<CallResources>);

struct CallResources {
    body: Mutex<Reservation>,
    call: OwnerPermit,
}

impl LoadShedder {
    pub(crate) fn new(calls: usize, body_bytes: usize) -> Self {
        Self {
            calls: OwnerPool::new(calls),
            bodies: MemoryBudget::new(body_bytes),
        }
    }

    fn acquire(&self, owner: Owner) -> Result<CallPermit, PoolFull> {
        let call = self.calls.try_acquire(owner)?;
        Ok(CallPermit(Arc::new(CallResources {
            body: Mutex::new(self.bodies.reservation(owner)),
            call,
        })))
    }
}

impl CallPermit {
    /// Returns the call that has this permit.
    pub(crate) fn call(&self) -> RunningCall {
        let place: Place = self.0.clone();
        RunningCall::new(self.0.call.owner(), Some(place))
    }

    /// Counts bytes of the call's body as they arrive. A `Content-Length` alone reserves nothing.
    pub(crate) fn count_body_bytes(&self, bytes: usize) -> ApiResult<()> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.try_grow(bytes).map_err(|exhausted| {
            overloaded(&format!(
                "request bodies in memory have reached server.bodies_max_bytes: {exhausted}"
            ))
        })
    }
}

/// Rejects a call while its owner or the server is at its limit, unless the route is never shed. Attaches the permit to the request.
pub(crate) fn admit(
    state: &State,
    policy: RoutePolicy,
    request: &mut Request,
) -> ApiResult<Option<CallPermit>> {
    if !policy.sheddable {
        return Ok(None);
    }
    let caller = request.extensions().get::<Caller>();
    let owner = caller.map_or(Owner::Anonymous, |caller| Owner::of(&caller.0));
    let permit = state
        .load_shedder
        .acquire(owner)
        .map_err(|full| overloaded(&full.detail("concurrent calls", "server.calls_max")))?;
    request.extensions_mut().insert(permit.clone());
    Ok(Some(permit))
}

pub(crate) fn overloaded(detail: &str) -> ApiError {
    ApiError::new(Code::Overloaded, detail).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use uuid::Uuid;

    const ONE: Owner = Owner::Anonymous;

    #[test]
    fn calls_above_the_share_of_an_owner_are_rejected_until_one_ends() {
        let shedder = LoadShedder::new(3, 1024);
        let other = Owner::Key(Uuid::nil().into());
        let first = shedder.acquire(ONE).unwrap();
        let _second = shedder.acquire(ONE).unwrap();
        assert!(shedder.acquire(ONE).is_err());
        let third = shedder.acquire(other).unwrap();
        assert!(shedder.acquire(other).is_err());
        drop(first);
        assert!(
            shedder.acquire(ONE).is_err(),
            "the last place is for others"
        );
        drop(third);
        assert!(shedder.acquire(ONE).is_ok());
    }

    #[test]
    fn body_bytes_are_released_when_the_call_ends() {
        let shedder = LoadShedder::new(10, 4_000);
        let newcomer = Owner::Key(Uuid::nil().into());
        let one = shedder.acquire(ONE).unwrap();
        let other = shedder.acquire(newcomer).unwrap();
        for _ in 0..3_500 {
            one.count_body_bytes(1).unwrap();
        }
        other.count_body_bytes(500).unwrap();
        assert!(other.count_body_bytes(1).is_err());
        drop(one);
        assert!(other.count_body_bytes(3_000).is_ok());
    }

    #[test]
    fn bodies_of_one_owner_get_a_quarter_of_the_memory() {
        let shedder = LoadShedder::new(10, 4_000);
        let (one, other) = (shedder.acquire(ONE).unwrap(), shedder.acquire(ONE).unwrap());
        one.count_body_bytes(900).unwrap();
        assert!(other.count_body_bytes(101).is_err());
        assert!(other.count_body_bytes(100).is_ok());
    }
}
