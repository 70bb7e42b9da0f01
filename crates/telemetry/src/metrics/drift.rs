//! Drift metrics: unrepaired drift of the last check, and repairs. Knows the kinds, not what they mean.

use super::Metrics;
use super::catalog::FloatGauge;
use super::labels::Kind;
use leasehold_store::drift::DriftKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::time::{SystemTime, UNIX_EPOCH};

fn label(kind: DriftKind) -> Kind {
    Kind {
        kind: kind.as_str(),
    }
}

/// Creates the series of every kind at 0, so that the first increase is visible.
pub(super) fn create_series(
    unrepaired: &Family<Kind, FloatGauge>,
    repaired: &Family<Kind, Counter>,
) {
    for kind in DriftKind::ALL {
        unrepaired.get_or_create(&label(kind)).set(0.0);
        repaired.get_or_create(&label(kind)).inc_by(0);
    }
}

impl Metrics {
    /// Sets how many differences of a kind the last check found and did not repair.
    pub fn set_drift(&self, kind: DriftKind, differences: usize) {
        let count = u32::try_from(differences).unwrap_or(u32::MAX);
        self.drift.get_or_create(&label(kind)).set(f64::from(count));
    }

    /// Counts repaired differences of a kind.
    pub fn drift_repaired(&self, kind: DriftKind, differences: usize) {
        let repaired = u64::try_from(differences).unwrap_or(u64::MAX);
        self.drift_repaired
            .get_or_create(&label(kind))
            .inc_by(repaired);
    }

    /// Sets the time of the last check to now.
    pub fn drift_checked(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.drift_checked
            .set(now.map_or(0.0, |since| since.as_secs_f64()));
    }

    /// Clears the time of the last check, since another process checks.
    pub fn clear_drift_checked(&self) {
        self.drift_checked.set(0.0);
    }
}
