//! The memory of a call's response: reserved before the response is built, and held by its bytes until the last is sent.

use crate::access::Caller;
use crate::api_error::{ApiError, ApiResult};
use crate::call_owner::Owner;
use crate::memory_budget::{MemoryBudget, Reservation};
use crate::state::State;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body;
use leasehold_api::Code;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Responses up to this size are not counted: their number is limited, and most calls have one.
const UNCOUNTED_BYTES: usize = 4 * 1024;
/// How long a call waits for memory for its response.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// `Retry-After` in seconds for a call that got none.
const RETRY_AFTER: u64 = 1;

tokio::task_local! {
    static CURRENT: CallMemory;
}

/// The memory of the response of one call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CallMemory(Arc<Inner>);

struct Inner {
    budget: Arc<MemoryBudget>,
    owner: Owner,
    reserved: Mutex<Option<Reservation>>,
}

/// The reservation of a response, passed to its connection.
#[derive(Clone)]
pub(crate) struct ResponseMemory(
    #[allow(dead_code, reason = "held until it is dropped")] Arc<Reservation>,
);

/// The reservation of a call, lent to a part of it that may outlive it. Dropping it returns the reservation to the call, or releases it if the call has
/// ended.
pub(crate) struct LentMemory {
    memory: CallMemory,
    reservation: Option<Reservation>,
}

impl Drop for LentMemory {
    fn drop(&mut self) {
        let mut reserved = self.memory.lock();
        // The call may have reserved memory anew.
        if reserved.is_none() {
            *reserved = self.reservation.take();
        }
    }
}

impl CallMemory {
    /// Returns the memory of the call that this task serves; none outside of a call and for callers without a key.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Reserves memory before a response of up to this size is built. Waits while the responses of the caller, or all
    /// responses, use their share; fails if that takes too long.
    pub(crate) async fn reserve(&self, bytes: usize) -> ApiResult<()> {
        let mut reservation = self.0.budget.reservation(self.0.owner);
        let waited = tokio::time::timeout(WAIT_MAX, reservation.grow(bytes)).await;
        waited.map_err(|_| exhausted())?;
        drop(self.lock().replace(reservation));
        Ok(())
    }

    /// Waits for memory like [`CallMemory::reserve`], for as long as the call may take.
    pub(crate) async fn wait(&self, bytes: usize) {
        let mut reservation = self.0.budget.reservation(self.0.owner);
        reservation.grow(bytes).await;
        drop(self.lock().replace(reservation));
    }

    /// Reserves memory for a response of up to this size, unless the share of the caller or the budget is used up. What was reserved is kept if it suffices.
    pub(crate) fn try_reserve(&self, bytes: usize) -> bool {
        let bytes = bytes.min(self.0.budget.max());
        let mut reserved = self.lock();
        if reserved.as_ref().is_some_and(|held| held.bytes() >= bytes) {
            return true;
        }
        let mut reservation = self.0.budget.reservation(self.0.owner);
        let is_reserved = reservation.try_grow(bytes).is_ok();
        if is_reserved {
            *reserved = Some(reservation);
        }
        is_reserved
    }

    /// Lends the reserved memory, so that it stays reserved even if the call ends.
    pub(crate) fn lend(self) -> LentMemory {
        let reservation = self.lock().take();
        LentMemory {
            memory: self,
            reservation,
        }
    }

    /// Releases the reserved memory.
    pub(crate) fn release(&self) {
        drop(self.lock().take());
    }

