//! Says now and then that this instance is there, and that it leaves. Knows nothing of what it does.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::instance::InstanceBeat;
use std::sync::Arc;
use std::time::Duration;

/// What an instance says of itself, and how often.
#[derive(Clone, Debug)]
pub struct BeaconOptions {
    /// The program's version.
    pub version: String,
    /// Where its API listens.
    pub listens: Option<String>,
    /// How often to say so.
    pub interval: Duration,
    /// How long an instance that fell silent is remembered: long enough for whoever is woken by its end to see that it was there.
    pub forget_after: Duration,
}

impl Default for BeaconOptions {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listens: None,
            interval: Duration::from_secs(5),
            forget_after: Duration::from_secs(60 * 60),
        }
    }
}

/// Shows that an instance lives.
pub struct Beacon {
    store: Arc<dyn Store>,
    beat: InstanceBeat,
    options: BeaconOptions,
}

impl Beacon {
    /// A beacon of the instance called `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        owner: &str,
        dispatches: bool,
        options: BeaconOptions,
    ) -> Self {
        Self {
            beat: InstanceBeat {
                id: owner.to_owned(),
                version: options.version.clone(),
                dispatches,
                listens: options.listens.clone(),
            },
            store,
            options,
        }
    }
}

#[async_trait]
impl Service for Beacon {
    type Error = Error;

    fn name(&self) -> &'static str {
        "beacon"
    }

    async fn run_once(&self) -> Result<Next> {
        let forget_after = self.options.forget_after;
        self.store.instance_beat(&self.beat, forget_after).await?;
        Ok(Next::After(self.options.interval))
    }

    async fn stopped(&self) {
        if let Err(error) = self.store.instance_leave(&self.beat.id).await {
            tracing::debug!(%error, "the instance could not say that it leaves; it is forgotten in time");
        }
    }
}
