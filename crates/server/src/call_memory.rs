//! The memory of a call's response: reserved before the response is built, and held by its bytes until the last is sent.

use crate::access::Caller;
use crate::api_error::{ApiError, ApiResult};
use crate::memory_budget::{MemoryBudget, Reservation};
use crate::state::State;
use axum::extract::{Request, State as AxumState};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Body;
use leasehold_api::Code;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

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
    owner: Uuid,
    reserved: Mutex<Option<Reservation>>,
}

/// The reservation of a response, passed to its connection.
#[derive(Clone)]
pub(crate) struct ResponseMemory(
    #[allow(dead_code, reason = "held until it is dropped")] Arc<Reservation>,
);

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
        waited.map_err(|_| {
            let detail = "responses in memory have reached server.responses_max_bytes, or a quarter of it for this workspace or key; read responses as they arrive";
            ApiError::new(Code::Overloaded, detail).retry_after(RETRY_AFTER)
        })?;
        drop(self.lock().replace(reservation));
        Ok(())
    }

    /// Waits for memory like [`CallMemory::reserve`], for as long as the call may take.
    pub(crate) async fn wait(&self, bytes: usize) {
        let mut reservation = self.0.budget.reservation(self.0.owner);
        reservation.grow(bytes).await;
        drop(self.lock().replace(reservation));
    }

    /// Releases the reserved memory.
    pub(crate) fn release(&self) {
        drop(self.lock().take());
    }

    /// Sets the reserved memory to the size of the response, and returns it.
    fn hold(&self, bytes: usize) -> Option<ResponseMemory> {
        let reserved = self.lock().take();
        if bytes <= UNCOUNTED_BYTES {
            return None;
        }
        let mut held = reserved.unwrap_or_else(|| self.0.budget.reservation(self.0.owner));
        held.set(bytes);
        Some(ResponseMemory(Arc::new(held)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Reservation>> {
        self.0
            .reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserves memory for the response of the call that this task serves; see [`CallMemory::reserve`].
pub(crate) async fn reserve(bytes: usize) -> ApiResult<()> {
    match CallMemory::current() {
        Some(memory) => memory.reserve(bytes).await,
        None => Ok(()),
    }
}

/// Gives a call the memory of its response, and attaches it to the response.
pub(crate) async fn hold_response(
    AxumState(state): AxumState<State>,
    request: Request,
    next: Next,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>() else {
        return next.run(request).await;
    };
    let memory = CallMemory(Arc::new(Inner {
        budget: Arc::clone(&state.responses),
        owner: caller.memory_owner(),
        reserved: Mutex::default(),
    }));
    let mut response = CURRENT.scope(memory.clone(), next.run(request)).await;
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    if let Some(held) = memory.hold(usize::try_from(bytes).unwrap_or(usize::MAX)) {
        response.extensions_mut().insert(held);
    }
    response
}
