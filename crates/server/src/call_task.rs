//! Parts of a call that run in tasks of their own, to their end, even if the call ends before: its caller disconnected, or it gave the part up. The store goes
//! on with what it has begun, so what the call holds in shared pools stays taken until then. Knows no route.

use crate::call_memory::{CallMemory, LentMemory};
use crate::call_owner::{self, RunningCall};

/// What a part of a call holds until it is dropped: the owner and the place of the call, and the memory reserved for its response. Meanwhile the call must
/// reserve no other memory.
pub(crate) struct HeldCall {
    call: Option<RunningCall>,
    #[expect(dead_code, reason = "returned to the call on drop")]
    memory: Option<LentMemory>,
}

impl HeldCall {
    /// Takes over what the call that this task serves holds.
    pub(crate) fn current() -> Self {
        Self {
            call: call_owner::running(),
            memory: CallMemory::current().map(CallMemory::lend),
        }
    }

    /// Runs a part for the owner of the call.
    pub(crate) async fn run<T>(&self, part: impl Future<Output = T>) -> T {
        call_owner::scope(self.call.clone(), part).await
    }
}

/// Runs a part of the call that this task serves, to its end even if this future is dropped.
pub(crate) async fn run<T: Send + 'static>(part: impl Future<Output = T> + Send + 'static) -> T {
    let held = HeldCall::current();
    to_end(async move { held.run(part).await }).await
}

/// Runs a part of another call than the one that this task serves, to its end even if this future is dropped.
pub(crate) async fn run_for<T: Send + 'static>(
    call: RunningCall,
    part: impl Future<Output = T> + Send + 'static,
) -> T {
    to_end(call_owner::scope(Some(call), part)).await
}

async fn to_end<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(task).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::call_owner::{Owner, Place};
    use futures::FutureExt;
    use leasehold_testkit::eventually;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn part_of_a_dropped_call_ends_and_keeps_its_place_until_then() {
        let place: Place = Arc::new(());
        let call = RunningCall::new(Owner::Anonymous, Some(place.clone()));
        let (go_on, wait) = oneshot::channel::<()>();
        let part = run(async move {
            wait.await.unwrap();
            call_owner::current()
        });
        let mut running = Box::pin(call_owner::scope(Some(call), part));
        assert!((&mut running).now_or_never().is_none());
        drop(running);
        tokio::task::yield_now().await;
        assert!(Arc::strong_count(&place) > 1);
        go_on.send(()).unwrap();
        let released = eventually(Duration::from_secs(60), || async {
            Arc::strong_count(&place) == 1
        });
        assert!(released.await);
    }

    #[tokio::test]
    async fn part_runs_for_the_owner_of_its_call_and_its_panic_is_the_calls() {
        let call = RunningCall::new(Owner::Anonymous, None);
        let owner = call_owner::scope(Some(call), run(async { call_owner::current() }));
        assert_eq!(owner.await, Some(Owner::Anonymous));
        assert_eq!(run(async { call_owner::current() }).await, None);
        let failed = run(async { panic!("of the part") });
        let failed = std::panic::AssertUnwindSafe(failed).catch_unwind().await;
        assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"of the part"));
    }
}
