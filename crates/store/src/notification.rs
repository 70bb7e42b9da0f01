//! Notifications: they wake a service before its next poll. Nothing depends on them: every service also polls from time to time.

use crate::Result;
use crate::store_trait::store_trait;

store_trait! {
    /// Notifications of the services.
    pub trait NotificationStore, observed by NotificationObserver {
        /// Requests a [`Notification::Work`] for work that is committed from now on. Work that was committed before sends none, so the
        /// caller polls once more before it waits. Returns false if the store cannot deliver notifications now; then the
        /// caller relies on polling.
        async fn notification_arm(&self) -> Result<bool>;

        /// Notifies the waiters of this and of all other processes that use the store.
        async fn notify(&self, notification: Notification) -> Result<()>;
    }

    forwarded async {
        /// Waits for a notification. Notifications are coalesced: several may be merged into one. One that was sent while no caller
        /// waited is not lost. One waiter per kind.
        async fn notification_wait(&self, notification: Notification);
    }
}

/// What a notification announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notification {
    /// Requests may be admitted: a new request, a freed slot, a raised limit, a released claim.
    Work,
    /// A cancellation of a running execution was requested.
    Cancel,
    /// A worker reported that executions have ended.
    Ended,
}

impl Notification {
    /// Every kind.
    pub const ALL: [Notification; 3] = [Self::Work, Self::Cancel, Self::Ended];

    /// Returns the name it is sent under.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Cancel => "cancel",
            Self::Ended => "ended",
        }
    }
}
