//! One cycle as an event loop: claims, starts, renewals and flushes run concurrently, and this module decides what runs next.

use super::flush::{ClaimCounts, FlushReport, ResolvedClaim};
use super::held_claims::HeldClaims;
use super::poll_state::PollState;
use super::start::{self, AdmittedRequest};
use super::tasks::{Event, Tasks};
use super::{CycleReport, Dispatcher, Shared, log};
use crate::error::{Error, Result};
use leasehold_service::FailureStreak;
use leasehold_store::lock::LockToken;
use leasehold_store::notification::Notification;
use leasehold_store::request::{ClaimOutcome, ClaimRef, ExecutionOrigin, RequestsRenewed};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long outcomes of starts are collected before one flush, while other starts are in flight. At two hundred starts a second this
/// needs a third of the transactions.
const FLUSH_DELAY: Duration = Duration::from_millis(20);
/// How long to wait before claims whose row was locked are flushed again; other claims are flushed meanwhile.
const BUSY_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The state of one cycle.
pub(super) struct Run<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) shared: Arc<Shared>,
    pub(super) lock: Option<LockToken>,
    pub(super) tasks: Tasks,
    pub(super) poll: PollState,
    pub(super) claiming: bool,
    pub(super) flushing: bool,
    pub(super) renewing: bool,
    pub(super) extending_lock: bool,
    /// When notifications were armed, if in this cycle.
    pub(super) armed_at: Option<Instant>,
    /// When the next waiting request becomes due.
    pub(super) next_due: Option<Instant>,
    pub(super) queued: VecDeque<AdmittedRequest>,
    pub(super) in_flight: usize,
    /// How many of the queued and started requests kept their execution from an earlier claim.
    pub(super) kept: usize,
    /// How many such requests the claim under way may take.
    pub(super) kept_max: u32,
    /// Whether the last claim may have left some because of `kept_max`.
    pub(super) kept_left: bool,
    pub(super) held: HeldClaims,
    pub(super) unflushed: Vec<ResolvedClaim>,
    /// Claims that were not flushed because another transaction has locked their rows.
    pub(super) busy: Vec<ResolvedClaim>,
    /// When they are flushed again.
    pub(super) busy_retry_at: Option<Instant>,
    /// When a failed flush is retried.
    pub(super) flush_retry_at: Option<Instant>,
    /// When `unflushed` is written at the latest.
    pub(super) flush_due_at: Option<Instant>,
    pub(super) failures: FailureStreak,
    pub(super) failed: Option<Error>,
    pub(super) batches: Vec<usize>,
    pub(super) counts: ClaimCounts,
}

