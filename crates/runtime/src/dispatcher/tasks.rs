//! What a cycle sets going beside itself, and the events by which it hears of the end. Decides nothing.

use super::Shared;
use super::settle::{self, Settled, Settlement};
use super::start::{self, Admitted};
use super::trace::Period;
use crate::error::Result;
use crate::lock::Lock;
use leasehold_core::RequestId;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc;

/// What came of something that was set going.
pub(super) enum Event {
    Claimed {
        asked: Instant,
        claim: Period,
        lock: Option<LockToken>,
        outcome: leasehold_store::Result<ClaimOutcome>,
    },
    Resolved(Settlement),
    Settled(Settled),
    Renewed {
        asked: Instant,
        claims: Vec<ClaimRef>,
        outcome: leasehold_store::Result<Vec<RequestId>>,
    },
    Armed(leasehold_store::Result<bool>),
    LockKept(Result<Option<LockToken>>),
}

/// Where to set things going, and where their ends are told. A cycle that is gone hears nothing; leases and locks end by themselves.
pub(super) struct Tasks {
    pub(super) shared: Arc<Shared>,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

impl Tasks {
    pub(super) fn claim(&self, claim: Claim) {
        self.spawn(async move |shared| {
            shared.options.telemetry.metrics.cycle();
            let (asked, begun) = (Instant::now(), SystemTime::now());
            let outcome = shared.store.request_claim(&claim).await;
            Event::Claimed {
                asked,
                claim: Period::since(begun),
                lock: claim.lock,
                outcome,
            }
        });
    }

    pub(super) fn start(&self, mut admitted: Admitted) {
        self.spawn(async move |shared| {
            let resolution = start::resolve(&shared, &mut admitted).await;
            Event::Resolved(admitted.settled_as(resolution))
        });
    }

    pub(super) fn settle(&self, batch: Vec<Settlement>) {
        self.spawn(async move |shared| Event::Settled(settle::settle(&shared, batch).await));
    }

    pub(super) fn renew(&self, claims: Vec<ClaimRef>) {
        self.spawn(async move |shared| {
            let asked = Instant::now();
            let options = &shared.options;
            let outcome = shared
                .store
                .request_renew(&options.owner, &claims, options.claim_lease)
                .await;
            Event::Renewed {
                asked,
                claims,
                outcome,
            }
        });
    }

    pub(super) fn keep(&self, lock: Arc<Lock>) {
        self.spawn(async move |_| Event::LockKept(lock.keep().await));
    }

    pub(super) fn arm(&self) {
        self.spawn(async move |shared| Event::Armed(shared.store.wake_arm().await));
    }

    fn spawn<F>(&self, work: impl FnOnce(Arc<Shared>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let events = self.events.clone();
        let work = work(self.shared.clone());
        tokio::spawn(async move {
            let _ = events.send(work.await);
        });
    }
}
