//! Says that something fails when it begins, once a minute while it lasts, and when it is over; and how long to wait between tries.

use leasehold_core::retry::Backoff;
use leasehold_store::Error;
use std::time::Duration;
use tokio::time::Instant;

const REMIND_EVERY: Duration = Duration::from_secs(60);
/// Quick enough that a restarted database is noticed in seconds, slow enough not to hammer it.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(3),
    jitter: 0.2,
};

pub(crate) struct Troubles {
    what: &'static str,
    failing: Option<Failing>,
}

struct Failing {
    since: Instant,
    said: Instant,
    times: u32,
}

impl Troubles {
    /// Of something, said as in "the worker cannot claim jobs".
    pub(crate) fn to(what: &'static str) -> Self {
        Self {
            what,
            failing: None,
        }
    }

    /// Takes note of a failure; returns how long to wait before the next try.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        let now = Instant::now();
        let what = self.what;
        let failing = self.failing.get_or_insert_with(|| {
            tracing::error!(%error, "the worker cannot {what}; it keeps trying");
            Failing {
                since: now,
                said: now,
                times: 0,
            }
        });
        failing.times = failing.times.saturating_add(1);
        if now - failing.said >= REMIND_EVERY {
            failing.said = now;
            let seconds = (now - failing.since).as_secs();
            tracing::error!(%error, times = failing.times, seconds, "the worker still cannot {what}");
        }
        WAITS.delay(failing.times, fastrand::f64())
    }

    /// Takes note that all is well.
    pub(crate) fn fine(&mut self) {
        if let Some(failing) = self.failing.take() {
            let seconds = failing.since.elapsed().as_secs();
            tracing::info!(
                times = failing.times,
                seconds,
                "the worker can {} again",
                self.what
            );
        }
    }
}
