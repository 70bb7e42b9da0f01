//! Bounded waits that poll: the only place in the tests that sleeps. Knows nothing of what is waited for.

use std::thread;
use std::time::{Duration, Instant};

const PACE: Duration = Duration::from_millis(20);

/// Blocks the thread until `check` is true, and says whether it became so within `timeout`.
#[must_use]
pub fn wait_until(timeout: Duration, mut check: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !check() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(PACE);
    }
    true
}

/// Waits until `check` is true, and says whether it became so within `timeout`; a check that hangs is cut off there too.
///
/// For what gives no signal to wait on. Not for a runtime whose clock is paused: a server does not share that clock.
#[cfg(feature = "database")]
#[must_use]
pub async fn eventually<F, Fut>(timeout: Duration, mut check: F) -> bool
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let poll = async {
        while !check().await {
            tokio::time::sleep(PACE).await;
        }
    };
    tokio::time::timeout(timeout, poll).await.is_ok()
}

#[cfg(all(test, feature = "database"))]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn waits_end_when_the_check_holds() {
        let mut calls = 0;
        assert!(wait_until(Duration::from_secs(10), || {
            calls += 1;
            calls == 3
        }));
        let mut asked = 0;
        let third = eventually(Duration::from_secs(10), || {
            asked += 1;
            std::future::ready(asked == 3)
        });
        assert!(third.await);
    }

    #[tokio::test]
    async fn waits_are_bounded() {
        assert!(!wait_until(SHORT, || false));
        assert!(!eventually(SHORT, std::future::pending).await);
    }
}
