//! Compares the engine with the one that the store has recorded: executions of another engine must not count as lost, and none may start there.

use crate::circuit_breaker::CircuitBreaker;
use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::{EngineIdentity, Timestamp};
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::installation::RecordedEngine;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};

/// Time between comparisons. After a replacement of the engine an instance with the old settings notices within this time, far less than
/// [`ENGINE_REPLACEMENT_GRACE`](leasehold_store::installation::ENGINE_REPLACEMENT_GRACE).
const INTERVAL: Duration = Duration::from_secs(30);

/// The engine compared with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineComparison {
    /// It has the executions that the store has.
    Same,
    /// It has other executions than the store. The text names both engines and the remedy.
    Other(String),
}

/// Compares the engine with the recorded one. Records it if there is none, or if no execution is RUNNING.
///
/// # Errors
/// Fails if the engine or the store does not answer; then nothing is known.
pub async fn compare_engine(store: &dyn Store, engine: &dyn Engine) -> Result<EngineComparison> {
    record(store, &engine.identity().await?).await
}

async fn record(store: &dyn Store, identity: &EngineIdentity) -> Result<EngineComparison> {
    let before = store.engine_recorded().await?;
    let before = before.map(|recorded| recorded.identity);
    if before.as_ref() == Some(identity) {
        return Ok(EngineComparison::Same);
    }
    let recorded = store.engine_record(identity).await?;
    let comparison = compare(&recorded, identity);
    if comparison == EngineComparison::Same {
        match before {
            Some(before) if !before.has_same_executions(identity) => {
                tracing::warn!(%before, now = %identity, "engine replaced; no execution was running");
            }
            _ => tracing::info!(engine = %identity, "engine recorded"),
        }
    }
    Ok(comparison)
}

fn compare(recorded: &RecordedEngine, identity: &EngineIdentity) -> EngineComparison {
    let recorded = &recorded.identity;
    if recorded.has_same_executions(identity) {
        return EngineComparison::Same;
    }
    EngineComparison::Other(format!(
        "the store has the executions of {recorded}, but the settings lead to {identity}, which does not know them; \
         start with the settings of the recorded engine until they have ended; if it is gone, see docs/operations/recovery.md"
    ))
}

/// What a comparison permits the full sweep and the drift checker.
pub(crate) enum LostScope {
    /// Unknown executions that were admitted from then on are lost; of older ones it is not certain that this engine started them.
    From(Timestamp),
    /// No engine is recorded.
    Uncertain,
    /// It is another engine: that it does not know an execution says nothing.
    Nothing,
}

/// Reads which executions count as lost if the engine does not know them. Records nothing.
pub(crate) async fn lost_scope(store: &dyn Store, engine: &dyn Engine) -> Result<LostScope> {
    let identity = engine.identity().await?;
    Ok(match store.engine_recorded().await? {
        None => LostScope::Uncertain,
        Some(recorded) if recorded.identity.has_same_executions(&identity) => {
            LostScope::From(recorded.certain_from)
        }
        Some(_) => LostScope::Nothing,
    })
}

/// Compares the engine again and again: holds the circuit breaker until it is the recorded one, and reports when it is another.
pub(crate) struct EngineChecker {
    store: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    breaker: Arc<CircuitBreaker>,
    refusal: watch::Sender<Option<String>>,
    /// The engine in the last comparison that found it recorded.
    verified: Mutex<Option<EngineIdentity>>,
}

impl EngineChecker {
    /// Creates a checker, which holds the breaker.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        breaker: Arc<CircuitBreaker>,
        refusal: watch::Sender<Option<String>>,
    ) -> Self {
        breaker.hold();
        Self {
            store,
            engine,
            breaker,
            refusal,
            verified: Mutex::default(),
        }
    }

    /// An engine that was the recorded one has been replaced by another instance, so this one does not record it again.
    async fn compare(
        &self,
        identity: &EngineIdentity,
        is_verified: bool,
    ) -> Result<EngineComparison> {
        if is_verified && let Some(recorded) = self.store.engine_recorded().await? {
            return Ok(compare(&recorded, identity));
        }
        record(&*self.store, identity).await
    }
}

#[async_trait]
impl Service for EngineChecker {
    type Error = Error;

    fn name(&self) -> &'static str {
        "engine checker"
    }

    async fn run_once(&self) -> Result<Next> {
        let mut verified = self.verified.lock().await;
        let identity = self.engine.identity().await?;
        let is_verified = verified.as_ref() == Some(&identity);
        match self.compare(&identity, is_verified).await? {
            EngineComparison::Same => {
                *verified = Some(identity);
                self.breaker.release();
            }
            EngineComparison::Other(reason) => {
                self.breaker.hold();
                self.refusal.send_replace(Some(reason));
            }
        }
        Ok(Next::After(INTERVAL))
    }
}
