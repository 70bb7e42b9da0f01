//! The trait of a service that runs in rounds, and the loop that runs it until it is cancelled.

use crate::failure_streak::FailureStreak;
use crate::panic::catch_panic;
use async_trait::async_trait;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// When the next round starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once; there is more to do.
    Now,
    /// After this long, or when woken.
    After(Duration),
}

/// A background service that runs in rounds. A round can be dropped at any await point: what it has committed stays, and the next round does the rest.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// The error of a failed round.
    type Error: std::error::Error + Send;

    /// Returns the name for logs.
    fn name(&self) -> &'static str;

    /// Runs one round.
    async fn run_once(&self) -> Result<Next, Self::Error>;

    /// Waits until a notification makes a round due before its time.
    async fn woken(&self) {
        std::future::pending().await
    }

    /// Releases locks and other resources; called once, after the last round.
    async fn stopped(&self) {}
}

/// Runs rounds until `stop` is cancelled. A failed round is retried with backoff. A round that panics counts as a failed one, after a call of `panicked`.
pub async fn run(service: &impl Service, stop: &CancellationToken, panicked: impl Fn()) {
    let mut failures = FailureStreak::of(service.name());
    while !stop.is_cancelled() {
        let round = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            round = catch_panic(service.run_once()) => round,
        };
        let (wait, may_wake) = match round {
            Ok(Ok(Next::Now)) => {
                failures.succeeded();
                continue;
            }
            Ok(Ok(Next::After(wait))) => {
                failures.succeeded();
                (wait, true)
            }
            Ok(Err(error)) => (failures.failed(&error), false),
            Err(panic) => {
                panicked();
                (failures.failed(&panic), false)
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
            () = service.woken(), if may_wake => {}
        }
    }
    service.stopped().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use thiserror::Error;

    #[derive(Debug, Error)]
    #[error("failed")]
    struct Failed;

    /// Panics in its first round, fails in the second, and stops its loop in the third.
    #[derive(Default)]
    struct Panicking {
        rounds: AtomicU32,
        stop: CancellationToken,
    }

    #[async_trait]
    impl Service for Panicking {
        type Error = Failed;

        fn name(&self) -> &'static str {
            "test"
        }

        async fn run_once(&self) -> Result<Next, Failed> {
            match self.rounds.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("injected"),
                1 => Err(Failed),
                _ => {
                    self.stop.cancel();
                    Ok(Next::Now)
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn panic_in_a_round_is_a_failed_round() {
        let (service, panics) = (Panicking::default(), AtomicU32::new(0));
        let count = || {
            panics.fetch_add(1, Ordering::Relaxed);
        };
        run(&service, &service.stop, count).await;
        assert_eq!(service.rounds.into_inner(), 3);
        assert_eq!(panics.into_inner(), 1);
    }
}
