//! In-process signals that the services wait for, and their delivery from other processes through the listener. Knows no SQL.

use crate::listener::{Listener, NotificationHandler};
use crate::pool::Address;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::notification::{Notification, NotificationStore};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// One signal for each kind of notification. Coalesces notifications: signals that are sent while nothing waits are kept as one for the
/// next waiter.
#[derive(Default)]
pub(crate) struct ServiceSignals {
    work: Notify,
    cancel: Notify,
    ended: Notify,
    /// Whether other processes notify this one of new work.
    armed: AtomicBool,
    waiters: AtomicUsize,
    was_active: AtomicBool,
}

impl ServiceSignals {
    fn of(&self, kind: Notification) -> &Notify {
        match kind {
            Notification::Work => &self.work,
            Notification::Cancel => &self.cancel,
            Notification::Ended => &self.ended,
        }
    }

    fn send(&self, kind: Notification) {
        self.of(kind).notify_one();
    }

    fn has_waiter(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Records that a dispatcher waits for work, or is about to.
    fn mark_active(&self) {
        self.was_active.store(true, Ordering::Relaxed);
    }
}

fn parse(payload: &str) -> Option<Notification> {
    Notification::ALL
        .into_iter()
        .find(|kind| kind.as_str() == payload)
}

impl NotificationHandler for ServiceSignals {
    const CHANNEL: &'static str = "leasehold";
    const LISTEN: &'static str = sql!("notification/listen");
    const ARM: &'static str = sql!("notification/arm");
    /// The waiter lock is released after at most twice this time without a waiter: the dispatcher may have stopped.
    const CHECK_INTERVAL: Duration = Duration::from_secs(5);
    /// The dispatcher arms again before it waits.
    const RELEASES_WHEN_NOTIFIED: bool = true;

    fn is_for_waiter(&self, payload: &str) -> bool {
        parse(payload) == Some(Notification::Work)
    }

    fn handle(&self, payload: &str) {
        if let Some(kind) = parse(payload) {
            self.send(kind);
        }
    }

    fn wake_waiter(&self) {
        self.send(Notification::Work);
    }

    fn wake_all(&self) {
        Notification::ALL
            .into_iter()
            .for_each(|kind| self.send(kind));
    }

    fn armed(&self) -> &AtomicBool {
        &self.armed
    }

    /// Whether a dispatcher waits for work, or did since the last check.
    fn is_needed(&self) -> bool {
        self.was_active.swap(false, Ordering::Relaxed) || self.has_waiter()
    }
}

/// Counts a waiter for work until it is dropped.
struct WaiterGuard<'a>(&'a ServiceSignals);

impl<'a> WaiterGuard<'a> {
    fn new(signals: &'a ServiceSignals) -> Self {
        signals.waiters.fetch_add(1, Ordering::Relaxed);
        Self(signals)
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.0.mark_active();
        self.0.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The notifications of a store; its clones share them.
pub(crate) struct Notifier {
    signals: Arc<ServiceSignals>,
    listener: Listener<ServiceSignals>,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

impl Notifier {
    pub(crate) fn new(address: Option<Address>) -> Self {
        let signals = Arc::<ServiceSignals>::default();
        Self {
            listener: Listener::new(Arc::clone(&signals), address),
            signals,
        }
    }

    /// Wakes the waiter of this process. Other processes are notified by the SQL statement itself.
    pub(crate) fn wake(&self, kind: Notification) {
        self.signals.send(kind);
    }

    /// Wakes the dispatcher of this process if there is new work.
    pub(crate) fn wake_for_work(&self, is_new: bool) {
        if is_new {
            self.wake(Notification::Work);
        }
    }

    pub(crate) async fn wait(&self, kind: Notification) {
        self.listener.start();
        let _counted = (kind == Notification::Work).then(|| WaiterGuard::new(&self.signals));
        self.signals.of(kind).notified().await;
    }

    pub(crate) async fn arm(&self) -> bool {
        self.signals.mark_active();
        self.listener.arm().await
    }

    /// A claim found work: unless another dispatcher of this process waits, nothing needs to be notified.
    pub(crate) fn work_found(&self) {
        if !self.signals.has_waiter() {
            self.listener.disarm();
        }
    }
}

#[async_trait]
impl NotificationStore for PostgresStore {
    async fn notification_arm(&self) -> Result<bool> {
        Ok(self.notifier.arm().await)
    }

    async fn notification_wait(&self, kind: Notification) {
        self.notifier.wait(kind).await;
    }

    async fn notify(&self, kind: Notification) -> Result<()> {
        self.notifier.wake(kind);
        let context = "notify";
        self.execute(context, sql!("notification/notify"), &[&kind.as_str()])
            .await
            .map(drop)
    }
}
