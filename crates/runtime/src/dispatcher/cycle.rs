//! One cycle as a loop over events: claims, starts, renewals and writing down go on side by side, and this decides what is next.

use super::held::Held;
use super::look::{self, Look};
use super::settle::{Settled, Settlement, Tally};
use super::start::{self, Admitted};
use super::tasks::{Event, Tasks};
use super::trace::{Batch, Item, Period};
use super::{Cycle, Dispatcher, Shared, log};
use crate::error::{Error, Result};
use leasehold_core::RequestId;
use leasehold_service::FailureStreak;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef, Claimed};
use leasehold_store::wake::Wake;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long the outcome of a start waits for others to be written down with it, while others are under way. An engine that
/// takes two hundred starts a second then costs a third of the transactions.
const COMPANY: Duration = Duration::from_millis(20);

/// How long to wait before a claim is tried again that the store did not do.
const CLAIM_AGAIN: Duration = Duration::from_millis(500);
/// Batches that a report tells of; a cycle may last for days.
const REMEMBERED_BATCHES: usize = 1_000;

struct Run<'a> {
    dispatcher: &'a Dispatcher,
    shared: Arc<Shared>,
    lock: Option<LockToken>,
    tasks: Tasks,
    look: Look,
    claiming: bool,
    settling: bool,
    renewing: bool,
    keeping: bool,
    /// Since when whatever gives work wakes us, if that began in this cycle.
    armed_at: Option<Instant>,
    /// When the next waiting request becomes due.
    next_due: Option<Instant>,
    queued: VecDeque<Admitted>,
    under_way: usize,
    held: Held,
    unsettled: Vec<Settlement>,
    settle_at: Option<Instant>,
    /// When what is not written down yet has waited long enough for company.
    gathered_at: Option<Instant>,
    failures: FailureStreak,
    failed: Option<Error>,
    batches: Vec<usize>,
    tally: Tally,
}

