//! Bounded waits that poll a condition: the only code in the tests that sleeps. Knows no condition.

use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Blocks the thread until `check` returns true; returns false after `timeout`.
#[must_use]
pub fn wait_until(timeout: Duration, mut check: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !check() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Waits until `check` returns true; returns false after `timeout`, also if `check` hangs.
///
/// For conditions without a signal to wait on. Do not use it on a runtime with a paused clock: servers do not share that clock.
#[cfg(feature = "database")]
#[must_use]
pub async fn eventually<F, Fut>(timeout: Duration, mut check: F) -> bool
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let poll = async {
        while !check().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(timeout, poll).await.is_ok()
}

#[cfg(all(test, feature = "database"))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn waits_end_when_the_check_returns_true() {
        let mut calls = 0;
        assert!(wait_until(Duration::from_secs(10), || {
            calls += 1;
            calls == 3
        }));
        let mut polls = 0;
        let third = eventually(Duration::from_secs(10), || {
            polls += 1;
            std::future::ready(polls == 3)
        });
        assert!(third.await);
    }

    #[tokio::test]
    async fn waits_end_at_the_timeout() {
        assert!(!wait_until(SHORT, || false));
        assert!(!eventually(SHORT, std::future::pending).await);
    }
}
