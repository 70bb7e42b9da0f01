//! The bells of the model: what others would notice, a sleeper hears. Knows no store.

use leasehold_store::wake::Wake;
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
