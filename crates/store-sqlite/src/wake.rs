//! The bells that sleepers wait on. The file belongs to this process, so nobody else has anything to ring for. Knows no table.

use leasehold_store::wake::Wake;
use tokio::sync::Notify;

/// One bell a kind; a ring that nobody waits for is kept.
#[derive(Default)]
pub(crate) struct Bells {
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

    pub(crate) fn ring(&self, wake: Wake) {
        self.of(wake).notify_one();
    }

    pub(crate) async fn wait(&self, wake: Wake) {
        self.of(wake).notified().await;
    }
}