    /// Sets the reserved memory to the size of the response, and returns it. A response that needs more than was reserved waits. After ten seconds the
    /// response to a read is given up; the response to a change is counted beyond the budget, because the change was made.
    async fn hold(&self, bytes: usize, is_change: bool) -> ApiResult<Option<ResponseMemory>> {
        let reserved = self.lock().take();
        if bytes <= UNCOUNTED_BYTES {
            return Ok(None);
        }
        let mut held = reserved.unwrap_or_else(|| self.0.budget.reservation(self.0.owner));
        held.shrink_to(bytes);
        let more = bytes - held.bytes();
        if more > 0
            && tokio::time::timeout(WAIT_MAX, held.grow(more))
                .await
                .is_err()
        {
            if !is_change {
                return Err(exhausted());
            }
            held.grow_beyond(more);
        }
        Ok(Some(ResponseMemory(Arc::new(held))))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Reservation>> {
        self.0
            .reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of so many rows of this size at most.
pub(crate) fn rows_bytes(rows: u32, row_max: usize) -> usize {
    usize::try_from(rows)
        .unwrap_or(usize::MAX)
        .saturating_mul(row_max)
}

fn exhausted() -> ApiError {
    let detail = "responses in memory have reached server.responses_max_bytes, or a quarter of it for this workspace or key; read responses as they arrive";
    ApiError::new(Code::Overloaded, detail).retry_after(RETRY_AFTER)
}

/// Reserves memory for the response of the call that this task serves; see [`CallMemory::reserve`].
pub(crate) async fn reserve(bytes: usize) -> ApiResult<()> {
    match CallMemory::current() {
        Some(memory) => memory.reserve(bytes).await,
        None => Ok(()),
    }
}

/// Gives a call the memory of its response, and attaches it to the response.
pub(crate) async fn hold_response(state: &State, request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<Caller>() else {
        return next.run(request).await;
    };
    let memory = CallMemory(Arc::new(Inner {
        budget: Arc::clone(&state.responses),
        owner: Owner::of(&caller.0),
        reserved: Mutex::default(),
    }));
    let is_change = !request.method().is_safe();
    let mut response = CURRENT.scope(memory.clone(), next.run(request)).await;
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match memory.hold(bytes, is_change).await {
        Ok(None) => response,
        Ok(Some(held)) => {
            response.extensions_mut().insert(held);
            response
        }
        Err(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use axum::http::StatusCode;
    use futures::FutureExt;
    use std::pin::pin;
    use uuid::Uuid;

    fn memory(budget: &Arc<MemoryBudget>, workspace: u128) -> CallMemory {
        CallMemory(Arc::new(Inner {
            budget: Arc::clone(budget),
            owner: Owner::Workspace(Uuid::from_u128(workspace).into()),
            reserved: Mutex::default(),
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn response_without_a_reservation_waits_for_its_share() {
        let budget = MemoryBudget::new(400_000);
        let first = memory(&budget, 1).hold(90_000, false).await.unwrap();
        let second = memory(&budget, 1);
        let mut held = pin!(second.hold(50_000, false));
        assert!(held.as_mut().now_or_never().is_none());
        let other = memory(&budget, 2).hold(90_000, false).now_or_never();
        assert!(other.unwrap().is_ok(), "another workspace does not wait");
        drop(first);
        assert!(held.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn reservation_that_is_too_small_grows_within_the_share() {
        let budget = MemoryBudget::new(400_000);
        let _first = memory(&budget, 1).hold(60_000, false).await.unwrap();
        let second = memory(&budget, 1);
        second.reserve(10_000).await.unwrap();
        assert!(second.hold(40_000, false).await.is_ok());
        let third = memory(&budget, 1);
        let refused = third.hold(50_000, false).await;
        let status = refused.err().map(|error| error.into_response().status());
        assert_eq!(status, Some(StatusCode::SERVICE_UNAVAILABLE));
    }

    #[tokio::test(start_paused = true)]
    async fn lent_memory_is_returned_to_its_call_or_released_after_its_end() {
        let budget = MemoryBudget::new(400_000);
        let other = memory(&budget, 1);
        let call = memory(&budget, 1);
        call.reserve(90_000).await.unwrap();
        drop(call.clone().lend());
        assert!(other.reserve(50_000).await.is_err(), "the call has it");
        let lent = call.clone().lend();
        assert!(call.hold(100, false).await.unwrap().is_none());
        drop(call);
        assert!(other.reserve(50_000).await.is_err(), "the part has it");
        drop(lent);
        assert!(other.reserve(50_000).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn response_to_a_change_is_never_given_up() {
        let budget = MemoryBudget::new(400_000);
        let _first = memory(&budget, 1).hold(90_000, false).await.unwrap();
        let changed = memory(&budget, 1).hold(50_000, true).await.unwrap();
        assert!(changed.is_some());
        let further = memory(&budget, 1).reserve(1).await;
        assert!(further.is_err(), "its bytes are counted");
    }
}
