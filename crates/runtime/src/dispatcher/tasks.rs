//! What a cycle sets going beside itself, and the events by which it hears of the end. Decides nothing.

use super::Shared;
use super::held::Watch;
use super::settle::{self, Settled, Settlement};
use super::start;
use crate::error::Result;
use crate::lock::Lock;
use leasehold_core::RequestId;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef, ClaimedRequest};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// What came of something that was set going.
pub(super) enum Event {
    Claimed {
        asked: Instant,
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
            let asked = Instant::now();
            let outcome = shared.store.request_claim(&claim).await;
            Event::Claimed {
                asked,
                lock: claim.lock,
                outcome,
            }
        });
    }

    pub(super) fn start(&self, mut claimed: ClaimedRequest, watch: Watch) {
        self.spawn(async move |shared| {
            let resolution = start::resolve(&shared, &mut claimed, &watch).await;
            Event::Resolved(Settlement {
                claimed,
                resolution,
            })
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
