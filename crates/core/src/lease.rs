//! Lease arithmetic: how long leases may be, and when their holders renew them. Pure; only the store's clock judges leases.

use std::time::Duration;

/// How long a job's lease is unless its queue or its worker says otherwise.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// The shortest lease: a holder must be able to renew it over a slow network.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// The longest lease: so long does a job of a dead worker wait.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The lease to use for a wished one.
pub fn bounded(lease: Duration) -> Duration {
    lease.clamp(LEASE_MIN, LEASE_MAX)
}

/// How often the holder of such leases renews them: two renewals may fail before a third is too late.
pub fn heartbeat_every(lease: Duration) -> Duration {
    lease / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wishes_out_of_bounds_become_the_nearest_lease() {
        assert_eq!(bounded(Duration::ZERO), LEASE_MIN);
        assert_eq!(bounded(Duration::MAX), LEASE_MAX);
        assert_eq!(bounded(DEFAULT_LEASE), DEFAULT_LEASE);
    }

    proptest! {
        #[test]
        fn two_renewals_may_fail_before_a_third_is_too_late(millis in 100u64..86_400_000) {
            let lease = bounded(Duration::from_millis(millis));
            let every = heartbeat_every(lease);
            prop_assert!(every > Duration::ZERO);
            prop_assert!(every * 3 <= lease);
            prop_assert!(every * 4 > lease);
        }
    }
}
