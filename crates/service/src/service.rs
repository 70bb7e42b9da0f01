//! The trait of a service that runs in rounds, and the loop that runs it until it is cancelled.

use crate::failure_streak::FailureStreak;
use crate::panic::catch_panic;
use async_trait::async_trait;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
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

    /// Returns how long after a round that took this long a notification may start the next one. A service whose notifications come from outside
    /// bounds its load with it.
    fn woken_pause(&self, _round: Duration) -> Duration {
        Duration::ZERO
    }

    /// Releases locks and other resources; called once, after the last round.
    async fn stopped(&self) {}
}

/// Runs rounds until `stop` is cancelled. A failed round is retried with backoff. A round that panics counts as a failed one, after a call of `panicked`.
pub async fn run(service: &impl Service, stop: &CancellationToken, panicked: impl Fn()) {
    let mut failures = FailureStreak::of(service.name());
    while !stop.is_cancelled() {
        let begun = Instant::now();
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
        let ended = Instant::now();
        let may_begin = ended + service.woken_pause(ended - begun);
        let woken = async {
            service.woken().await;
            sleep_until(may_begin).await;
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
            () = woken, if may_wake => {}
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

#[cfg(test)]
mod woken_tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Mutex;
    use tokio::time::{advance, timeout};

    const ROUND: Duration = Duration::from_millis(30);
    const PAUSE: Duration = Duration::from_millis(200);
    const INTERVAL: Duration = Duration::from_secs(1);

    /// Records when its rounds begin.
    struct TestService {
        is_woken: bool,
        rounds: Mutex<Vec<Instant>>,
    }

    #[async_trait]
    impl Service for TestService {
        type Error = Infallible;

        fn name(&self) -> &'static str {
            "test"
        }

        async fn run_once(&self) -> Result<Next, Infallible> {
            self.rounds.lock().unwrap().push(Instant::now());
            advance(ROUND).await;
            Ok(Next::After(INTERVAL))
        }

        async fn woken(&self) {
            if !self.is_woken {
                std::future::pending().await
            }
        }

        fn woken_pause(&self, round: Duration) -> Duration {
            PAUSE + round
        }
    }

    /// Returns the times between the rounds of ten seconds.
    async fn gaps(is_woken: bool) -> Vec<Duration> {
        let service = TestService {
            is_woken,
            rounds: Mutex::default(),
        };
        let stop = CancellationToken::new();
        let _elapsed = timeout(Duration::from_secs(10), run(&service, &stop, || {})).await;
        let rounds = service.rounds.into_inner().unwrap();
        rounds.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn woken_rounds_are_apart_by_the_pause() {
        let gaps = gaps(true).await;
        // The round, the pause, and the round's length again; timers count whole milliseconds.
        let expected = ROUND + PAUSE + ROUND;
        assert!(gaps.len() > 30, "{gaps:?}");
        for gap in gaps {
            let late = gap.saturating_sub(expected);
            assert!(
                gap >= expected && late < Duration::from_millis(5),
                "{gap:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn round_without_notification_starts_after_the_interval() {
        let gaps = gaps(false).await;
        assert!(!gaps.is_empty());
        assert!(gaps.iter().all(|gap| *gap >= INTERVAL), "{gaps:?}");
    }
}
