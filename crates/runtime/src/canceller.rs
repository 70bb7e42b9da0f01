//! Tells the engine of wishes to cancel what runs. The request ends when the engine says that its execution has ended.

use crate::error::{Error, Result};
use async_trait::async_trait;
use futures::StreamExt;
use leasehold_engine::{Engine, Told};
use leasehold_service::{Next, Service};
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

    /// Delivers one wish and takes note of it, whatever becomes of the others.
    async fn deliver(&self, wish: CancelWish) -> Result<()> {
        let reason = "cancelled through Leasehold";
        let told = if wish.force {
            self.engine.terminate(wish.execution, reason).await?
        } else {
            self.engine.cancel(wish.execution, reason).await?
        };
        match told {
            Told::Told => {
                tracing::info!(request = %wish.request, execution = %wish.execution, force = wish.force,
                    "cancellation delivered to the engine");
            }
            Told::NotFound => {
                tracing::warn!(request = %wish.request, execution = %wish.execution,
                    "the engine does not know the execution to cancel; following will find out");
            }
        }
        self.store.request_cancel_told(&[wish]).await?;
        Ok(())
    }
}

#[async_trait]
impl Service for Canceller {
    type Error = Error;

    fn name(&self) -> &'static str {
        "canceller"
    }

    async fn run_once(&self) -> Result<Next> {
        let wishes = self.store.request_cancel_list(self.options.batch).await?;
        let full = wishes.len() >= self.options.batch as usize;
        let any = !wishes.is_empty();
        let answers: Vec<_> = futures::stream::iter(wishes)
            .map(|wish| self.deliver(wish))
            .buffer_unordered(self.options.concurrency.max(1))
            .collect()
            .await;
        if any {
            self.store.wake_ring(Wake::Ended).await?;
        }
        match answers.into_iter().find_map(Result::err) {
            Some(error) => Err(error),
            None if full => Ok(Next::Again),
            None => Ok(Next::After(self.options.interval)),
        }
    }

    async fn woken(&self) {
        self.store.wake_wait(Wake::Cancel).await;
    }
}
