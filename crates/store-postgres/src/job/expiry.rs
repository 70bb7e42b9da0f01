//! From where to look for expired leases, so that a look does not pass the remains of all that ever expired. Knows no SQL.

use leasehold_core::Timestamp;
use std::time::{Duration, Instant};

/// A lease may be written down so long after its end was computed, or its page be busy so long when it was looked at.
const MARGIN: Duration = Duration::from_secs(10);
/// How often claims look at most: in steady work each look passes what expired lately.
const CLAIMS_LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often to look from the very beginning all the same.
const FULL_EVERY: Duration = Duration::from_secs(60);

/// What was looked at.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    full_at: Option<Instant>,
    seen: Option<Timestamp>,
    looked_at: Option<Instant>,
}

impl Expiry {
    /// Whether it is time for a claim to look.
    pub(crate) fn is_due(&self) -> bool {
        self.looked_at
            .is_none_or(|at| at.elapsed() >= CLAIMS_LOOK_EVERY)
    }

    /// Leases that ended at or before this have been taken back; none where nobody looked lately.
    pub(crate) fn from(&mut self) -> Option<Timestamp> {
        let now = Instant::now();
        self.looked_at = Some(now);
        if self
            .full_at
            .is_none_or(|at| now.duration_since(at) >= FULL_EVERY)
        {
            self.full_at = Some(now);
            self.seen = None;
        }
        self.seen.and_then(|at| at.checked_sub(MARGIN).ok())
    }

    /// A look found everything that had ended by this.
    pub(crate) fn looked(&mut self, at: Timestamp) {
        self.seen = self.seen.max(Some(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_from_the_beginning_and_the_next_from_the_last_with_a_margin() {
        let at = Timestamp::UNIX_EPOCH + Duration::from_secs(100);
        let mut expiry = Expiry::default();
        assert_eq!(expiry.from(), None);
        expiry.looked(at);
        assert_eq!(expiry.from(), Some(at - MARGIN));
        expiry.looked(at - MARGIN);
        assert_eq!(expiry.from(), Some(at - MARGIN), "it never goes back");
    }

    #[test]
    fn a_claim_right_after_a_look_does_not_look() {
        let mut expiry = Expiry::default();
        assert!(expiry.is_due());
        expiry.from();
        assert!(!expiry.is_due());
        expiry.looked_at = Instant::now().checked_sub(CLAIMS_LOOK_EVERY);
        assert!(expiry.is_due());
    }

    #[test]
    fn from_time_to_time_it_begins_anew() {
        let mut expiry = Expiry {
            full_at: Instant::now().checked_sub(FULL_EVERY),
            seen: Some(Timestamp::UNIX_EPOCH + Duration::from_secs(100)),
            looked_at: None,
        };
        assert_eq!(expiry.from(), None);
    }
}
