//! Notifications in the model. Knows no state.

use super::Model;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::notification::{Notification, NotificationStore};
use tokio::sync::Notify;

/// One notifier per kind; a notification without a waiter is stored.
#[derive(Default)]
pub(super) struct Notifiers {
    work: Notify,
    cancel: Notify,
    ended: Notify,
}

impl Notifiers {
    fn of(&self, kind: Notification) -> &Notify {
        match kind {
            Notification::Work => &self.work,
            Notification::Cancel => &self.cancel,
            Notification::Ended => &self.ended,
        }
    }

    pub(super) fn notify(&self, kind: Notification) {
        self.of(kind).notify_one();
    }

    pub(super) fn notify_work(&self, any: bool) {
        if any {
            self.notify(Notification::Work);
        }
    }

    pub(super) async fn wait(&self, kind: Notification) {
        self.of(kind).notified().await;
    }
}

#[async_trait]
impl NotificationStore for Model {
    async fn notification_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn notification_wait(&self, kind: Notification) {
        self.notifiers.wait(kind).await;
    }

    async fn notify(&self, kind: Notification) -> Result<()> {
        self.notifiers.notify(kind);
        Ok(())
    }
}
