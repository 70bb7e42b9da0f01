//! The background tasks of a cycle and the events they report when they end. Decides nothing.

use super::Shared;
use super::flush::{self, FlushReport, ResolvedClaim};
use super::start::{self, AdmittedRequest};
use super::trace::Period;
use crate::error::Result;
use crate::lock::NamedLock;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef, RequestsRenewed};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc;

/// The result of a background task.
pub(super) enum Event {
    Claimed {
        requested: Instant,
        claim: Period,
        lock: Option<LockToken>,
        outcome: leasehold_store::Result<ClaimOutcome>,
    },
    Resolved(ResolvedClaim),
    Flushed(FlushReport),
    Renewed {
        requested: Instant,
        claims: Vec<ClaimRef>,
        outcome: leasehold_store::Result<RequestsRenewed>,
    },
    Armed(leasehold_store::Result<bool>),
    LockExtended(Result<Option<LockToken>>),
}

/// Spawns background tasks and sends their events to the cycle. If the cycle is gone, events are dropped, and leases and locks expire.
pub(super) struct Tasks {
    pub(super) shared: Arc<Shared>,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

impl Tasks {
    pub(super) fn claim(&self, claim: Claim) {
        self.spawn(async move |shared| {
            shared.options.telemetry.metrics.dispatch_cycle();
            let (requested, begun) = (Instant::now(), SystemTime::now());
            let outcome = shared.store.request_claim(&claim).await;
            Event::Claimed {
                requested,
                claim: Period::since(begun),
                lock: claim.lock,
                outcome,
            }
        });
    }

    pub(super) fn start(&self, mut admitted: AdmittedRequest) {
        self.spawn(async move |shared| {
            let resolution = start::resolve(&shared, &mut admitted).await;
            Event::Resolved(admitted.resolved_as(resolution))
        });
    }

    pub(super) fn flush(&self, batch: Vec<ResolvedClaim>) {
        self.spawn(async move |shared| Event::Flushed(flush::flush(&shared, batch).await));
    }

    pub(super) fn renew(&self, claims: Vec<ClaimRef>) {
        self.spawn(async move |shared| {
            let requested = Instant::now();
            let options = &shared.options;
            let outcome = shared
                .store
                .request_renew(&options.owner, &claims, options.claim_lease)
                .await;
            Event::Renewed {
                requested,
                claims,
                outcome,
            }
        });
    }

    pub(super) fn extend_lock(&self, lock: Arc<NamedLock>) {
        self.spawn(async move |_| Event::LockExtended(lock.acquire_or_extend().await));
    }

    pub(super) fn arm(&self) {
        self.spawn(async move |shared| Event::Armed(shared.store.notification_arm().await));
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
