//! A claimed job, the end of its lease by this process's clock, and whether its handler must stop. Knows no store.

use leasehold_core::job::{ClaimedJob, JobRef};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whether a handler must stop, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopState {
    /// The handler may run.
    Active,
    /// The worker shuts down and its drain timeout has passed.
    Stopping,
    /// The lease is lost; another worker may hold the job.
    LeaseLost,
}

pub(crate) struct LeasedJob {
    pub(crate) claimed: ClaimedJob,
    pub(crate) queue: Arc<str>,
    /// When the claim was sent.
    pub(crate) claim_sent: Instant,
    /// Cancelled when the handler must stop.
    pub(crate) cancel: CancellationToken,
    stop_state: AtomicU8,
    /// Whether the handler has returned and its result is being written. A renewal that does not find the claim proves nothing then.
    done: AtomicBool,
    lease_end: Mutex<Instant>,
}

impl LeasedJob {
    /// A job whose claim was sent at `claim_sent`. The store started the lease later than that, so the local end is early, never late.
    pub(crate) fn new(claimed: ClaimedJob, queue: Arc<str>, claim_sent: Instant) -> Self {
        Self {
            lease_end: Mutex::new(claim_sent + claimed.lease),
            claimed,
            queue,
            claim_sent,
            cancel: CancellationToken::new(),
            stop_state: AtomicU8::new(StopState::Active as u8),
            done: AtomicBool::new(false),
        }
    }

    pub(crate) fn claim(&self) -> JobRef {
        self.claimed.claim()
    }

    /// When the lease ends by the local clock.
    pub(crate) fn lease_end(&self) -> Instant {
        *self
            .lease_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends the local lease after a successful renewal that was sent at `sent`.
    pub(crate) fn renewed(&self, sent: Instant) {
        *self
            .lease_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = sent + self.claimed.lease;
    }

    /// Whether the lease is valid at `now` by the local clock. A process that was suspended detects the expiry here.
    pub(crate) fn is_leased(&self, now: Instant) -> bool {
        self.stop_state() != StopState::LeaseLost && now < self.lease_end()
    }

    pub(crate) fn stop_state(&self) -> StopState {
        match self.stop_state.load(Ordering::Acquire) {
            0 => StopState::Active,
            1 => StopState::Stopping,
            _ => StopState::LeaseLost,
        }
    }

    /// Marks the lease as lost and cancels the handler. Returns whether the lease was not marked before.
    pub(crate) fn mark_lost(&self) -> bool {
        let before = self
            .stop_state
            .swap(StopState::LeaseLost as u8, Ordering::AcqRel);
        self.cancel.cancel();
        before != StopState::LeaseLost as u8
    }

    /// Asks the handler to stop because the worker shuts down.
    pub(crate) fn stop(&self) {
        // A lost lease stays lost.
        let _ = self.stop_state.compare_exchange(
            StopState::Active as u8,
            StopState::Stopping as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        self.cancel.cancel();
    }

    pub(crate) fn set_done(&self) {
        self.done.store(true, Ordering::Release);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}
