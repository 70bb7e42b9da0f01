//! When to say that a workspace is at capacity: when it begins, then at most once a minute with how often it was. Knows no store and no log.

use leasehold_core::WorkspaceId;
use leasehold_store::request::AtCapacity;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long one that flaps says nothing.
const SUM_UP_EVERY: Duration = Duration::from_secs(60);
/// How many are remembered; what is beyond is not said, until some are forgotten.
const REMEMBERED: usize = 10_000;
/// How often to look what is to be summed up: claims are many.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The workspaces that were said to be full.
#[derive(Default)]
pub(super) struct Full {
    said: HashMap<WorkspaceId, Said>,
    looked: Option<Instant>,
}

struct Said {
    at: Instant,
    /// How often it became full since.
    times: u32,
    last: AtCapacity,
}

/// What is worth a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A workspace is full, and was not lately.
    Began(AtCapacity),
    /// It was so often in so many seconds, and this way the last time.
    SumUp {
        last: AtCapacity,
        times: u32,
        seconds: u64,
    },
}

impl Full {
    /// Takes note of one that is full.
    pub(super) fn seen(&mut self, full: AtCapacity, now: Instant) -> Option<Line> {
        if let Some(said) = self.said.get_mut(&full.workspace) {
            said.times = said.times.saturating_add(1);
            said.last = full;
            return None;
        }
        if self.said.len() >= REMEMBERED {
            return None;
        }
        let said = Said {
            at: now,
            times: 0,
            last: full,
        };
        self.said.insert(full.workspace, said);
        Some(Line::Began(full))
    }

    /// What is to be summed up now. Whatever was not full again since it was said is forgotten.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.looked.is_some_and(|at| now < at + LOOK_EVERY) {
            return lines;
        }
        self.looked = Some(now);
        self.said.retain(|_, said| {
            let passed = now.saturating_duration_since(said.at);
            if passed < SUM_UP_EVERY {
                return true;
            }
            if said.times == 0 {
                return false;
            }
            lines.push(Line::SumUp {
                last: said.last,
                times: said.times,
                seconds: passed.as_secs(),
            });
            (said.at, said.times) = (now, 0);
            true
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_store::fresh_id;

    fn full() -> AtCapacity {
        AtCapacity {
            workspace: fresh_id(),
            active: 5,
            limit: 5,
        }
    }

    #[test]
    fn one_that_flaps_is_said_once_and_then_summed_up_once_a_minute() {
        let (mut said, one) = (Full::default(), full());
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(said.seen(one, began), Some(Line::Began(one)));
        let mut summed = Vec::new();
        for second in 1..180 {
            assert_eq!(said.seen(one, at(second)), None);
            summed.extend(said.due(at(second)));
        }
        let sum_up = Line::SumUp {
            last: one,
            times: 60,
            seconds: 60,
        };
        assert_eq!(summed, [sum_up, sum_up]);
        // The last minute's are not lost either, though it is not full any more.
        assert_eq!(said.due(at(240)).len(), 1);
        assert_eq!(said.due(at(300)), []);
        assert_eq!(said.seen(one, at(301)), Some(Line::Began(one)));
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let mut said = Full::default();
        let began = Instant::now();
        let lines = (0..2 * REMEMBERED).filter_map(|_| said.seen(full(), began));
        assert_eq!(lines.count(), REMEMBERED);
        said.due(began + SUM_UP_EVERY);
        assert!(said.said.is_empty());
    }
}
