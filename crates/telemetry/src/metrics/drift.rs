//! Counting drift: what the last check saw and left, and what was repaired. Knows the kinds, not what they mean.

use super::Metrics;
use super::book::Level;
use super::labels::Kind;
use leasehold_store::capacity::DriftKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::time::{SystemTime, UNIX_EPOCH};

fn label(kind: DriftKind) -> Kind {
    Kind {
        kind: kind.as_str(),
    }
}

/// Every kind at 0, so that a rise is seen as one.
pub(super) fn begin(seen: &Family<Kind, Level>, repaired: &Family<Kind, Counter>) {
    for kind in DriftKind::ALL {
        seen.get_or_create(&label(kind)).set(0.0);
        repaired.get_or_create(&label(kind)).inc_by(0);
    }
}

impl Metrics {
    /// How many differences of a kind the last check saw and left.
    pub fn drift_seen(&self, kind: DriftKind, differences: usize) {
        let shown = u32::try_from(differences).unwrap_or(u32::MAX);
        self.drift.get_or_create(&label(kind)).set(f64::from(shown));
    }

    /// That many differences of a kind were repaired.
    pub fn drift_repaired(&self, kind: DriftKind, differences: usize) {
        let repaired = u64::try_from(differences).unwrap_or(u64::MAX);
        self.drift_repaired
            .get_or_create(&label(kind))
            .inc_by(repaired);
    }

    /// A check has ended now.
    pub fn drift_checked(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.drift_checked
            .set(now.map_or(0.0, |since| since.as_secs_f64()));
    }

    /// Another process checks, or none: nothing that this one saw counts any more.
    pub fn drift_unchecked(&self) {
        self.drift_checked.set(0.0);
    }
}
