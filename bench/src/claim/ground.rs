//! What both stores must offer to be measured alike. Knows no database.

use super::fill::Fill;
use anyhow::Result;
use async_trait::async_trait;
use leasehold_store::Store;
use std::sync::Arc;

/// A throwaway database to measure on.
#[async_trait]
pub(crate) trait Ground: Send {
    /// The store's name in the results.
    fn name(&self) -> &'static str;

    /// The store and its settings, for a reader.
    fn title(&self) -> &'static str;

    /// What a cost counts.
    fn unit(&self) -> &'static str;

    /// Begins anew with a database of its own that holds just this.
    async fn fill(&mut self, fill: &Fill) -> Result<()>;

    /// Opens what was filled for that many claimers; costs count from here.
    async fn open(&mut self, claimers: usize) -> Result<Box<dyn Opened>>;

    /// Holds on to what the database shows now, as a long report would, until it is filled anew.
    async fn pin(&mut self) -> Result<()>;
}

/// A store that is being measured.
#[async_trait]
pub(crate) trait Opened: Send + Sync {
    /// The store, to claim from.
    fn store(&self) -> Arc<dyn Store>;

    /// Called by each claimer right after its claim.
    fn claimed(&self);

    /// Closes the store and says what each of the admitted requests cost.
    async fn close(self: Box<Self>, admitted: u32) -> Result<f64>;
}
