//! The bells that sleepers of this process wait on, and who may ring them. Knows no SQL; what other processes do comes
//! from the listener.

use crate::listener::{self, Order};
use crate::pool::Address;
use leasehold_store::wake::Wake;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

/// Connecting and waiting for open transactions together; a sleeper that is not armed by then looks from time to time.
const ARM_AT_MOST: Duration = Duration::from_secs(3);

/// One bell a kind; a ring that nobody waits for is kept.
#[derive(Default)]
pub(crate) struct Bells {
    work: Notify,
    cancel: Notify,
    ended: Notify,
    /// Whether everybody who creates work notifies us.
    pub(crate) armed: AtomicBool,
    sleepers: AtomicUsize,
    stirred: AtomicBool,
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

    fn has_sleeper(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody waits for work, or did since this was asked last.
    pub(crate) fn is_used(&self) -> bool {
        self.stirred.swap(false, Ordering::Relaxed) || self.has_sleeper()
    }

    /// Somebody is about to wait for work.
    pub(crate) fn stir(&self) {
        self.stirred.store(true, Ordering::Relaxed);
    }
}

/// Counted as long as it waits for work, however that ends.
struct Sleeper<'a>(&'a Bells);

impl<'a> Sleeper<'a> {
    fn new(bells: &'a Bells) -> Self {
        bells.sleepers.fetch_add(1, Ordering::Relaxed);
        Self(bells)
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.stir();
        self.0.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The wake-ups of a store; its clones share them.
pub(crate) struct Wakes {
    bells: Arc<Bells>,
    /// Where to listen; none where only this process is heard.
    address: Option<Address>,
    /// The listener ends when this does.
    listener: Mutex<Option<mpsc::UnboundedSender<Order>>>,
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").finish_non_exhaustive()
    }
}

impl Wakes {
    pub(crate) fn new(address: Option<Address>) -> Self {
        Self {
            bells: Arc::default(),
            address,
            listener: Mutex::default(),
        }
    }

    /// Wakes whoever waits in this process.
    pub(crate) fn ring(&self, wake: Wake) {
        self.bells.ring(wake);
    }

    /// Rings for work where there is any.
    pub(crate) fn ring_for_work(&self, any: bool) {
        if any {
            self.ring(Wake::Work);
        }
    }

    pub(crate) async fn wait(&self, wake: Wake) {
        self.listener();
        let _counted = (wake == Wake::Work).then(|| Sleeper::new(&self.bells));
        self.bells.of(wake).notified().await;
    }

    pub(crate) async fn arm(&self) -> bool {
        let Some(orders) = self.listener() else {
            return false;
        };
        self.bells.stir();
        let (reply, answer) = oneshot::channel();
        if orders.send(Order::Arm(reply)).is_err() {
            return false;
        }
        matches!(timeout(ARM_AT_MOST, answer).await, Ok(Ok(true)))
    }

    /// Somebody found work and is awake: while it is, nobody need notify it.
    pub(crate) fn awake(&self) {
        if !self.bells.has_sleeper()
            && self.bells.armed.swap(false, Ordering::Relaxed)
            && let Some(orders) = self.listener()
        {
            // If the listener has ended it holds nothing.
            let _ = orders.send(Order::Disarm);
        }
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
            Arc::clone(&self.bells),
            taken,
        ));
        *kept = Some(orders.clone());
        Some(orders)
    }
}
