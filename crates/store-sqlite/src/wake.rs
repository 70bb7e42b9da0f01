//! The bells that sleepers wait on. The file belongs to this process, so nobody else has anything to ring for. Knows no table.

use crate::SqliteStore;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::wake::{Wake, WakeStore};
use tokio::sync::{Notify, watch};

/// What an operation may ring for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// For the one that sleeps for this.
    One(Wake),
    /// For every worker: there may be a job to claim.
    Workers,
}

impl From<Wake> for Ring {
    fn from(wake: Wake) -> Self {
        Self::One(wake)
    }
}

/// One bell a kind; a ring that nobody waits for is kept.
#[derive(Default)]
pub(crate) struct Bells {
    work: Notify,
    cancel: Notify,
    ended: Notify,
    workers: watch::Sender<u64>,
}

impl Bells {
    fn of(&self, wake: Wake) -> &Notify {
        match wake {
            Wake::Work => &self.work,
            Wake::Cancel => &self.cancel,
            Wake::Ended => &self.ended,
        }
    }

    pub(crate) fn ring(&self, ring: impl Into<Ring>) {
        match ring.into() {
            Ring::One(wake) => self.of(wake).notify_one(),
            Ring::Workers => self.workers.send_modify(|rings| *rings += 1),
        }
    }

    /// The number of rings for workers so far, which they watch.
    pub(crate) fn workers(&self) -> watch::Receiver<u64> {
        self.workers.subscribe()
    }

    pub(crate) async fn wait(&self, wake: Wake) {
        self.of(wake).notified().await;
    }
}

#[async_trait]
impl WakeStore for SqliteStore {
    async fn wake_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.writer.bells().wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.writer.bells().ring(wake);
        Ok(())
    }
}
