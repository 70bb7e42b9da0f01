//! Rate-limits the log events of workspaces at capacity: one when it begins, then at most one a minute with a count. Knows no store and no logger.

use leasehold_core::WorkspaceId;
use leasehold_store::request::AtCapacity;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The shortest time between two events of one workspace.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);
/// How many workspaces are tracked; further ones are not logged until some are dropped.
const MAX_TRACKED: usize = 10_000;
/// The shortest time between two scans for due summaries, since claims are frequent.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// The workspaces that were logged as at capacity.
#[derive(Default)]
pub(super) struct CapacityLog {
    logged: HashMap<WorkspaceId, LoggedWorkspace>,
    scanned_at: Option<Instant>,
}

struct LoggedWorkspace {
    at: Instant,
    /// How often it reached capacity since.
    times: u32,
    last: AtCapacity,
}

/// An event to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityEvent {
    /// A workspace reached capacity, for the first time in a while.
    Began(AtCapacity),
    /// A workspace reached capacity `times` times in `seconds`; `last` is the latest.
    Repeated {
        last: AtCapacity,
        times: u32,
        seconds: u64,
    },
}

impl CapacityLog {
    /// Records a workspace at capacity. Returns the event to log, if any.
    pub(super) fn record(&mut self, full: AtCapacity, now: Instant) -> Option<CapacityEvent> {
        if let Some(logged) = self.logged.get_mut(&full.workspace) {
            logged.times = logged.times.saturating_add(1);
            logged.last = full;
            return None;
        }
        if self.logged.len() >= MAX_TRACKED {
            return None;
        }
        let logged = LoggedWorkspace {
            at: now,
            times: 0,
            last: full,
        };
        self.logged.insert(full.workspace, logged);
        Some(CapacityEvent::Began(full))
    }

    /// Returns the summaries that are due. Drops workspaces that did not reach capacity again since their last event.
    pub(super) fn take_summaries(&mut self, now: Instant) -> Vec<CapacityEvent> {
        let mut events = Vec::new();
        if self.scanned_at.is_some_and(|at| now < at + SCAN_INTERVAL) {
            return events;
        }
        self.scanned_at = Some(now);
        self.logged.retain(|_, logged| {
            let passed = now.saturating_duration_since(logged.at);
            if passed < SUMMARY_INTERVAL {
                return true;
            }
            if logged.times == 0 {
                return false;
            }
            events.push(CapacityEvent::Repeated {
                last: logged.last,
                times: logged.times,
                seconds: passed.as_secs(),
            });
            (logged.at, logged.times) = (now, 0);
            true
        });
        events
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
    fn repeated_events_are_summarised_once_a_minute() {
        let (mut log, one) = (CapacityLog::default(), full());
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(log.record(one, began), Some(CapacityEvent::Began(one)));
        let mut summed = Vec::new();
        for second in 1..180 {
            assert_eq!(log.record(one, at(second)), None);
            summed.extend(log.take_summaries(at(second)));
        }
        let summary = CapacityEvent::Repeated {
            last: one,
            times: 60,
            seconds: 60,
        };
        assert_eq!(summed, [summary, summary]);
        // The last minute is summarised too, though the workspace is no longer at capacity.
        assert_eq!(log.take_summaries(at(240)).len(), 1);
        assert_eq!(log.take_summaries(at(300)), []);
        assert_eq!(log.record(one, at(301)), Some(CapacityEvent::Began(one)));
    }

    #[test]
    fn number_of_tracked_workspaces_is_bounded() {
        let mut log = CapacityLog::default();
        let began = Instant::now();
        let events = (0..2 * MAX_TRACKED).filter_map(|_| log.record(full(), began));
        assert_eq!(events.count(), MAX_TRACKED);
        log.take_summaries(began + SUMMARY_INTERVAL);
        assert!(log.logged.is_empty());
    }
}
