//! A claimed job in the worker's hands: until when its lease can be believed in, and whether its handler is to stop. Knows no store.

use leasehold_core::job::{ClaimedJob, JobRef};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a handler is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is not.
    Kept,
    /// The worker stops and has waited long enough.
    Stopped,
    /// The lease is lost; somebody else may have the job already.
    Lost,
}

pub(crate) struct Held {
    pub(crate) job: ClaimedJob,
    pub(crate) queue: Arc<str>,
    /// When it was asked for.
    pub(crate) asked: Instant,
    /// Cancelled when the handler shall stop.
    pub(crate) cancel: CancellationToken,
    fate: AtomicU8,
    /// Whether the handler is done and its end is being written down: then a renewal that does not find the claim proves nothing.
    done: AtomicBool,
    until: Mutex<Instant>,
}

impl Held {
    /// A job that was asked for at `asked`: its lease began after that.
    pub(crate) fn new(job: ClaimedJob, queue: Arc<str>, asked: Instant) -> Self {
        Self {
            until: Mutex::new(asked + job.lease),
            job,
            queue,
            asked,
            cancel: CancellationToken::new(),
            fate: AtomicU8::new(Fate::Kept as u8),
            done: AtomicBool::new(false),
        }
    }

    pub(crate) fn claim(&self) -> JobRef {
        self.job.claim()
    }

    /// Until when the lease can be believed in.
    pub(crate) fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a renewal that was asked for at `asked`.
    pub(crate) fn renewed(&self, asked: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = asked + self.job.lease;
    }

    /// Whether the lease can be believed in now. A process that stood still finds out here.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.fate() != Fate::Lost && now < self.until()
    }

    pub(crate) fn fate(&self) -> Fate {
        match self.fate.load(Ordering::Acquire) {
            0 => Fate::Kept,
            1 => Fate::Stopped,
            _ => Fate::Lost,
        }
    }

    /// The lease is lost: the handler is dropped. Says whether that is news.
    pub(crate) fn lose(&self) -> bool {
        let before = self.fate.swap(Fate::Lost as u8, Ordering::AcqRel);
        self.cancel.cancel();
        before != Fate::Lost as u8
    }

    /// The worker has waited long enough: the handler is asked to stop.
    pub(crate) fn stop(&self) {
        // What is lost stays lost.
        let _ = self.fate.compare_exchange(
            Fate::Kept as u8,
            Fate::Stopped as u8,
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
