//! The installation: what all processes that use a store have in common.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::{EngineIdentity, Timestamp};
use std::time::Duration;

store_trait! {
    /// The installation.
    pub trait InstallationStore, observed by InstallationObserver {
        /// Returns the installation's secret: random bytes that never change and that every process sees. If there is none yet, `fresh` becomes the
        /// secret; of concurrent calls, one decides it for all.
        async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]>;

        /// Records the engine and returns the recorded one. If one with other executions is recorded and an execution is RUNNING, that one stays.
        async fn engine_record(&self, engine: &EngineIdentity) -> Result<RecordedEngine>;

        /// Returns the recorded engine; none before the first call of [`Self::engine_record`].
        async fn engine_recorded(&self) -> Result<Option<RecordedEngine>>;
    }
}

/// After an engine replaced another, an instance with the old settings may start executions in the old engine for this long: longer than it takes to
/// notice.
pub const ENGINE_REPLACEMENT_GRACE: Duration = Duration::from_secs(5 * 60);

/// The engine whose executions the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEngine {
    /// Its identity.
    pub identity: EngineIdentity,
    /// When it was first recorded.
    pub recorded_at: Timestamp,
    /// Executions that were admitted from then on were started in this engine for certain. If it replaced another,
    /// [`ENGINE_REPLACEMENT_GRACE`] after `recorded_at`.
    pub certain_from: Timestamp,
}
