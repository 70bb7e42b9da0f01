//! The load of the demo: when requests arrive, and their params. Depends on seed and time only. Pure: no clock, no server.

use super::DemoOptions;
use fastrand::Rng;
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::time::Duration;

const ITEMS: [&str; 6] = ["lamp", "kettle", "chair", "clock", "rug", "shelf"];
/// The load at night, relative to the peak.
const MIN_LOAD: f64 = 0.25;
/// Starts at 30 % of the day, so that the load is above average at once.
const START_PHASE: f64 = 0.3;

/// The load as a function of time.
pub(super) struct LoadProfile {
    options: DemoOptions,
    rng: Rng,
    number: u64,
}

impl LoadProfile {
    pub(super) fn new(options: DemoOptions) -> Self {
        Self {
            options,
            rng: Rng::with_seed(options.seed),
            number: 0,
        }
    }

    /// The size of a burst of the noisy neighbour, and the pause after it.
    pub(super) fn burst(&self) -> (usize, Duration) {
        (self.options.burst, self.options.noise)
    }

    /// The time until the next request of a stream with this peak rate.
    pub(super) fn gap(&mut self, rate_per_second: f64, now: Duration) -> Duration {
        let rate = rate_per_second * daily_factor(now, self.options.day);
        // Exponential distribution: independent arrivals.
        let chance = 1.0 - self.rng.f64();
        Duration::from_secs_f64((-chance.ln() / rate).clamp(0.01, 30.0))
    }

    /// Random params for a definition.
    pub(super) fn params(&mut self, kind: &str) -> Value {
        self.number += 1;
        let number = self.number;
        match kind {
            "order" => {
                let item = ITEMS[self.rng.usize(..ITEMS.len())];
                json!({"order": number, "item": item, "amount": self.rng.u32(5..500) * 100})
            }
            "report" => json!({"month": self.rng.u8(1..=12)}),
            "import" => {
                json!({"file": format!("part-{number}.csv"), "rows": self.rng.u32(10..5_000)})
            }
            _ => json!({"to": format!("guest-{number}")}),
        }
    }
}

/// The load at a time relative to the peak: a sine wave over the day.
fn daily_factor(now: Duration, day: Duration) -> f64 {
    let part = now.as_secs_f64() / day.as_secs_f64().max(1.0) + START_PHASE;
    let height = (1.0 - (part * TAU).cos()) / 2.0;
    MIN_LOAD + (1.0 - MIN_LOAD) * height
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(120);

    #[test]
    fn same_seed_gives_the_same_load() {
        let generate = |seed| {
            let options = DemoOptions {
                seed,
                ..DemoOptions::default()
            };
            let mut profile = LoadProfile::new(options);
            let one = |at: u32| {
                let gap = profile.gap(1.5, DAY * at / 100);
                (gap, profile.params("order"), profile.params("import"))
            };
            (0..50).map(one).collect::<Vec<_>>()
        };
        assert_eq!(generate(1), generate(1));
        assert_ne!(generate(1), generate(2));
    }

    #[test]
    fn load_is_lower_at_night_but_never_zero() {
        let all: Vec<f64> = (0..240u32)
            .map(|at| daily_factor(DAY * at / 240, DAY))
            .collect();
        let (lowest, highest) = all
            .iter()
            .fold((f64::MAX, 0.0), |(low, high): (f64, f64), one| {
                (low.min(*one), high.max(*one))
            });
        assert!((MIN_LOAD..0.3).contains(&lowest), "{lowest}");
        assert!((0.95..=1.0).contains(&highest), "{highest}");
        assert!(all[0] > 0.5, "starts in the morning: {}", all[0]);
    }

    #[test]
    fn average_rate_matches_the_configured_rate() {
        let options = DemoOptions {
            day: Duration::from_secs(60),
            ..DemoOptions::default()
        };
        let mut profile = LoadProfile::new(options);
        let (mut now, mut enqueued) = (Duration::ZERO, 0);
        while now < Duration::from_secs(6_000) {
            now += profile.gap(2.0, now);
            enqueued += 1;
        }
        // The mean of the wave over a hundred days.
        let mean = MIN_LOAD + (1.0 - MIN_LOAD) / 2.0;
        let rate_per_second = f64::from(enqueued) / now.as_secs_f64();
        assert!(
            (rate_per_second / (2.0 * mean) - 1.0).abs() < 0.1,
            "{rate_per_second}"
        );
    }
}
