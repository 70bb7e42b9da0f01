//! The background tasks of a cycle and the events they report when they end. Decides nothing.
//!
//! Each task sends exactly one event: the cycle waits for it and keeps its lock meanwhile. So a panic becomes the event of a failed step.

use super::flush::{self, FlushReport, ResolvedClaim};
use super::start::{self, AdmittedRequest};
use super::trace::Period;
use super::{Shared, log};
use crate::error::{Error, Result};
use crate::lock::NamedLock;
use leasehold_service::catch_panic;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef, ExecutionOrigin, RequestsRenewed};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::sync::mpsc;

/// The result of a background task.
pub(super) enum Event {
    Claimed {
        requested: Instant,
        claim: Period,
        lock: Option<LockToken>,
        outcome: Result<ClaimOutcome>,
    },
    Resolved(ResolvedClaim),
    /// The task of a start panicked. The claim is left to the recoverer.
    StartPanicked {
        claim: ClaimRef,
        origin: ExecutionOrigin,
    },
    Flushed(FlushReport),
    Renewed {
        requested: Instant,
        claims: Vec<ClaimRef>,
        outcome: Result<RequestsRenewed>,
    },
    Armed(Result<bool>),
    LockExtended(Result<Option<LockToken>>),
}

/// Spawns background tasks and sends their events to the cycle. If the cycle is gone, events are dropped, and leases and locks expire.
pub(super) struct Tasks {
    pub(super) shared: Arc<Shared>,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

impl Tasks {
    pub(super) fn claim(&self, claim: Claim) {
        let (requested, begun) = (Instant::now(), SystemTime::now());
        let lock = claim.lock.clone();
        let call = async move |shared: Arc<Shared>| {
            shared.options.telemetry.metrics.dispatch_cycle();
            let outcome = shared.store.request_claim(&claim).await;
            outcome.map_err(Error::from)
        };
        let event = move |outcome| Event::Claimed {
            requested,
            claim: Period::since(begun),
            lock,
            outcome,
        };
        self.spawn_call("claim", call, event);
    }

    pub(super) fn start(&self, mut admitted: AdmittedRequest) {
        let (claim, origin) = (ClaimRef::from(&admitted.claimed), admitted.claimed.origin);
        let work = async move |shared: Arc<Shared>| {
            let resolution = start::resolve(&shared, &mut admitted).await;
            Event::Resolved(admitted.resolved_as(resolution))
        };
        self.spawn("start", work, move |_| Event::StartPanicked {
            claim,
            origin,
        });
    }

    pub(super) fn flush(&self, batch: Vec<ResolvedClaim>) {
        let claims: Vec<ClaimRef> = batch.iter().map(ResolvedClaim::claim).collect();
        let work =
            async move |shared: Arc<Shared>| Event::Flushed(flush::flush(&shared, batch).await);
        // The outcomes are gone: the leases expire, and the recoverer treats the claims as unknown starts.
        self.spawn("flush", work, move |error| {
            Event::Flushed(FlushReport::lost(claims, error))
        });
    }

    pub(super) fn renew(&self, claims: Vec<ClaimRef>) {
        let requested = Instant::now();
        let renewed = claims.clone();
        let call = async move |shared: Arc<Shared>| {
            let options = &shared.options;
            let store = &shared.store;
            let renewal = store.request_renew(&options.owner, &renewed, options.claim_lease);
            renewal.await.map_err(Error::from)
        };
        let event = move |outcome| Event::Renewed {
            requested,
            claims,
            outcome,
        };
        self.spawn_call("renew", call, event);
    }

    pub(super) fn extend_lock(&self, lock: Arc<NamedLock>) {
        let call = async move |_: Arc<Shared>| lock.acquire_or_extend().await;
        self.spawn_call("extend_lock", call, Event::LockExtended);
    }

    pub(super) fn arm(&self) {
        let call = async move |shared: Arc<Shared>| {
            let armed = shared.store.notification_arm().await;
            armed.map_err(Error::from)
        };
        self.spawn_call("arm", call, Event::Armed);
    }

    /// Runs a call and reports its result as an event; a panic is an error.
    fn spawn_call<T, F>(
        &self,
        task: &'static str,
        call: impl FnOnce(Arc<Shared>) -> F,
        event: impl FnOnce(Result<T>) -> Event + Send + 'static,
    ) where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let (events, shared) = (self.events.clone(), self.shared.clone());
        let call = call(shared.clone());
        tokio::spawn(async move {
            let outcome = shared.run_caught(task, call).await;
            let _ = events.send(event(outcome.and_then(|outcome| outcome)));
        });
    }

    /// Runs `work` and sends its event, or the event of `after_panic`.
    fn spawn<F>(
        &self,
        task: &'static str,
        work: impl FnOnce(Arc<Shared>) -> F,
        after_panic: impl FnOnce(Error) -> Event + Send + 'static,
    ) where
        F: Future<Output = Event> + Send + 'static,
    {
        let (events, shared) = (self.events.clone(), self.shared.clone());
        let work = work(shared.clone());
        tokio::spawn(async move {
            let event = shared.run_caught(task, work).await;
            let _ = events.send(event.unwrap_or_else(after_panic));
        });
    }
}

impl Shared {
    /// Runs `work`. Logs and counts its panic, and returns it as an error.
    pub(super) async fn run_caught<T>(
        &self,
        task: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        catch_panic(work).await.map_err(|panic| {
            log::task_panicked(task, &panic);
            self.options.telemetry.metrics.task_panicked(task);
            panic.into()
        })
    }
}
