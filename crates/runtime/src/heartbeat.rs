//! Registers this instance with heartbeats while it runs, and deregisters it when it stops. Knows nothing of its other services.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::Store;
use leasehold_store::instance::InstanceHeartbeat;
use std::sync::Arc;
use std::time::Duration;

/// What an instance registers about itself, and how often.
#[derive(Clone, Debug)]
pub struct HeartbeatOptions {
    /// The program's version.
    pub version: String,
    /// The address its API listens on.
    pub listens: Option<String>,
    /// Time between heartbeats.
    pub interval: Duration,
    /// How long an instance without heartbeats stays listed, so that an operator can still see it after it died.
    pub forget_after: Duration,
}

impl Default for HeartbeatOptions {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listens: None,
            interval: Duration::from_secs(5),
            forget_after: Duration::from_secs(60 * 60),
        }
    }
}

/// Sends the heartbeats of an instance.
pub struct HeartbeatService {
    store: Arc<dyn Store>,
    heartbeat: InstanceHeartbeat,
    options: HeartbeatOptions,
}

impl HeartbeatService {
    /// Creates the heartbeat service of the instance `owner`.
    pub fn new(
        store: Arc<dyn Store>,
        owner: &str,
        dispatches: bool,
        options: HeartbeatOptions,
    ) -> Self {
        Self {
            heartbeat: InstanceHeartbeat {
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
impl Service for HeartbeatService {
    type Error = Error;

    fn name(&self) -> &'static str {
        "heartbeat"
    }

    async fn run_once(&self) -> Result<Next> {
        let forget_after = self.options.forget_after;
        self.store
            .instance_heartbeat(&self.heartbeat, forget_after)
            .await?;
        Ok(Next::After(self.options.interval))
    }

    async fn stopped(&self) {
        if let Err(error) = self.store.instance_deregister(&self.heartbeat.id).await {
            tracing::debug!(%error, "failed to deregister the instance; it is removed later");
        }
    }
}
