//! Registers this instance with heartbeats while it runs, and deregisters it when it stops. A heartbeat also finds out that a newer program has
//! migrated the schema and this one must stop. Knows nothing of its other services.

use crate::error::{Error, Result};
use async_trait::async_trait;
use leasehold_service::{Next, Service};
use leasehold_store::instance::{HeartbeatRecorded, InstanceHeartbeat};
use leasehold_store::{Store, schema_refusal};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest time between heartbeats: an instance must notice within five seconds that it is too old for the schema.
pub const HEARTBEAT_INTERVAL_MAX: Duration = Duration::from_secs(4);

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
            interval: HEARTBEAT_INTERVAL_MAX,
            forget_after: Duration::from_secs(60 * 60),
        }
    }
}

/// Sends the heartbeats of an instance.
pub struct HeartbeatService {
    store: Arc<dyn Store>,
    heartbeat: InstanceHeartbeat,
    options: HeartbeatOptions,
    schema_refusal: watch::Sender<Option<String>>,
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
            schema_refusal: watch::Sender::new(None),
        }
    }

    /// Returns where the service reports why this program may no longer use the schema.
    pub fn schema_refusal(&self) -> watch::Receiver<Option<String>> {
        self.schema_refusal.subscribe()
    }

    /// Reads the schema, and reports if this program may not use it.
    async fn check_schema(&self) -> Result<()> {
        let refusal = schema_refusal(&self.store.schema_status().await?);
        if refusal.is_some() {
            self.schema_refusal.send_replace(refusal);
        }
        Ok(())
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
        let recorded = self.store.instance_heartbeat(&self.heartbeat, forget_after);
        match recorded.await {
            Ok(HeartbeatRecorded::Compatible) => {}
            Ok(HeartbeatRecorded::SchemaTooNew) => self.check_schema().await?,
            Err(error) => {
                // The statement may fail because a newer program has changed the table.
                if !error.is_retryable() {
                    self.check_schema().await?;
                }
                return Err(error.into());
            }
        }
        Ok(Next::After(self.options.interval))
    }

    async fn stopped(&self) {
        if let Err(error) = self.store.instance_deregister(&self.heartbeat.id).await {
            tracing::debug!(%error, "failed to deregister the instance; it is removed later");
        }
    }
}
