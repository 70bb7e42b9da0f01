//! The claims of a cycle: when it claims how many requests, and what follows the answer.

use super::cycle::Run;
use super::log;
use super::poll_state::{PollState, arm_delay};
use super::start::AdmittedRequest;
use super::trace::{BatchTrace, Period, RequestTrace};
use crate::error::Error;
use leasehold_store::request::{Claim, Claimed, ClaimedRequest, ExecutionOrigin};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long to wait before a failed claim is retried.
const CLAIM_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The most batch sizes in a report, since a cycle may last for days.
const MAX_REPORTED_BATCHES: usize = 1_000;

impl Run<'_> {
    pub(super) fn claim(&mut self, allowance: usize, now: Instant) {
        let options = &self.shared.options;
        // Half the concurrency is enough in the queue while the next claim runs.
        let enough = self.queued.len() * 2 > options.concurrency;
        if !self.poll.is_due(now) || self.claiming || enough {
            return;
        }
        let batch = if allowance >= options.concurrency {
            options.batch_size as usize
        } else {
            // The load ramps up after an outage: claim no more than may be started.
            allowance.saturating_sub(self.in_flight + self.queued.len())
        };
        if batch == 0 {
            return;
        }
        let batch = u32::try_from(batch)
            .unwrap_or(u32::MAX)
            .min(options.batch_size);
        self.claiming = true;
        self.kept_max = batch.min(self.kept_room(allowance));
        let claim = Claim {
            owner: options.owner.clone(),
            batch,
            kept_max: Some(self.kept_max),
            lease: options.claim_lease,
            lock: self.lock.clone(),
        };
        self.tasks.claim(claim);
    }

    /// Returns how many more requests that kept their execution may be started. Their starts failed before and may fail again, so while the load
    /// ramps up, half of the starts are of other requests, which show whether the engine works.
    fn kept_room(&self, allowance: usize) -> u32 {
        if allowance >= self.shared.options.concurrency {
            return u32::MAX;
        }
        let room = (allowance / 2).max(1).saturating_sub(self.kept);
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Claims again if the last claim may have left kept requests and more of them may be started now: no notification tells about them.
    pub(super) fn claim_kept_left(&mut self) {
        let waits = !matches!(self.poll, PollState::At(_) | PollState::Stopped);
        if self.kept_left && waits && self.kept_room(self.shared.breaker.allowance()) > 0 {
            self.poll = PollState::Now;
        }
    }

    pub(super) fn claimed(&mut self, claimed: Claimed, requested: Instant, claim: Period) {
        let options = &self.shared.options;
        log::claim_report(&claimed, &self.shared.capacity_log);
        let metrics = &options.telemetry.metrics;
        metrics.workspaces_at_capacity(claimed.at_capacity.len());
        let size = claimed.requests.len() + claimed.rejected.len();
        let is_kept = |one: &&ClaimedRequest| one.origin == ExecutionOrigin::Kept;
        let kept = claimed.requests.iter().filter(is_kept).count();
        self.kept += kept;
        self.kept_left = self.kept_max < options.batch_size && kept >= self.kept_max as usize;
        self.failed = None;
        self.next_due = claimed.next_due_in.map(|due| Instant::now() + due);
        if size == 0 {
            self.claimed_nothing(requested);
            self.claim_kept_left();
            return;
        }
        log::claimed(size);
        let batch = BatchTrace::begin(&self.shared, size, requested, claim);
        if self.batches.len() < MAX_REPORTED_BATCHES {
            self.batches.push(size);
        }
        self.counts.failed += claimed.rejected.len() as u64;
        self.dispatcher.armed.store(false, Ordering::Relaxed);
        self.dispatcher.empty_polls.store(0, Ordering::Relaxed);
        if self.poll != PollState::Stopped {
            self.poll = if size >= options.batch_size as usize {
                PollState::Now
            } else {
                PollState::At(Instant::now() + options.linger)
            };
        }
        for claimed in claimed.requests {
            self.queued.push_back(AdmittedRequest {
                deadline: self.held.add(&claimed, requested, options.claim_lease),
                trace: RequestTrace::begin(&batch, &claimed),
                under_way: self.shared.breaker.begin_start(claimed.workspace),
                claimed,
            });
        }
        if self.poll == PollState::Stopped {
            self.return_queued();
        }
    }

    /// Decides what follows an empty claim. A claim sent before notifications were armed may have missed a request that sent none, so it does
    /// not count as the final poll.
    fn claimed_nothing(&mut self, requested: Instant) {
        match self.poll {
            PollState::Now | PollState::At(_) | PollState::Sleeping(_) | PollState::FinalPoll => {
                let armed = self.dispatcher.armed.load(Ordering::Relaxed);
                if !armed {
                    self.back_off();
                } else if self.armed_at.is_some_and(|at| requested < at) {
                    self.poll = PollState::FinalPoll;
                } else {
                    self.sleep();
                }
            }
            PollState::BackingOff(_) | PollState::Arming | PollState::Stopped => {}
        }
    }

    /// Waits before arming again. Armed notifications cost every writer a notify, so a dispatcher that is notified but finds nothing to
    /// claim (requests of workspaces at capacity, for example) backs off.
    fn back_off(&mut self) {
        let times = self.dispatcher.empty_polls.fetch_add(1, Ordering::Relaxed);
        self.poll = PollState::BackingOff(Instant::now() + arm_delay(times));
    }

    pub(super) fn sleep(&mut self) {
        let poll = Instant::now() + self.shared.options.poll_interval;
        self.poll = PollState::Sleeping(self.next_due.map_or(poll, |due| due.min(poll)));
    }

    /// Retries the claim while other work is in flight; otherwise the cycle ends and the next one retries.
    pub(super) fn claim_failed(&mut self, error: Error) {
        if self.poll != PollState::Stopped {
            self.poll = PollState::At(Instant::now() + CLAIM_RETRY_DELAY);
        }
        self.failed = Some(error);
    }
}
