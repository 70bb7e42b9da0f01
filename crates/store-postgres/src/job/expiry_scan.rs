//! Where a scan for expired leases starts, so that it skips the dead rows of leases that expired before. Knows no SQL.

use leasehold_core::Timestamp;
use std::time::{Duration, Instant};

/// A lease may be committed this long after its expiry was computed, or its page may be locked this long during a scan.
const MARGIN: Duration = Duration::from_secs(10);
/// Minimum time between scans by claims: each scan reads past leases that expired recently.
const CLAIM_SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// How often a scan starts from the beginning.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(60);

/// The progress of the scans.
#[derive(Debug, Default)]
pub(crate) struct ExpiryScan {
    full_at: Option<Instant>,
    scanned_to: Option<Timestamp>,
    scanned_at: Option<Instant>,
}

impl ExpiryScan {
    /// Whether the next claim should scan.
    pub(crate) fn is_due(&self) -> bool {
        self.scanned_at
            .is_none_or(|at| at.elapsed() >= CLAIM_SCAN_INTERVAL)
    }

    /// Starts a scan and returns where it begins: leases that expired up to then were requeued. None: from the beginning.
    pub(crate) fn begin(&mut self) -> Option<Timestamp> {
        let now = Instant::now();
        self.scanned_at = Some(now);
        if self
            .full_at
            .is_none_or(|at| now.duration_since(at) >= FULL_SCAN_INTERVAL)
        {
            self.full_at = Some(now);
            self.scanned_to = None;
        }
        self.scanned_to.and_then(|at| at.checked_sub(MARGIN).ok())
    }

    /// Records that a scan handled every lease that expired up to `at`.
    pub(crate) fn complete(&mut self, at: Timestamp) {
        self.scanned_to = self.scanned_to.max(Some(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_scan_starts_at_the_beginning_and_the_next_at_the_last_minus_margin() {
        let at = Timestamp::UNIX_EPOCH + Duration::from_secs(100);
        let mut scan = ExpiryScan::default();
        assert_eq!(scan.begin(), None);
        scan.complete(at);
        assert_eq!(scan.begin(), Some(at - MARGIN));
        scan.complete(at - MARGIN);
        assert_eq!(
            scan.begin(),
            Some(at - MARGIN),
            "the start never moves back"
        );
    }

    #[test]
    fn claim_right_after_a_scan_does_not_scan() {
        let mut scan = ExpiryScan::default();
        assert!(scan.is_due());
        scan.begin();
        assert!(!scan.is_due());
        scan.scanned_at = Instant::now().checked_sub(CLAIM_SCAN_INTERVAL);
        assert!(scan.is_due());
    }

    #[test]
    fn full_scan_starts_after_its_interval() {
        let mut scan = ExpiryScan {
            full_at: Instant::now().checked_sub(FULL_SCAN_INTERVAL),
            scanned_to: Some(Timestamp::UNIX_EPOCH + Duration::from_secs(100)),
            scanned_at: None,
        };
        assert_eq!(scan.begin(), None);
    }
}
