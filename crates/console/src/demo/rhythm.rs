//! When something is asked for, and what: by seed and time alone. Pure: no clock, no server.

use super::DemoOptions;
use fastrand::Rng;
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::time::Duration;

const ITEMS: [&str; 6] = ["lamp", "kettle", "chair", "clock", "rug", "shelf"];
/// What is left of the load at night.
const NIGHT: f64 = 0.25;
/// The demo begins in the morning, so that there is something to see at once.
const MORNING: f64 = 0.3;

/// The load as a function of time.
pub(super) struct Rhythm {
    options: DemoOptions,
    rng: Rng,
    number: u64,
}

impl Rhythm {
    pub(super) fn new(options: DemoOptions) -> Self {
        Self {
            options,
            rng: Rng::with_seed(options.seed),
            number: 0,
        }
    }

    /// How many at once the noisy neighbour asks for, and how long it is quiet after that.
    pub(super) fn burst(&self) -> (usize, Duration) {
        (self.options.burst, self.options.noise)
    }

    /// How long until something with this many a second at noon is asked for again.
    pub(super) fn gap(&mut self, each_second: f64, now: Duration) -> Duration {
        let rate = each_second * light(now, self.options.day);
        // As calls arrive: independent of each other.
        let chance = 1.0 - self.rng.f64();
        Duration::from_secs_f64((-chance.ln() / rate).clamp(0.01, 30.0))
    }

    /// What a definition is asked to run with.
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

/// How much of the load of noon there is at a time: a day is a wave.
fn light(now: Duration, day: Duration) -> f64 {
    let part = now.as_secs_f64() / day.as_secs_f64().max(1.0) + MORNING;
    let height = (1.0 - (part * TAU).cos()) / 2.0;
    NIGHT + (1.0 - NIGHT) * height
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(120);

    #[test]
    fn the_same_seed_asks_for_the_same() {
        let play = |seed| {
            let options = DemoOptions {
                seed,
                ..DemoOptions::default()
            };
            let mut rhythm = Rhythm::new(options);
            let one = |at: u32| {
                let gap = rhythm.gap(1.5, DAY * at / 100);
                (gap, rhythm.params("order"), rhythm.params("import"))
            };
            (0..50).map(one).collect::<Vec<_>>()
        };
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
    }

    #[test]
    fn there_is_less_to_do_at_night_and_always_something() {
        let all: Vec<f64> = (0..240u32).map(|at| light(DAY * at / 240, DAY)).collect();
        let (lowest, highest) = all
            .iter()
            .fold((f64::MAX, 0.0), |(low, high): (f64, f64), one| {
                (low.min(*one), high.max(*one))
            });
        assert!((NIGHT..0.3).contains(&lowest), "{lowest}");
        assert!((0.95..=1.0).contains(&highest), "{highest}");
        assert!(all[0] > 0.5, "it begins in the morning: {}", all[0]);
    }

    #[test]
    fn as_many_are_asked_for_as_said() {
        let options = DemoOptions {
            day: Duration::from_secs(60),
            ..DemoOptions::default()
        };
        let mut rhythm = Rhythm::new(options);
        let (mut now, mut asked) = (Duration::ZERO, 0);
        while now < Duration::from_secs(6_000) {
            now += rhythm.gap(2.0, now);
            asked += 1;
        }
        // The mean of the wave, some hundred days long.
        let mean = NIGHT + (1.0 - NIGHT) / 2.0;
        let each_second = f64::from(asked) / now.as_secs_f64();
        assert!(
            (each_second / (2.0 * mean) - 1.0).abs() < 0.1,
            "{each_second}"
        );
    }
}
