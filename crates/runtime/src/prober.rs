//! Checks the engine's health: rarely while the circuit breaker is closed, often while it is open, since only a healthy engine closes it.

use crate::circuit_breaker::CircuitBreaker;
use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_core::breaker::BreakerState;
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use std::sync::Arc;
use std::time::Duration;

/// How often the prober checks the engine's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProberOptions {
    /// Time between checks while the breaker is closed.
    pub interval: Duration,
    /// Time between checks while the breaker is open.
    pub interval_when_open: Duration,
}

impl Default for ProberOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            interval_when_open: Duration::from_secs(1),
        }
    }
}

/// The longest time between checks of an engine that reports healthy but starts nothing.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Checks the engine's health and reports it to the circuit breaker.
pub struct Prober {
    engine: Arc<dyn Engine>,
    breaker: Arc<CircuitBreaker>,
    options: ProberOptions,
}

impl Prober {
    /// Creates a prober of this engine.
    pub fn new(
        engine: Arc<dyn Engine>,
        breaker: Arc<CircuitBreaker>,
        options: ProberOptions,
    ) -> Self {
        Self {
            engine,
            breaker,
            options,
        }
    }
}

#[async_trait]
impl Service for Prober {
    type Error = Error;

    fn name(&self) -> &'static str {
        "prober"
    }

    async fn run_once(&self) -> Result<Next> {
        let is_open = self.breaker.state() == BreakerState::Open;
        let delay = self.breaker.probe_delay(
            self.options.interval_when_open,
            self.options.interval.max(MAX_PROBE_INTERVAL),
        );
        if is_open && !delay.is_zero() {
            return Ok(Next::After(delay));
        }
        let health = self.engine.health().await;
        self.breaker
            .record_health(health.map_err(|error| error.cause().to_owned()));
        Ok(Next::After(match self.breaker.state() {
            BreakerState::Open => self.options.interval_when_open,
            BreakerState::Closed | BreakerState::Recovering { .. } => self.options.interval,
        }))
    }

    async fn woken(&self) {
        self.breaker.health_check_due().await;
    }
}
