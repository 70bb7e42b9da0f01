//! Lease arithmetic: bounds on lease durations and the heartbeat interval. Pure; only the store's clock decides whether a lease has expired.

use std::time::Duration;

/// The lease of a job if neither its queue nor its worker sets one.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// The shortest lease; long enough to renew over a slow network.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest lease; a job of a dead worker waits that long.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Clamps a requested lease to the allowed range.
pub fn bounded(lease: Duration) -> Duration {
    lease.clamp(LEASE_MIN, LEASE_MAX)
}

/// Returns the interval between renewals of such a lease: two renewals may fail before the lease expires.
pub fn heartbeat_interval(lease: Duration) -> Duration {
    lease / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requested_leases_are_clamped() {
        assert_eq!(bounded(Duration::ZERO), LEASE_MIN);
        assert_eq!(bounded(Duration::MAX), LEASE_MAX);
        assert_eq!(bounded(DEFAULT_LEASE), DEFAULT_LEASE);
    }

    proptest! {
        #[test]
        fn two_renewals_may_fail_before_the_lease_expires(millis in 100u64..86_400_000) {
            let lease = bounded(Duration::from_millis(millis));
            let every = heartbeat_interval(lease);
            prop_assert!(every > Duration::ZERO);
            prop_assert!(every * 3 <= lease);
            prop_assert!(every * 4 > lease);
        }
    }
}
