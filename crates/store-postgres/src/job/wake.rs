//! The bell of those who wait for jobs: rung by this process at once, by others through the listener. Knows no SQL.

use crate::listener::{Ear, Listener};
use crate::pool::Address;
use leasehold_store::sql;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The bell itself: a number that rises with each ring.
#[derive(Debug)]
struct Bell {
    rings: watch::Sender<u64>,
    /// Whether everybody who brings jobs notifies us.
    armed: AtomicBool,
}

impl Ear for Bell {
    const FOR: &'static str = "jobs";
    const LISTEN: &'static str = sql!("wake/job_listen");
    const ARM: &'static str = sql!("wake/job_arm");
    const ASK: Duration = Duration::from_millis(250);
    /// It would be in the way of the claim that comes now.
    const STANDS_UP_AT_ONCE: bool = false;

    fn is_for_sleeper(&self, _: &str) -> bool {
        true
    }

    fn ring_for(&self, _: &str) {
        self.ring_sleeper();
    }

    fn ring_sleeper(&self) {
        self.rings.send_modify(|rings| *rings += 1);
    }

    fn ring_all(&self) {
        self.ring_sleeper();
    }

    fn armed(&self) -> &AtomicBool {
        &self.armed
    }

    /// Whether somebody is left who could hear it.
    fn is_needed(&self) -> bool {
        self.rings.receiver_count() > 0
    }
}

/// The wake-ups for jobs; clones of a store share them.
pub(crate) struct JobWakes {
    bell: Arc<Bell>,
    listener: Listener<Bell>,
    /// Whether a limit kept a claim of this process from more.
    held_back: AtomicBool,
}

impl fmt::Debug for JobWakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobWakes").finish_non_exhaustive()
    }
}

impl JobWakes {
    pub(crate) fn new(address: Option<Address>) -> Self {
        let (rings, _) = watch::channel(0);
        let bell = Arc::new(Bell {
            rings,
            armed: AtomicBool::new(false),
        });
        Self {
            listener: Listener::new(Arc::clone(&bell), address),
            bell,
            held_back: AtomicBool::new(false),
        }
    }

    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.rings.subscribe()
    }

    pub(crate) fn ring(&self) {
        self.bell.ring_sleeper();
    }

    pub(crate) fn held_back(&self) {
        self.held_back.store(true, Ordering::Relaxed);
    }

    /// Jobs ended: that is news to whoever a limit held back, or where they are queued again.
    pub(crate) fn finished(&self, queued: bool) {
        if self.held_back.swap(false, Ordering::Relaxed) || queued {
            self.ring();
        }
    }

    /// Somebody found jobs and is awake: where it is the only one, nobody need notify it.
    pub(crate) fn awake(&self) {
        if self.bell.rings.receiver_count() == 1 {
            self.listener.disarm();
        }
    }

    pub(crate) async fn arm(&self) -> bool {
        self.listener.arm().await
    }
}