pub(super) async fn run(
    dispatcher: &Dispatcher,
    lock: Option<LockToken>,
    stop: &CancellationToken,
) -> Result<Cycle> {
    let (events, mut inbox) = mpsc::unbounded_channel();
    let shared = dispatcher.shared.clone();
    let armed = dispatcher.armed.load(Ordering::Relaxed);
    let options = &dispatcher.shared.options;
    let mut run = Run {
        dispatcher,
        tasks: Tasks {
            shared: shared.clone(),
            events,
        },
        shared,
        lock,
        look: if armed { Look::LastTime } else { Look::Now },
        claiming: false,
        settling: false,
        renewing: false,
        keeping: false,
        armed_at: None,
        next_due: None,
        queued: VecDeque::new(),
        under_way: 0,
        held: Held::default(),
        unsettled: Vec::new(),
        settle_at: None,
        gathered_at: None,
        failures: FailureStreak::of("writing down starts"),
        failed: None,
        batches: Vec::new(),
        tally: Tally::default(),
    };
    // What was claimed just now needs no renewal.
    let third = options.claim_lease / 3;
    let mut renew = interval_at((Instant::now() + third).into(), third);
    renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keep_alive = interval(options.lock.keep_alive_every());
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut give_up_at = None;
    loop {
        // Read once: what is not due now must not fall between two looks at the clock.
        let now = Instant::now();
        run.advance(now);
        if run.is_over() || give_up_at.is_some_and(|at| now >= at) {
            return run.report();
        }
        tokio::select! {
            event = inbox.recv() => if let Some(event) = event { run.take(event) },
            _ = renew.tick() => run.renew(),
            _ = keep_alive.tick() => run.keep_lock(),
            () = until(run.wakes_at(now)) => {}
            () = until(give_up_at) => {}
            () = dispatcher.shared.gate.widened() => {}
            () = dispatcher.shared.store.wake_wait(Wake::Work), if run.look.may_wake() => run.woken(),
            () = stop.cancelled(), if give_up_at.is_none() => {
                give_up_at = Some(Instant::now() + options.drain_timeout);
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

impl Run<'_> {
    /// Sets going whatever can go.
    fn advance(&mut self, now: Instant) {
        let allowance = self
            .shared
            .gate
            .allowance()
            .min(self.shared.options.concurrency);
        if allowance == 0 {
            // What waits for an engine that is down need not hold its slot.
            self.give_back_queued();
        }
        while self.under_way < allowance {
            let Some(admitted) = self.queued.pop_front() else {
                break;
            };
            self.under_way += 1;
            self.tasks.start(admitted);
        }
        if matches!(self.look, Look::Resting(at) if now >= at) {
            self.arm();
        }
        self.claim(allowance, now);
        if self.may_settle(now) {
            self.settle();
        }
    }

    /// Outcomes are written down in company while there is more to come, and at once when there is not.
    fn may_settle(&mut self, now: Instant) -> bool {
        let waits = self.settle_at.is_some_and(|at| now < at);
        if self.settling || self.unsettled.is_empty() || waits {
            return false;
        }
        let gathered = *self.gathered_at.get_or_insert(now + COMPANY);
        let many = self.unsettled.len() * 2 >= self.shared.options.concurrency;
        many || self.under_way == 0 || now >= gathered
    }

    fn claim(&mut self, allowance: usize, now: Instant) {
        let options = &self.shared.options;
        // Half of what can be under way is enough in reserve while the next claim runs.
        let enough = self.queued.len() * 2 > options.concurrency;
        if !self.look.is_due(now) || self.claiming || enough {
            return;
        }
        let room = if allowance >= options.concurrency {
            options.batch_size as usize
        } else {
            // The engine has just come back: claim no more than may be started.
            allowance.saturating_sub(self.under_way + self.queued.len())
        };
        if room == 0 {
            return;
        }
        self.claiming = true;
        let claim = Claim {
            owner: options.owner.clone(),
            batch: u32::try_from(room)
                .unwrap_or(u32::MAX)
                .min(options.batch_size),
            lease: options.claim_lease,
            lock: self.lock.clone(),
        };
        self.tasks.claim(claim);
    }

    fn settle(&mut self) {
        self.settling = true;
        self.settle_at = None;
        self.gathered_at = None;
        let batch = std::mem::take(&mut self.unsettled);
        for settlement in &batch {
            self.held.settling(settlement.claim());
        }
        self.tasks.settle(batch);
    }

    fn renew(&mut self) {
        if self.renewing || self.held.is_empty() {
            return;
        }
        self.renewing = true;
        self.tasks.renew(self.held.claims());
    }

    fn keep_lock(&mut self) {
        let Some(lock) = self.dispatcher.lock.clone() else {
            return;
        };
        if std::mem::replace(&mut self.keeping, true) {
            return;
        }
        self.tasks.keep(lock);
    }

    fn arm(&mut self) {
        self.look = Look::Arming;
        self.tasks.arm();
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Claimed {
                asked,
                claim,
                lock,
                outcome,
            } => {
                self.claiming = false;
                match outcome {
                    Ok(ClaimOutcome::Claimed(claimed)) => self.claimed(claimed, asked, claim),
                    // Of a token that was lost and taken again meanwhile it says nothing new.
                    Ok(ClaimOutcome::LockLost) if lock == self.lock => self.lost_lock(),
                    Ok(ClaimOutcome::LockLost) => {}
                    Err(error) => self.claim_failed(error.into()),
                }
            }
            Event::Resolved(settlement) => {
                self.under_way -= 1;
                self.unsettled.push(settlement);
            }
            Event::Settled(settled) => self.settled(settled),
            Event::Renewed {
                asked,
                claims,
                outcome,
            } => self.renewed(asked, &claims, outcome),
            Event::Armed(armed) => {
                let armed = armed.unwrap_or(false);
                self.dispatcher.armed.store(armed, Ordering::Relaxed);
                self.armed_at = Some(Instant::now());
                if self.look == Look::Arming {
                    if armed {
                        self.look = Look::LastTime;
                    } else {
                        self.fall_asleep();
                    }
                }
            }
            // Another token if it was lost and taken again; what is claimed from now on is guarded by that one.
            Event::LockKept(kept) => {
                self.keeping = false;
                match kept {
                    Ok(Some(token)) => self.lock = Some(token),
                    Ok(None) => self.lost_lock(),
                    // The claim itself finds out whether it is still held.
                    Err(error) => {
                        tracing::warn!(%error, "the lock could not be kept alive; trying again")
                    }
                }
            }
        }
    }

    fn claimed(&mut self, claimed: Claimed, asked: Instant, claim: Period) {
        let options = &self.shared.options;
        log::told(&claimed, &self.shared.full);
        let metrics = &options.telemetry.metrics;
        metrics.became_full(claimed.at_capacity.len());
        let brought = claimed.requests.len() + claimed.rejected.len();
        self.failed = None;
        self.next_due = claimed.next_due_in.map(|due| Instant::now() + due);
        if brought == 0 {
            return self.brought_nothing(asked);
        }
        log::claimed(brought);
        let batch = Batch::begin(&self.shared, brought, asked, claim);
        if self.batches.len() < REMEMBERED_BATCHES {
            self.batches.push(brought);
        }
        self.tally.failed += claimed.rejected.len() as u64;
        self.dispatcher.armed.store(false, Ordering::Relaxed);
        self.dispatcher.fruitless.store(0, Ordering::Relaxed);
        if self.look != Look::Never {
            self.look = if brought >= options.batch_size as usize {
                Look::Now
            } else {
                Look::At(Instant::now() + options.linger)
            };
        }
        for claimed in claimed.requests {
            self.queued.push_back(Admitted {
                watch: self.held.add(&claimed, asked, options.claim_lease),
                item: Item::begin(&batch, &claimed),
                claimed,
            });
        }
        if self.look == Look::Never {
            self.give_back_queued();
        }
    }

    /// A look that began before we were armed may have missed what found us awake, so it does not count as the last.
    fn brought_nothing(&mut self, asked: Instant) {
        match self.look {
            Look::Now | Look::At(_) | Look::Asleep(_) | Look::LastTime => {
                let armed = self.dispatcher.armed.load(Ordering::Relaxed);
                if !armed {
                    self.rest();
                } else if self.armed_at.is_some_and(|at| asked < at) {
                    self.look = Look::LastTime;
                } else {
                    self.fall_asleep();
                }
            }
            Look::Resting(_) | Look::Arming | Look::Never => {}
        }
    }

    /// Every arming makes all who are writing notify, so one who is woken for nothing again and again (by requests for full
    /// workspaces, say) rests before it arms.
    fn rest(&mut self) {
        let times = self.dispatcher.fruitless.fetch_add(1, Ordering::Relaxed);
        self.look = Look::Resting(Instant::now() + look::rest_after(times));
    }

    fn fall_asleep(&mut self) {
        let poll = Instant::now() + self.shared.options.poll_interval;
        self.look = Look::Asleep(self.next_due.map_or(poll, |due| due.min(poll)));
    }

    fn settled(&mut self, settled: Settled) {
        self.settling = false;
        self.tally.add(settled.tally);
        for claim in settled.done {
            self.held.remove(claim);
        }
        match settled.error {
            None => self.failures.succeeded(),
            Some(error) => {
                self.settle_at = Some(Instant::now() + self.failures.failed(&error));
            }
        }
        self.unsettled.extend(settled.left);
    }

    fn renewed(
        &mut self,
        asked: Instant,
        claims: &[ClaimRef],
        outcome: leasehold_store::Result<Vec<RequestId>>,
    ) {
        self.renewing = false;
        match outcome {
            Ok(renewed) => {
                let lease = self.shared.options.claim_lease;
                let lost = self.held.renewed(claims, &renewed, asked, lease);
                if !lost.is_empty() {
                    log::leases_lost(lost.len());
                }
                for claim in lost {
                    self.held.remove(claim);
                }
            }
            // The next renewal comes long before the leases end.
            Err(error) => tracing::warn!(%error, "claims could not be renewed; trying again"),
        }
    }

    fn woken(&mut self) {
        self.dispatcher.armed.store(false, Ordering::Relaxed);
        if self.look.may_wake() {
            self.look = Look::Now;
        }
    }

    fn lost_lock(&mut self) {
        self.look = Look::Never;
        self.give_back_queued();
        if let Some(lock) = self.dispatcher.lock.clone() {
            let lost = self.lock.take();
            self.shared.last_flow.forget();
            tokio::spawn(async move { lock.forget(lost).await });
        }
    }

    /// Tried again while other work is under way; if there is none the cycle ends, and the next one tries.
    fn claim_failed(&mut self, error: Error) {
        if self.look != Look::Never {
            self.look = Look::At(Instant::now() + CLAIM_AGAIN);
        }
        self.failed = Some(error);
    }

    fn stop(&mut self) {
        self.look = Look::Never;
        self.give_back_queued();
    }

    fn give_back_queued(&mut self) {
        for admitted in self.queued.drain(..) {
            let resolution = start::unsent(&admitted.claimed, Duration::ZERO, None);
            self.unsettled.push(admitted.settled_as(resolution));
        }
    }

    fn wakes_at(&self, now: Instant) -> Option<Instant> {
        // What is due already waits for room, not for time.
        [self.look.at(), self.settle_at, self.gathered_at]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }

    fn is_over(&self) -> bool {
        let idle = !self.claiming
            && self.queued.is_empty()
            && self.under_way == 0
            && !self.settling
            && self.unsettled.is_empty();
        let shut = self.shared.gate.allowance() == 0;
        let done = matches!(self.look, Look::Asleep(_) | Look::Never);
        idle && (shut || done || self.failed.is_some())
    }

    fn report(self) -> Result<Cycle> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let poll = self.shared.options.poll_interval;
        let look_again_in = match self.look {
            Look::Asleep(at) => at.saturating_duration_since(Instant::now()),
            _ => poll,
        };
        Ok(Cycle {
            batches: self.batches,
            dispatched: self.tally.dispatched,
            released: self.tally.released,
            failed: self.tally.failed,
            lost: self.tally.lost,
            look_again_in,
        })
    }
}
