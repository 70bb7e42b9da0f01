//! When a cycle claims next, and how it falls asleep. Knows no store and no claim.

use std::time::{Duration, Instant};

/// When to claim next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    /// As soon as there is room.
    Now,
    /// Not before this.
    At(Instant),
    /// After a rest, and then not before saying that we are about to sleep.
    Resting(Instant),
    /// After saying that we are about to sleep.
    Arming,
    /// Once more, then sleep.
    LastTime,
    /// When woken, at the latest then.
    Asleep(Instant),
    /// Not any more in this cycle.
    Never,
}

impl Look {
    pub(super) fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Now | Self::LastTime => true,
            Self::At(at) | Self::Asleep(at) => now >= at,
            Self::Resting(_) | Self::Arming | Self::Never => false,
        }
    }

    /// When something is due, if that is a matter of time.
    pub(super) fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) | Self::Resting(at) | Self::Asleep(at) => Some(at),
            Self::Now | Self::Arming | Self::LastTime | Self::Never => None,
        }
    }

    /// Whether a wake-up is of use.
    pub(super) fn may_wake(self) -> bool {
        matches!(self, Self::Arming | Self::LastTime | Self::Asleep(_))
    }
}

/// How long to rest before arming after so many looks in a row that brought nothing; ADR 4 has the numbers.
pub(super) fn rest_after(fruitless: usize) -> Duration {
    Duration::from_millis(match fruitless {
        // Once is usual: a request of this very process rings twice, here and through the database.
        0 | 1 => 0,
        2 => 20,
        3 => 50,
        _ => 100,
    })
}
