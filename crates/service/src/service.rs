//! The shape of a service that does rounds, and the loop that runs one until it is told to stop.

use crate::failure_streak::FailureStreak;
use async_trait::async_trait;
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// When the next round is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more to do.
    Again,
    /// After this long, or when woken.
    After(Duration),
}

/// Something that does rounds. A round can be dropped at any point: whatever it had done stays done, the rest is done by the next.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// What can keep it from doing its round.
    type Error: std::error::Error + Send;

    /// What it is called in logs.
    fn name(&self) -> &'static str;

    /// Does one round.
    async fn run_once(&self) -> Result<Next, Self::Error>;

    /// Returns when a round is due before its time.
    async fn woken(&self) {
        std::future::pending().await
    }

    /// Gives back what it holds; called once, after the last round.
    async fn stopped(&self) {}
}

/// Runs rounds until told to stop. A round that fails is tried again.
pub async fn run(service: &impl Service, stop: &CancellationToken) {
    let mut failures = FailureStreak::of(service.name());
    while !stop.is_cancelled() {
        let round = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            round = service.run_once() => round,
        };
        let (wait, may_wake) = match round {
            Ok(Next::Again) => {
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
