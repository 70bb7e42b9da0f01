//! Asks for the engine's health: seldom while all is well, often while the breaker is open, since only health closes it.

use crate::error::{Error, Result};
use crate::gate::Gate;
use async_trait::async_trait;
use leasehold_core::breaker::BreakerState;
use leasehold_engine::Engine;
use leasehold_service::{Next, Service};
use std::sync::Arc;
use std::time::Duration;

/// How often the engine's health is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProberOptions {
    /// While all is well.
    pub interval: Duration,
    /// While the breaker is open.
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

/// How long an engine that says it is well, but does not start anything, is left alone at most.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Feeds the breaker with the engine's health.
pub struct Prober {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    options: ProberOptions,
}

impl Prober {
    /// A prober of this engine.
    pub fn new(engine: Arc<dyn Engine>, gate: Arc<Gate>, options: ProberOptions) -> Self {
        Self {
            engine,
            gate,
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
        let open = self.gate.state() == BreakerState::Open;
        let rest = self.gate.rest(
            self.options.interval_when_open,
            self.options.interval.max(LONGEST_REST),
        );
        if open && !rest.is_zero() {
            return Ok(Next::After(rest));
        }
        let health = self.engine.health().await;
        self.gate.probed(health.map_err(|error| error.to_string()));
        Ok(Next::After(match self.gate.state() {
            BreakerState::Open => self.options.interval_when_open,
            BreakerState::Closed { .. } | BreakerState::Recovering { .. } => self.options.interval,
        }))
    }

    async fn woken(&self) {
        self.gate.shut().await;
    }
}
