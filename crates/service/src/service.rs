//! The trait of a service that runs in rounds, and the loop that runs it until it is cancelled.

use crate::failure_streak::FailureStreak;
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

/// Runs rounds until `stop` is cancelled. A failed round is retried with backoff.
pub async fn run(service: &impl Service, stop: &CancellationToken) {
    let mut failures = FailureStreak::of(service.name());
    while !stop.is_cancelled() {
        let round = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            round = service.run_once() => round,
        };
        let (wait, may_wake) = match round {
            Ok(Next::Now) => {
                failures.succeeded();
                continue;
            }
            Ok(Next::After(wait)) => {
                failures.succeeded();
                (wait, true)
            }
            Err(error) => (failures.failed(&error), false),
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
            () = service.woken(), if may_wake => {}
        }
    }
    service.stopped().await;
}