pub(super) async fn run(
    dispatcher: &Dispatcher,
    lock: Option<LockToken>,
    stop: &CancellationToken,
) -> Result<CycleReport> {
    let (events, mut inbox) = mpsc::unbounded_channel();
    let options = &dispatcher.shared.options;
    let mut run = Run::new(dispatcher, lock, events);
    // A fresh claim needs no renewal, so the first tick comes after a third of the lease.
    let third = options.claim_lease / 3;
    let mut renew = interval_at((Instant::now() + third).into(), third);
    renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut extend_lock = interval(options.lock.extend_interval());
    extend_lock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut drain_deadline = None;
    loop {
        // Read the clock once: `advance` and `wakes_at` must agree on what is due.
        let now = Instant::now();
        run.advance(now);
        if run.is_over() || drain_deadline.is_some_and(|at| now >= at) {
            return run.report();
        }
        tokio::select! {
            event = inbox.recv() => if let Some(event) = event { run.take(event) },
            _ = renew.tick() => run.renew(),
            _ = extend_lock.tick() => run.extend_lock(),
            () = until(run.wakes_at(now)) => {}
            () = until(drain_deadline) => {}
            () = dispatcher.shared.breaker.capacity_increased() => run.claim_kept_left(),
            () = dispatcher.shared.store.notification_wait(Notification::Work), if run.poll.accepts_notification() => run.notified(),
            () = stop.cancelled(), if drain_deadline.is_none() => {
                drain_deadline = Some(Instant::now() + options.drain_timeout);
                run.stop();
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

impl<'a> Run<'a> {
    fn new(
        dispatcher: &'a Dispatcher,
        lock: Option<LockToken>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let shared = dispatcher.shared.clone();
        let armed = dispatcher.armed.load(Ordering::Relaxed);
        Self {
            dispatcher,
            tasks: Tasks {
                shared: shared.clone(),
                events,
            },
            shared,
            lock,
            poll: if armed {
                PollState::FinalPoll
            } else {
                PollState::Now
            },
            claiming: false,
            flushing: false,
            renewing: false,
            extending_lock: false,
            armed_at: None,
            next_due: None,
            queued: VecDeque::new(),
            in_flight: 0,
            kept: 0,
            kept_max: 0,
            kept_left: false,
            held: HeldClaims::default(),
            unflushed: Vec::new(),
            busy: Vec::new(),
            busy_retry_at: None,
            flush_retry_at: None,
            flush_due_at: None,
            failures: FailureStreak::of("dispatcher").action("write outcomes of starts"),
            failed: None,
            batches: Vec::new(),
            counts: ClaimCounts::default(),
        }
    }
}

impl Run<'_> {
    /// Starts every task that can run now.
    fn advance(&mut self, now: Instant) {
        let allowance = self
            .shared
            .breaker
            .allowance()
            .min(self.shared.options.concurrency);
        if allowance == 0 {
            // A request must not hold a slot while the engine is down.
            self.return_queued();
        }
        while self.in_flight < allowance {
            let Some(admitted) = self.queued.pop_front() else {
                break;
            };
            self.in_flight += 1;
            self.tasks.start(admitted);
        }
        if matches!(self.poll, PollState::BackingOff(at) if now >= at) {
            self.arm();
        }
        self.claim(allowance, now);
        if self.busy_retry_at.is_some_and(|at| now >= at) {
            self.busy_retry_at = None;
            self.unflushed.append(&mut self.busy);
        }
        if self.should_flush(now) {
            self.flush();
        }
    }

    /// Returns whether to flush now: after `FLUSH_DELAY`, with a large batch, or when no start is in flight.
    fn should_flush(&mut self, now: Instant) -> bool {
        let backing_off = self.flush_retry_at.is_some_and(|at| now < at);
        if self.flushing || self.unflushed.is_empty() || backing_off {
            return false;
        }
        let due = *self.flush_due_at.get_or_insert(now + FLUSH_DELAY);
        let is_large = self.unflushed.len() * 2 >= self.shared.options.concurrency;
        is_large || self.in_flight == 0 || now >= due
    }

    fn flush(&mut self) {
        self.flushing = true;
        self.flush_retry_at = None;
        self.flush_due_at = None;
        let batch = std::mem::take(&mut self.unflushed);
        for resolved in &batch {
            self.held.mark_flushing(resolved.claim());
        }
        self.tasks.flush(batch);
    }

    fn renew(&mut self) {
        if self.renewing || self.held.is_empty() {
            return;
        }
        self.renewing = true;
        self.tasks.renew(self.held.claims());
    }

    fn extend_lock(&mut self) {
        let Some(lock) = self.dispatcher.lock.clone() else {
            return;
        };
        if std::mem::replace(&mut self.extending_lock, true) {
            return;
        }
        self.tasks.extend_lock(lock);
    }

    fn arm(&mut self) {
        self.poll = PollState::Arming;
        self.tasks.arm();
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Claimed {
                requested,
                claim,
                lock,
                outcome,
            } => {
                self.claiming = false;
                match outcome {
                    Ok(ClaimOutcome::Claimed(claimed)) => self.claimed(claimed, requested, claim),
                    // A claim with an older token says nothing about the current one.
                    Ok(ClaimOutcome::LockLost) if lock == self.lock => self.lost_lock(),
                    Ok(ClaimOutcome::LockLost) => {}
                    Err(error) => self.claim_failed(error),
                }
            }
            Event::Resolved(resolved) => {
                self.in_flight -= 1;
                self.resolved(resolved);
            }
            Event::StartPanicked { claim, origin } => {
                self.in_flight -= 1;
                self.held.remove(claim);
                self.counts.lost += 1;
                self.start_ended(origin);
            }
            Event::Flushed(report) => self.flushed(report),
            Event::Renewed {
                requested,
                claims,
                outcome,
            } => self.renewed(requested, &claims, outcome),
            Event::Armed(armed) => {
                let armed = armed.unwrap_or(false);
                self.dispatcher.armed.store(armed, Ordering::Relaxed);
                self.armed_at = Some(Instant::now());
                if self.poll == PollState::Arming {
                    if armed {
                        self.poll = PollState::FinalPoll;
                    } else {
                        self.sleep();
                    }
                }
            }
            // The token differs if the lock was lost and acquired again; later claims are guarded by the new one.
            Event::LockExtended(extended) => {
                self.extending_lock = false;
                match extended {
                    Ok(Some(token)) => self.lock = Some(token),
                    Ok(None) => self.lost_lock(),
                    // The next claim verifies whether the lock is still held.
                    Err(error) => {
                        tracing::warn!(%error, "failed to extend lock; retrying")
                    }
                }
            }
        }
    }

    fn resolved(&mut self, resolved: ResolvedClaim) {
        self.start_ended(resolved.claimed.origin);
        self.unflushed.push(resolved);
    }

    fn start_ended(&mut self, origin: ExecutionOrigin) {
        if origin == ExecutionOrigin::Kept {
            self.kept -= 1;
            self.claim_kept_left();
        }
    }

    fn flushed(&mut self, report: FlushReport) {
        self.flushing = false;
        self.counts.add(report.counts);
        for claim in report.done {
            self.held.remove(claim);
        }
        match report.error {
            None => self.failures.succeeded(),
            Some(error) => {
                self.flush_retry_at = Some(Instant::now() + self.failures.failed(&error));
            }
        }
        self.unflushed.extend(report.remaining);
        if !report.busy.is_empty() {
            self.busy.extend(report.busy);
            self.busy_retry_at = Some(Instant::now() + BUSY_RETRY_DELAY);
        }
    }

    fn renewed(
        &mut self,
        requested: Instant,
        claims: &[ClaimRef],
        outcome: Result<RequestsRenewed>,
    ) {
        self.renewing = false;
        match outcome {
            Ok(renewed) => {
                let lease = self.shared.options.claim_lease;
                let lost = self.held.apply_renewal(claims, &renewed, requested, lease);
                if !lost.is_empty() {
                    log::leases_lost(lost.len());
                }
                for claim in lost {
                    self.held.remove(claim);
                }
            }
            // The next renewal comes long before the leases expire.
            Err(error) => tracing::warn!(%error, "failed to renew claims; retrying"),
        }
    }

    fn notified(&mut self) {
        self.dispatcher.armed.store(false, Ordering::Relaxed);
        if self.poll.accepts_notification() {
            self.poll = PollState::Now;
        }
    }

    fn lost_lock(&mut self) {
        self.poll = PollState::Stopped;
        self.return_queued();
        if let Some(lock) = self.dispatcher.lock.clone() {
            let lost = self.lock.take();
            self.shared.last_flow.clear();
            tokio::spawn(async move { lock.mark_lost(lost).await });
        }
    }

    fn stop(&mut self) {
        self.poll = PollState::Stopped;
        self.return_queued();
    }

    /// Returns the unsent requests to the queue.
    pub(super) fn return_queued(&mut self) {
        for admitted in std::mem::take(&mut self.queued) {
            let resolution = start::release_unsent(&admitted.claimed, Duration::ZERO, None);
            self.resolved(admitted.resolved_as(resolution));
        }
    }

    fn wakes_at(&self, now: Instant) -> Option<Instant> {
        // A step that is already due waits for capacity, not for time.
        [
            self.poll.at(),
            self.flush_retry_at,
            self.flush_due_at,
            self.busy_retry_at,
        ]
        .into_iter()
        .flatten()
        .filter(|at| *at > now)
        .min()
    }

    fn is_over(&self) -> bool {
        let idle = !self.claiming
            && self.queued.is_empty()
            && self.in_flight == 0
            && !self.flushing
            && self.unflushed.is_empty()
            && self.busy.is_empty();
        let is_open = self.shared.breaker.allowance() == 0;
        let done = matches!(self.poll, PollState::Sleeping(_) | PollState::Stopped);
        idle && (is_open || done || self.failed.is_some())
    }

    fn report(self) -> Result<CycleReport> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let poll = self.shared.options.poll_interval;
        let next_poll_in = match self.poll {
            PollState::Sleeping(at) => at.saturating_duration_since(Instant::now()),
            _ => poll,
        };
        Ok(CycleReport {
            batches: self.batches,
            dispatched: self.counts.dispatched,
            released: self.counts.released,
            failed: self.counts.failed,
            lost: self.counts.lost,
            next_poll_in,
        })
    }
}
