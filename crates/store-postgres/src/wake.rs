//! The bells that sleepers of this process wait on, and who may ring them. Knows no SQL; what other processes do comes
//! from the listener.

use crate::listener::{Ear, Listener};
use crate::pool::Address;
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::wake::{Wake, WakeStore};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// One bell a kind; a ring that nobody waits for is kept.
#[derive(Default)]
pub(crate) struct Bells {
    work: Notify,
    cancel: Notify,
    ended: Notify,
    /// Whether everybody who creates work notifies us.
    armed: AtomicBool,
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

    fn ring(&self, wake: Wake) {
        self.of(wake).notify_one();
    }

    fn has_sleeper(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// Somebody is about to wait for work.
    fn stir(&self) {
        self.stirred.store(true, Ordering::Relaxed);
    }
}

fn named(payload: &str) -> Option<Wake> {
    Wake::ALL.into_iter().find(|wake| wake.as_str() == payload)
}

impl Ear for Bells {
    const FOR: &'static str = "wake-ups";
    const LISTEN: &'static str = sql!("wake/listen");
    const ARM: &'static str = sql!("wake/arm");
    /// A seat that nobody sleeps in is given back after twice as long at most: its sleeper may be gone for good.
    const ASK: Duration = Duration::from_secs(5);
    /// The sleeper takes its seat again before it sleeps.
    const STANDS_UP_AT_ONCE: bool = true;

    fn is_for_sleeper(&self, payload: &str) -> bool {
        named(payload) == Some(Wake::Work)
    }

    fn ring_for(&self, payload: &str) {
        if let Some(wake) = named(payload) {
            self.ring(wake);
        }
    }

    fn ring_sleeper(&self) {
        self.ring(Wake::Work);
    }

    fn ring_all(&self) {
        Wake::ALL.into_iter().for_each(|wake| self.ring(wake));
    }

    fn armed(&self) -> &AtomicBool {
        &self.armed
    }

    /// Whether somebody waits for work, or did since this was asked last.
    fn is_needed(&self) -> bool {
        self.stirred.swap(false, Ordering::Relaxed) || self.has_sleeper()
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
    listener: Listener<Bells>,
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").finish_non_exhaustive()
    }
}

impl Wakes {
    pub(crate) fn new(address: Option<Address>) -> Self {
        let bells = Arc::<Bells>::default();
        Self {
            listener: Listener::new(Arc::clone(&bells), address),
            bells,
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
        self.listener.start();
        let _counted = (wake == Wake::Work).then(|| Sleeper::new(&self.bells));
        self.bells.of(wake).notified().await;
    }

    pub(crate) async fn arm(&self) -> bool {
        self.bells.stir();
        self.listener.arm().await
    }

    /// Somebody found work and is awake: while it is, nobody need notify it.
    pub(crate) fn awake(&self) {
        if !self.bells.has_sleeper() {
            self.listener.disarm();
        }
    }
}

#[async_trait]
impl WakeStore for PostgresStore {
    async fn wake_arm(&self) -> Result<bool> {
        Ok(self.wakes.arm().await)
    }

    async fn wake_wait(&self, wake: Wake) {
        self.wakes.wait(wake).await;
    }

    async fn wake_ring(&self, wake: Wake) -> Result<()> {
        self.wakes.ring(wake);
        let context = "wake_ring";
        self.execute(context, sql!("wake/ring"), &[&wake.as_str()])
            .await
            .map(drop)
    }
}
