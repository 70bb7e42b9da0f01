//! Notifications of new jobs: from this process at once, from other processes through the listener. Knows no SQL.

use crate::listener::{Listener, NotificationHandler};
use crate::pool::Address;
use leasehold_store::sql;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A counter that rises with each notification; subscribers watch it. Coalesces notifications: a subscriber sees only the latest count.
#[derive(Debug)]
struct JobSignal {
    count: watch::Sender<u64>,
    /// Whether other processes notify this one of new jobs.
    armed: AtomicBool,
}

impl NotificationHandler for JobSignal {
    const CHANNEL: &'static str = "leasehold_job";
    const LISTEN: &'static str = sql!("notification/listen_jobs");
    const ARM: &'static str = sql!("notification/arm_jobs");
    const CHECK_INTERVAL: Duration = Duration::from_millis(250);
    /// Releasing at once would delay the claim that follows the notification.
    const RELEASES_WHEN_NOTIFIED: bool = false;

    fn is_for_waiter(&self, _: &str) -> bool {
        true
    }

    fn handle(&self, _: &str) {
        self.wake_waiter();
    }

    fn wake_waiter(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    fn wake_all(&self) {
        self.wake_waiter();
    }

    fn armed(&self) -> &AtomicBool {
        &self.armed
    }

    /// Whether there is a subscriber.
    fn is_needed(&self) -> bool {
        self.count.receiver_count() > 0
    }
}

/// The job notifications of a store; its clones share them.
pub(crate) struct JobNotifier {
    signal: Arc<JobSignal>,
    listener: Listener<JobSignal>,
    /// Whether a limit ended a claim of this process.
    is_limited: AtomicBool,
}

impl fmt::Debug for JobNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobNotifier").finish_non_exhaustive()
    }
}

impl JobNotifier {
    pub(crate) fn new(address: Option<Address>) -> Self {
        let (count, _) = watch::channel(0);
        let signal = Arc::new(JobSignal {
            count,
            armed: AtomicBool::new(false),
        });
        Self {
            listener: Listener::new(Arc::clone(&signal), address),
            signal,
            is_limited: AtomicBool::new(false),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.signal.count.subscribe()
    }

    /// Wakes the subscribers of this process. Other processes are notified by the SQL statement itself.
    pub(crate) fn wake(&self) {
        self.signal.wake_waiter();
    }

    /// A limit ended a claim: the next finished job makes room.
    pub(crate) fn limit_reached(&self) {
        self.is_limited.store(true, Ordering::Relaxed);
    }

    /// Jobs ended: wakes subscribers if a limit had ended a claim, or if jobs went back to their queue.
    pub(crate) fn finished(&self, queued: bool) {
        if self.is_limited.swap(false, Ordering::Relaxed) || queued {
            self.wake();
        }
    }

    /// A claim found jobs: if its worker is the only subscriber, nothing needs to be notified.
    pub(crate) fn jobs_found(&self) {
        if self.signal.count.receiver_count() == 1 {
            self.listener.disarm();
        }
    }

    pub(crate) async fn arm(&self) -> bool {
        self.listener.arm().await
    }
}
