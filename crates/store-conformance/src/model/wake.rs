//! The bells of the model: what others would notice, a sleeper hears. Knows no map.

use super::Model;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::wake::{Wake, WakeStore};
use tokio::sync::Notify;

/// One bell a kind; a ring that nobody waits for is kept.
#[derive(Default)]
pub(super) struct Bells {
    work: Notify,
    cancel: Notify,
    ended: Notify,
}

impl Bells {
    fn of(&self, wake: Wake) -> &Notify {
        match wake {
            Wake::Work => &self.work,
            Wake::Cancel => &self.cancel,
            Wake::Ended => &self.ended,
        }
    }

    pub(super) fn ring(&self, wake: Wake) {
        self.of(wake).notify_one();
    }

    pub(super) fn ring_for_work(&self, any: bool) {
        if any {
            self.ring(Wake::Work);
        }
    }

    pub(super) async fn wait(&self, wake: Wake) {
        self.of(wake).notified().await;
    }
}

#[async_trait]
impl WakeStore for Model {
    async fn wake_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.bells.wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.bells.ring(wake);
        Ok(())
    }
}
