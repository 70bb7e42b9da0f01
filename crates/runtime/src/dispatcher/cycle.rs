//! One cycle as a loop over events: claims, starts, renewals and writing down go on side by side, and this decides what is next.

use super::held::{Held, Watch};
use super::look::{self, Look};
use super::settle::{self, Settled, Settlement, Tally};
use super::start;
use super::{Cycle, Dispatcher, Shared, log};
use crate::error::{Error, Result};
use crate::troubles::Troubles;
use leasehold_core::RequestId;
use leasehold_store::lock::LockToken;
use leasehold_store::request::{Claim, ClaimOutcome, ClaimRef, Claimed, ClaimedRequest};
use leasehold_store::wake::Wake;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

enum Event {
    Claimed {
        asked: Instant,
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

struct Run<'a> {
    dispatcher: &'a Dispatcher,
    shared: Arc<Shared>,
    lock: Option<LockToken>,
    events: mpsc::UnboundedSender<Event>,
    look: Look,
    claiming: bool,
    settling: bool,
    renewing: bool,
    queued: VecDeque<(ClaimedRequest, Watch)>,
    under_way: usize,
    held: Held,
    unsettled: Vec<Settlement>,
    settle_at: Option<Instant>,
    troubles: Troubles,
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
        shared,
        lock,
        events,
        look: if armed { Look::LastTime } else { Look::Now },
        claiming: false,
        settling: false,
        renewing: false,
        queued: VecDeque::new(),
        under_way: 0,
        held: Held::default(),
        unsettled: Vec::new(),
        settle_at: None,
        troubles: Troubles::of("writing down starts"),
        failed: None,
        batches: Vec::new(),
        tally: Tally::default(),
    };
    let mut renew = interval(options.claim_lease / 3);
    renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keep_alive = interval(options.lock.keep_alive_every());
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut give_up_at = None;
    loop {
        run.advance();
        if run.is_over() || give_up_at.is_some_and(|at| Instant::now() >= at) {
            return run.report();
        }
        tokio::select! {
            event = inbox.recv() => if let Some(event) = event { run.take(event) },
            _ = renew.tick() => run.renew(),
            _ = keep_alive.tick() => run.keep_lock(),
            () = until(run.wakes_at()) => {}
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
    fn advance(&mut self) {
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
            let Some((claimed, watch)) = self.queued.pop_front() else {
                break;
            };
            self.start(claimed, watch);
        }
        if matches!(self.look, Look::Resting(at) if due(Some(at))) {
            self.arm();
        }
        self.claim(allowance);
        if !self.settling && !self.unsettled.is_empty() && due(self.settle_at) {
            self.settle();
        }
    }

    fn claim(&mut self, allowance: usize) {
        let options = &self.shared.options;
        // Half of what can be under way is enough in reserve while the next claim runs.
        let enough = self.queued.len() * 2 > options.concurrency;
        if !self.look.is_due() || self.claiming || enough {
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
        let (shared, events) = (self.shared.clone(), self.events.clone());
        tokio::spawn(async move {
            let asked = Instant::now();
            let outcome = shared.store.request_claim(&claim).await;
            let _ = events.send(Event::Claimed { asked, outcome });
        });
    }

    fn start(&mut self, mut claimed: ClaimedRequest, watch: Watch) {
        self.under_way += 1;
        let (shared, events) = (self.shared.clone(), self.events.clone());
        tokio::spawn(async move {
            let resolution = start::resolve(&shared, &mut claimed, &watch).await;
            let _ = events.send(Event::Resolved(Settlement {
                claimed,
                resolution,
            }));
        });
    }

    fn settle(&mut self) {
        self.settling = true;
        self.settle_at = None;
        let batch = std::mem::take(&mut self.unsettled);
        for settlement in &batch {
            self.held.settling(settlement.claim());
        }
        let (shared, events) = (self.shared.clone(), self.events.clone());
        tokio::spawn(async move {
            let settled = settle::settle(&shared, batch).await;
            let _ = events.send(Event::Settled(settled));
        });
    }

    fn renew(&mut self) {
        if self.renewing || self.held.is_empty() {
            return;
        }
        self.renewing = true;
        let claims = self.held.claims();
        let (shared, events) = (self.shared.clone(), self.events.clone());
        tokio::spawn(async move {
            let asked = Instant::now();
            let options = &shared.options;
            let outcome = shared
                .store
                .request_renew(&options.owner, &claims, options.claim_lease)
                .await;
            let _ = events.send(Event::Renewed {
                asked,
                claims,
                outcome,
            });
        });
    }

    fn keep_lock(&mut self) {
        let Some(lock) = self.dispatcher.lock.clone() else {
            return;
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let _ = events.send(Event::LockKept(lock.keep().await));
        });
    }

    fn arm(&mut self) {
        self.look = Look::Arming;
        let (shared, events) = (self.shared.clone(), self.events.clone());
        tokio::spawn(async move {
            let _ = events.send(Event::Armed(shared.store.wake_arm().await));
        });
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Claimed { asked, outcome } => {
                self.claiming = false;
                match outcome {
                    Ok(ClaimOutcome::Claimed(claimed)) => self.claimed(claimed, asked),
                    Ok(ClaimOutcome::LockLost) => self.lost_lock(),
                    Err(error) => self.fail(error.into()),
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
                if self.look == Look::Arming {
                    self.look = if armed {
                        Look::LastTime
                    } else {
                        Look::Asleep(Instant::now() + self.shared.options.poll_interval)
                    };
                }
            }
            // Another token if it was lost and taken again; what is claimed from now on is guarded by that one.
            Event::LockKept(Ok(Some(token))) => self.lock = Some(token),
            Event::LockKept(Ok(None)) => self.lost_lock(),
            Event::LockKept(Err(error)) => self.fail(error),
        }
    }

    fn claimed(&mut self, claimed: Claimed, asked: Instant) {
        let options = &self.shared.options;
        claimed.at_capacity.iter().for_each(log::at_capacity);
        for (request, reason) in &claimed.rejected {
            log::rejected(*request, *reason);
        }
        let brought = claimed.requests.len() + claimed.rejected.len();
        if brought == 0 {
            return self.brought_nothing(claimed.next_due_in);
        }
        log::claimed(brought);
        self.batches.push(brought);
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
        for request in claimed.requests {
            let watch = self.held.add(&request, asked, options.claim_lease);
            self.queued.push_back((request, watch));
        }
        if self.look == Look::Never {
            self.give_back_queued();
        }
    }

    fn brought_nothing(&mut self, next_due_in: Option<Duration>) {
        match self.look {
            Look::Now | Look::At(_) | Look::Asleep(_) => {
                if self.dispatcher.armed.load(Ordering::Relaxed) {
                    self.fall_asleep(next_due_in);
                } else {
                    self.rest();
                }
            }
            Look::LastTime => self.fall_asleep(next_due_in),
            Look::Resting(_) | Look::Arming | Look::Never => {}
        }
    }

    /// Every arming makes all who are writing notify, so one who is woken for nothing again and again (by requests for full
    /// workspaces, say) rests before it arms.
    fn rest(&mut self) {
        let times = self.dispatcher.fruitless.fetch_add(1, Ordering::Relaxed);
        self.look = Look::Resting(Instant::now() + look::rest_after(times));
    }

    fn fall_asleep(&mut self, next_due_in: Option<Duration>) {
        let poll = self.shared.options.poll_interval;
        let wait = next_due_in.map_or(poll, |due| due.min(poll));
        self.look = Look::Asleep(Instant::now() + wait);
    }

    fn settled(&mut self, settled: Settled) {
        self.settling = false;
        self.tally.add(settled.tally);
        for claim in settled.done {
            self.held.remove(claim);
        }
        match settled.error {
            None => self.troubles.fine(),
            Some(error) => {
                let error = Error::from(error);
                self.settle_at = Some(Instant::now() + self.troubles.failed(&error));
                self.fail(error);
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
                    tracing::warn!(
                        count = lost.len(),
                        "claims lost; another dispatcher resolves them"
                    );
                }
                for claim in lost {
                    self.held.remove(claim);
                }
            }
            Err(error) => self.fail(error.into()),
        }
    }

    fn woken(&mut self) {
        self.dispatcher.armed.store(false, Ordering::Relaxed);
        if self.look.may_wake() {
            self.look = Look::Now;
        }
    }

    fn lost_lock(&mut self) {
        self.lock = None;
        self.look = Look::Never;
        self.give_back_queued();
        if let Some(lock) = self.dispatcher.lock.clone() {
            tokio::spawn(async move { lock.forget().await });
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed = Some(error);
        self.look = Look::Never;
    }

    fn stop(&mut self) {
        self.look = Look::Never;
        self.give_back_queued();
    }

    fn give_back_queued(&mut self) {
        for (claimed, _) in self.queued.drain(..) {
            let resolution = start::unsent(&claimed);
            self.unsettled.push(Settlement {
                claimed,
                resolution,
            });
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        // What is due already waits for room, not for time.
        let now = Instant::now();
        [self.look.at(), self.settle_at]
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
        idle && (shut || matches!(self.look, Look::Asleep(_) | Look::Never))
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

fn due(at: Option<Instant>) -> bool {
    at.is_none_or(|at| Instant::now() >= at)
}
