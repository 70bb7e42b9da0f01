//! The bell of those who wait for jobs: rung by this process at once, by others through the listener. Knows no SQL.

use super::listener::{self, Order};
use crate::pool::Address;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// Connecting and waiting for open transactions together; a sleeper that is not armed by then looks from time to time.
const ARM_AT_MOST: Duration = Duration::from_secs(3);

/// The bell itself: a number that rises with each ring.
#[derive(Debug)]
pub(crate) struct Bell {
    rings: watch::Sender<u64>,
    /// Whether everybody who brings jobs notifies us.
    pub(super) armed: AtomicBool,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.rings.send_modify(|rings| *rings += 1);
    }

    /// Whether nobody is left who could hear it.
    pub(super) fn is_unheard(&self) -> bool {
        self.rings.receiver_count() == 0
    }
}

/// The wake-ups for jobs; clones of a store share them.
pub(crate) struct JobWakes {
    bell: Arc<Bell>,
    /// Where to listen; none where only this process is heard.
    address: Option<Address>,
    listener: Mutex<Option<mpsc::UnboundedSender<Order>>>,
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
        Self {
            bell: Arc::new(Bell {
                rings,
                armed: AtomicBool::new(false),
            }),
            address,
            listener: Mutex::default(),
            held_back: AtomicBool::new(false),
        }
    }

    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.rings.subscribe()
    }

    pub(crate) fn ring(&self) {
        self.bell.ring();
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
        if self.bell.rings.receiver_count() == 1
            && self.bell.armed.swap(false, Ordering::Relaxed)
            && let Some(orders) = self.listener()
        {
            // If the listener has ended it holds nothing.
            let _ = orders.send(Order::Disarm);
        }
    }

    pub(crate) async fn arm(&self) -> bool {
        let Some(orders) = self.listener() else {
            return false;
        };
        let (reply, answer) = oneshot::channel();
        if orders.send(Order::Arm(reply)).is_err() {
            return false;
        }
        matches!(timeout(ARM_AT_MOST, answer).await, Ok(Ok(true)))
    }

    /// The way to the listener, which is started where it does not run: at first, or after its runtime ended.
    fn listener(&self) -> Option<mpsc::UnboundedSender<Order>> {
        let address = self.address.as_ref()?;
        let mut kept = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = kept.as_ref().filter(|orders| !orders.is_closed()) {
            return Some(orders.clone());
        }
        let (orders, taken) = mpsc::unbounded_channel();
        tokio::spawn(listener::run(
            address.clone(),
            Arc::clone(&self.bell),
            taken,
        ));
        *kept = Some(orders.clone());
        Some(orders)
    }
}
