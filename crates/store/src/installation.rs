//! The installation: what all processes that use a store have in common.

use crate::Result;
use crate::store_trait::store_trait;

store_trait! {
    /// The installation.
    pub trait InstallationStore, observed by InstallationObserver {
        /// Returns the installation's secret: random bytes that never change and that every process sees. If there is none yet, `fresh` becomes the
        /// secret; of concurrent calls, one decides it for all.
        async fn installation_secret(&self, fresh: &[u8; 32]) -> Result<[u8; 32]>;
    }
}
