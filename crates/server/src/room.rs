//! How much the server takes upon itself at once: calls, and the bytes of their bodies. What is too much is refused at once, never queued.

use crate::refusal::{Outcome, Refusal};
use crate::route::RoutePolicy;
use crate::state::State;
use axum::Extension;
use axum::extract::{Request, State as Reached};
use axum::middleware::Next;
use axum::response::Response;
use leasehold_api::Code;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Seconds after which there may be room again.
const RETRY_AFTER: u64 = 1;
/// Bytes are counted in units of this many, so that a semaphore can hold them.
const UNIT: usize = 1024;

pub(crate) struct Room {
    calls: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

/// What one call takes up. It is free again when the call has ended, also one that nobody waits for any more.
#[derive(Clone)]
pub(crate) struct Taken(Arc<Inner>);

struct Inner {
    bodies: Arc<Semaphore>,
    body: Mutex<Body>,
    _call: OwnedSemaphorePermit,
}

#[derive(Default)]
struct Body {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn new(calls: usize, body_bytes: usize) -> Self {
        let bounded = |number: usize| Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: bounded(calls),
            bodies: bounded(body_bytes / UNIT),
        }
    }

    fn enter(&self) -> Option<Taken> {
        let call = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        Some(Taken(Arc::new(Inner {
            bodies: Arc::clone(&self.bodies),
            body: Mutex::default(),
            _call: call,
        })))
    }
}

impl Taken {
    /// Counts bytes of the body as they arrive: what is only announced takes no room from others.
    pub(crate) fn arrived(&self, bytes: usize) -> Outcome<()> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        let before = body.bytes.div_ceil(UNIT);
        body.bytes += bytes;
        let more = body.bytes.div_ceil(UNIT) - before;
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0.bodies).try_acquire_many_owned(more);
        let permit = permit.map_err(|_| too_busy("the bodies of other calls fill its memory"))?;
        match &mut body.permit {
            Some(held) => held.merge(permit),
            none => *none = Some(permit),
        }
        Ok(())
    }
}

/// Lets a call in if there is room for it. A route that is never shed needs no room.
pub(crate) async fn room(
    Reached(state): Reached<State>,
    Extension(policy): Extension<RoutePolicy>,
    mut request: Request,
    next: Next,
) -> Outcome<Response> {
    if !policy.sheddable {
        return Ok(next.run(request).await);
    }
    let taken = state.room.enter();
    let taken = taken.ok_or_else(|| too_busy("it serves as many calls as it can"))?;
    request.extensions_mut().insert(taken.clone());
    let response = next.run(request).await;
    drop(taken);
    Ok(response)
}

fn too_busy(detail: &str) -> Refusal {
    Refusal::of(Code::Overloaded, detail).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn there_is_room_for_so_many_calls_and_again_when_one_has_ended() {
        let room = Room::new(2, UNIT);
        let first = room.enter().unwrap();
        let _second = room.enter().unwrap();
        assert!(room.enter().is_none());
        drop(first);
        assert!(room.enter().is_some());
    }

    #[test]
    fn bodies_share_their_room_and_give_it_back_with_the_call() {
        let room = Room::new(10, 4 * UNIT);
        let (one, other) = (room.enter().unwrap(), room.enter().unwrap());
        for _ in 0..3 * UNIT {
            one.arrived(1).unwrap();
        }
        other.arrived(UNIT).unwrap();
        assert!(other.arrived(1).is_err());
        drop(one);
        assert!(other.arrived(2 * UNIT).is_ok());
    }
}
