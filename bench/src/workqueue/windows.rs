//! Histograms of delays in time windows, to compare the first with the last. Cheap enough for every handler to update.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets per doubling of the delay: percentiles are accurate to about 1 %.
const STEPS: u32 = 64;
/// Doublings, from 64 microseconds up: more than an hour.
const DOUBLINGS: u32 = 26;
/// Below this many microseconds each bucket is one microsecond wide.
const FLOOR: u64 = STEPS as u64;

/// One window.
struct Window {
    buckets: Vec<AtomicU64>,
}

/// Windows of equal length, one after the other.
pub(super) struct Windows {
    length: Duration,
    windows: Vec<Window>,
}

/// Rate and percentiles of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowStats {
    /// Jobs per second.
    pub(super) rate: f64,
    /// Milliseconds.
    pub(super) p50: f64,
    /// Milliseconds.
    pub(super) p99: f64,
}

impl Windows {
    pub(super) fn new(length: Duration, count: usize) -> Self {
        let window = || Window {
            buckets: (0..STEPS * (DOUBLINGS + 1))
                .map(|_| AtomicU64::new(0))
                .collect(),
        };
        Self {
            length,
            windows: (0..count).map(|_| window()).collect(),
        }
    }

    /// Records a job that started at `now` with this delay. Ignores times outside all windows.
    pub(super) fn add(&self, now: Duration, delay: Duration) {
        let window = (now.as_secs_f64() / self.length.as_secs_f64()) as usize;
        if let Some(window) = self.windows.get(window)
            && let Some(bucket) = window.buckets.get(bucket(delay))
        {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn first(&self) -> Option<WindowStats> {
        self.windows.first().map(|window| window.stats(self.length))
    }

    pub(super) fn last(&self) -> Option<WindowStats> {
        self.windows.last().map(|window| window.stats(self.length))
    }
}

impl Window {
    fn stats(&self, length: Duration) -> WindowStats {
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let all: u64 = counts.iter().sum();
        let percentile = |share: f64| {
            let rank = (all as f64 * share).ceil() as u64;
            let mut below = 0;
            let found = counts.iter().position(|count| {
                below += count;
                below >= rank
            });
            microseconds(found.unwrap_or_default()) / 1_000.0
        };
        WindowStats {
            rate: all as f64 / length.as_secs_f64(),
            p50: percentile(0.5),
            p99: percentile(0.99),
        }
    }
}

fn bucket(delay: Duration) -> usize {
    let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    if delay < FLOOR {
        return delay as usize;
    }
    let doublings = (delay / FLOOR).ilog2().min(DOUBLINGS - 1);
    // From 64 to 127, however large the delay.
    let steps = (delay >> doublings).min(2 * FLOOR - 1);
    (u64::from(STEPS * doublings) + steps) as usize
}

/// Returns the middle of a bucket in microseconds.
fn microseconds(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < FLOOR {
        return bucket as f64;
    }
    let doublings = bucket / FLOOR - 1;
    let steps = bucket - doublings * FLOOR;
    (steps as f64 + 0.5) * f64::powi(2.0, doublings as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_is_accurate_to_one_percent() {
        for delay in [0, 1, 63, 64, 65, 127, 128, 1_000, 123_456, 60_000_000] {
            let found = microseconds(bucket(Duration::from_micros(delay)));
            let off = (found - delay as f64).abs();
            assert!(off <= 0.51 + delay as f64 / 100.0, "{delay} became {found}");
        }
    }

    #[test]
    fn windows_are_separate() {
        let windows = Windows::new(Duration::from_secs(2), 2);
        for number in 0..100u64 {
            windows.add(Duration::from_millis(number), Duration::from_millis(1));
            windows.add(Duration::from_millis(3_000), Duration::from_millis(number));
        }
        windows.add(Duration::from_secs(5), Duration::from_secs(1));
        let (first, last) = (windows.first().unwrap(), windows.last().unwrap());
        assert_eq!((first.rate, last.rate), (50.0, 50.0));
        assert!((first.p99 - 1.0).abs() < 0.02, "{first:?}");
        assert!((last.p99 - 98.0).abs() < 1.0, "{last:?}");
        assert!((last.p50 - 49.0).abs() < 1.0, "{last:?}");
    }
}
