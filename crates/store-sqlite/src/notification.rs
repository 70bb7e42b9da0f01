//! Notifications to waiting services and workers. One process owns the file, so all of them are in this process. Knows no table.

use crate::SqliteStore;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::notification::{Notification, NotificationStore};
use tokio::sync::{Notify, watch};

/// Whom an operation notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotifyTarget {
    /// The service that waits for this notification.
    Service(Notification),
    /// Every worker: there may be a job to claim.
    Workers,
}

impl From<Notification> for NotifyTarget {
    fn from(notification: Notification) -> Self {
        Self::Service(notification)
    }
}

/// One notifier for each kind of notification. Coalesces notifications: those without a waiter are stored as one for the next waiter.
#[derive(Default)]
pub(crate) struct Notifiers {
    work: Notify,
    cancel: Notify,
    ended: Notify,
    workers: watch::Sender<u64>,
}

impl Notifiers {
    fn of(&self, notification: Notification) -> &Notify {
        match notification {
            Notification::Work => &self.work,
            Notification::Cancel => &self.cancel,
            Notification::Ended => &self.ended,
        }
    }

    pub(crate) fn notify(&self, target: impl Into<NotifyTarget>) {
        match target.into() {
            NotifyTarget::Service(notification) => self.of(notification).notify_one(),
            NotifyTarget::Workers => self.workers.send_modify(|count| *count += 1),
        }
    }

    /// Subscribes to the number of notifications sent to workers.
    pub(crate) fn subscribe_workers(&self) -> watch::Receiver<u64> {
        self.workers.subscribe()
    }

    pub(crate) async fn wait(&self, notification: Notification) {
        self.of(notification).notified().await;
    }
}

#[async_trait]
impl NotificationStore for SqliteStore {
    async fn notification_arm(&self) -> Result<bool> {
        Ok(true)
    }

    async fn notification_wait(&self, notification: Notification) {
        self.writer.notifiers().wait(notification).await;
    }

    async fn notify(&self, notification: Notification) -> Result<()> {
        self.writer.notifiers().notify(notification);
        Ok(())
    }
}
