//! Tells the engine of wishes to cancel what runs. The request ends when the engine says that its execution has ended.

use crate::error::Result;
use crate::service::{Next, Service};
use async_trait::async_trait;
use futures::StreamExt;
use leasehold_engine::{Engine, Told};
use leasehold_store::Store;
use leasehold_store::request::CancelWish;
use leasehold_store::wake::Wake;
use std::sync::Arc;
use std::time::Duration;

/// How wishes are delivered.
#[derive(Clone, Debug)]
pub struct CancellerOptions {
    /// How often to look without being woken.
    pub interval: Duration,
    /// How many wishes one round delivers.
    pub batch: u32,
    /// How many are under way at once.
    pub concurrency: usize,
}

impl Default for CancellerOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            batch: 200,
            concurrency: 16,
        }
    }
}

/// Delivers wishes to cancel.
pub struct Canceller {
    store: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    options: CancellerOptions,
}

impl Canceller {
    /// A canceller for this engine.
    pub fn new(store: Arc<dyn Store>, engine: Arc<dyn Engine>, options: CancellerOptions) -> Self {
        Self {
            store,
            engine,
            options,
        }
    }

    async fn deliver(&self, wish: CancelWish) -> leasehold_engine::Result<CancelWish> {
        let reason = "cancelled through Leasehold";
        let told = if wish.force {
            self.engine.terminate(wish.execution, reason).await?
        } else {
            self.engine.cancel(wish.execution, reason).await?
        };
        match told {
            Told::Told => {
                tracing::info!(request = %wish.request, execution = %wish.execution, force = wish.force,
                "cancellation delivered to the engine")
            }
            Told::NotFound => tracing::warn!(request = %wish.request, execution = %wish.execution,
                "the engine does not know the execution to cancel; following will find out"),
        }
        Ok(wish)
    }
}

#[async_trait]
impl Service for Canceller {
    fn name(&self) -> &'static str {
        "canceller"
    }

    async fn run_once(&self) -> Result<Next> {
        let wishes = self.store.request_cancel_list(self.options.batch).await?;
        let full = wishes.len() >= self.options.batch as usize;
        let answers: Vec<_> = futures::stream::iter(wishes)
            .map(|wish| self.deliver(wish))
            .buffer_unordered(self.options.concurrency.max(1))
            .collect()
            .await;
        let mut told = Vec::new();
        let mut failed = None;
        for answer in answers {
            match answer {
                Ok(wish) => told.push(wish),
                Err(error) => failed = Some(error),
            }
        }
        if !told.is_empty() {
            self.store.request_cancel_told(&told).await?;
            self.store.wake_ring(Wake::Ended).await?;
        }
        match failed {
            Some(error) => Err(error.into()),
            None if full => Ok(Next::Again),
            None => Ok(Next::After(self.options.interval)),
        }
    }

    async fn woken(&self) {
        self.store.wake_wait(Wake::Cancel).await;
    }
}
