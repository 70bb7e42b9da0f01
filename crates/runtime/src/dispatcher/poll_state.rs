//! When a cycle claims next, and how it goes to sleep. Knows no store and no claim.

use std::time::{Duration, Instant};

/// When the cycle claims next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PollState {
    /// As soon as there is capacity.
    Now,
    /// At this time at the earliest.
    At(Instant),
    /// After a pause until this time, and after arming notifications.
    BackingOff(Instant),
    /// After the store has armed notifications for this dispatcher.
    Arming,
    /// One more time before sleeping: requests enqueued before arming sent no notification.
    FinalPoll,
    /// When notified, at this time at the latest.
    Sleeping(Instant),
    /// No more in this cycle.
    Stopped,
}

impl PollState {
    pub(super) fn is_due(self, now: Instant) -> bool {
        match self {
            Self::Now | Self::FinalPoll => true,
            Self::At(at) | Self::Sleeping(at) => now >= at,
            Self::BackingOff(_) | Self::Arming | Self::Stopped => false,
        }
    }

    /// Returns the time of the next step, if the state waits for a time.
    pub(super) fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) | Self::BackingOff(at) | Self::Sleeping(at) => Some(at),
            Self::Now | Self::Arming | Self::FinalPoll | Self::Stopped => None,
        }
    }

    /// Returns whether a notification changes the state.
    pub(super) fn accepts_notification(self) -> bool {
        matches!(self, Self::Arming | Self::FinalPoll | Self::Sleeping(_))
    }
}

/// Returns how long to wait before arming notifications, after this many empty polls in a row. Coalesces notifications
/// (NOTIFY in PostgreSQL): one poll follows the wait, however many were sent. ADR 4 has the measurements.
pub(super) fn arm_delay(empty_polls: usize) -> Duration {
    Duration::from_millis(match empty_polls {
        // One empty poll is normal: a request enqueued by this process notifies twice, directly and through the database.
        0 | 1 => 0,
        2 => 20,
        3 => 50,
        _ => 100,
    })
}
