//! Claims jobs from every queue in turn while there is capacity, and sleeps while the queues are empty. Does not know how jobs end.

use crate::runner;
use crate::shared::Shared;
use leasehold_core::job::{JobClaim, JobsClaimed};
use leasehold_core::lease::heartbeat_interval;
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_core::spurious_wakeup::{QUIET_PERIOD, spurious_wakeup_delay};
use leasehold_service::FailureStreak;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a queue that reached a limit is claimed from without prefetching: a limit is for running jobs, not for prefetched ones.
const LIMIT_HOLD: Duration = Duration::from_secs(5);

/// How long prefetching stays off after jobs waited too long for a runner. Doubles up to the second value while that repeats.
const PREFETCH_OFF: Duration = Duration::from_secs(10);
const PREFETCH_OFF_MAX: Duration = Duration::from_secs(300);

struct Claimer {
    shared: Arc<Shared>,
    notifications: watch::Receiver<u64>,
    queues: Vec<Queue>,
    /// The index of the queue whose turn it is.
    turn: usize,
    /// Whether the source will send a notification for the next job.
    notify_requested: bool,
    /// Rounds in a row that returned no job.
    empty_rounds: u32,
    /// When prefetching starts again, and how long it stays off the next time.
    prefetch_off_until: Option<Instant>,
    prefetch_off_for: Duration,
    /// The shortest lease so far.
    lease: Duration,
    failures: FailureStreak,
}

struct Queue {
    name: Arc<str>,
    /// Whether the last poll returned no job, and no notification has arrived since.
    is_empty: bool,
    /// When its next job becomes due.
    due: Option<Instant>,
    limited_until: Option<Instant>,
}

/// What the claimer does next.
enum ClaimStep {
    Poll {
        queue: usize,
        capacity: usize,
    },
    /// The worker, or a queue's limit, has no capacity.
    WaitForCapacity,
    /// All queues are empty.
    WaitForJobs,
}

/// Runs until the worker stops. Waits for a claim under way; its jobs are returned to the queue.
pub(crate) async fn run(shared: Arc<Shared>) {
    let queues = shared.options.queues.iter().map(|name| Queue {
        name: name.clone(),
        is_empty: false,
        due: None,
        limited_until: None,
    });
    let mut claimer = Claimer {
        notifications: shared.source.subscribe(),
        queues: queues.collect(),
        turn: 0,
        notify_requested: false,
        empty_rounds: 0,
        prefetch_off_until: None,
        prefetch_off_for: PREFETCH_OFF,
        lease: shared
            .options
            .lease
            .unwrap_or(leasehold_core::lease::DEFAULT_LEASE),
        failures: FailureStreak::of("worker").action("claim jobs"),
        shared,
    };
    while !claimer.shared.stopping.is_cancelled() {
        match claimer.next_step() {
            ClaimStep::Poll { queue, capacity } => claimer.poll(queue, capacity).await,
            ClaimStep::WaitForCapacity => claimer.wait_for_capacity().await,
            ClaimStep::WaitForJobs => claimer.wait_for_jobs().await,
        }
    }
}

impl Claimer {
    /// Makes the claimer poll every queue again.
    fn mark_all_nonempty(&mut self) {
        for queue in &mut self.queues {
            queue.is_empty = false;
        }
    }

    /// Chooses the next queue in turn that may have jobs.
    fn next_step(&mut self) -> ClaimStep {
        let now = Instant::now();
        let mut all_empty = true;
        for step in 0..self.queues.len() {
            let index = (self.turn + step) % self.queues.len();
            let queue = &self.queues[index];
            if queue.is_empty {
                continue;
            }
            all_empty = false;
            let until = queue.limited_until.max(self.prefetch_off_until);
            let prefetch = until.is_none_or(|until| now >= until);
            let capacity = self.shared.state.claim_capacity(prefetch);
            if capacity > 0 {
                self.turn = (index + 1) % self.queues.len();
                return ClaimStep::Poll {
                    queue: index,
                    capacity: capacity.min(JOB_MAX_BATCH),
                };
            }
        }
        if all_empty {
            ClaimStep::WaitForJobs
        } else {
            ClaimStep::WaitForCapacity
        }
    }

    async fn poll(&mut self, index: usize, capacity: usize) {
        let shared = self.shared.clone();
        let queue = self.queues[index].name.clone();
        let claim = JobClaim {
            queue: queue.to_string(),
            worker: shared.options.name.to_string(),
            max: u32::try_from(capacity).unwrap_or(u32::MAX),
            lease: shared.options.lease,
        };
        // Read before the claim is sent: the leases start later than this.
        let sent = Instant::now();
        match shared.source.claim(&claim).await {
            Ok(claimed) => {
                self.failures.succeeded();
                // The source may have claimed the jobs before it was asked for them.
                let leased_from = Instant::now().checked_sub(claimed.lease_age);
                let sent = leased_from.map_or(sent, |from| from.min(sent));
                if self.handle_claimed(index, claimed, sent) {
                    // Lets the started jobs begin before the next claim is sent.
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                let wait = self.failures.failed(&error);
                self.pause(wait).await;
            }
        }
    }

    /// Applies the answer to a claim. Returns whether it contained jobs.
    fn handle_claimed(&mut self, index: usize, claimed: JobsClaimed, sent: Instant) -> bool {
        let now = Instant::now();
        let queue = &mut self.queues[index];
        queue.due = claimed.next_due_in.map(|due| now + due);
        let name = queue.name.clone();
        if claimed.at_limit {
            queue.limited_until = Some(now + LIMIT_HOLD);
        }
        let count = claimed.jobs.len();
        queue.is_empty = count == 0;
        if count > 0 {
            self.empty_rounds = 0;
            self.notify_requested = false;
            // Jobs may have arrived in the other queues meanwhile.
            self.mark_all_nonempty();
            self.start(claimed, &name, sent);
        } else if claimed.at_limit {
            self.shared.state.return_prefetched_of(&name);
        }
        self.shared.state.count(|stats| stats.polls += 1);
        count > 0
    }

    fn start(&mut self, claimed: JobsClaimed, queue: &Arc<str>, sent: Instant) {
        let shortest = claimed.jobs.iter().map(|job| job.lease).min();
        for job in self.shared.state.add_claimed(claimed.jobs, queue, sent) {
            tokio::spawn(runner::run(self.shared.clone(), job));
        }
        if claimed.at_limit {
            self.shared.state.return_prefetched_of(queue);
        }
        if let Some(shortest) = shortest.filter(|lease| *lease < self.lease) {
            self.lease = shortest;
            self.shared.shorter_lease.notify_one();
        }
        // A lease that has passed is left to the runner, which returns the job.
        let age = sent.elapsed();
        if shortest.is_some_and(|lease| age >= heartbeat_interval(lease) && age < lease) {
            self.shared.old_lease.notify_one();
        }
    }

    async fn wait_for_capacity(&mut self) {
        let shared = self.shared.clone();
        let prefetched = shared.state.prefetched_since();
        tokio::select! {
            () = self.shared.state.capacity.notified() => {
                if prefetched.is_some() {
                    // Prefetched jobs started in time, so prefetching pays off.
                    self.prefetch_off_for = PREFETCH_OFF;
                }
            }
            () = prefetch_timeout(&shared) => self.return_stale(),
            () = self.shared.stopping.cancelled() => {}
        }
    }

    fn return_stale(&mut self) {
        // Some jobs may have started meanwhile.
        let prefetched = self.shared.state.prefetched_since();
        if prefetched.is_some_and(|since| since.elapsed() >= self.shared.options.prefetch_timeout) {
            self.shared.state.return_prefetched();
            self.prefetch_off_until = Some(Instant::now() + self.prefetch_off_for);
            self.prefetch_off_for = (self.prefetch_off_for * 2).min(PREFETCH_OFF_MAX);
        }
    }

    /// Sleeps if a notification is requested and none has arrived. Otherwise requests one and polls every queue once more.
    async fn wait_for_jobs(&mut self) {
        if self.notify_requested && !self.notifications.has_changed().unwrap_or(false) {
            return self.sleep().await;
        }
        let wait = spurious_wakeup_delay(self.empty_rounds);
        self.empty_rounds = self.empty_rounds.saturating_add(1);
        if !wait.is_zero() {
            self.pause(wait).await;
        }
        // The poll after the request covers all notifications until now.
        self.notifications.borrow_and_update();
        self.notify_requested = tokio::select! {
            requested = self.shared.source.arm_notification() => requested.unwrap_or(false),
            () = self.shared.stopping.cancelled() => return,
        };
        if self.notify_requested {
            self.mark_all_nonempty();
        } else {
            self.sleep().await;
        }
    }

    /// Sleeps until a notification arrives, a job becomes due, or the poll interval has passed.
    async fn sleep(&mut self) {
        let shared = self.shared.clone();
        let started = Instant::now();
        let poll = started + self.shared.options.poll_interval;
        let due = self.queues.iter().filter_map(|queue| queue.due).min();
        tokio::select! {
            changed = self.notifications.changed() => {
                self.notify_requested = false;
                if changed.is_err() {
                    // The sender is gone, so only polling is left.
                    self.pause(self.shared.options.poll_interval).await;
                }
            }
            () = sleep_until(due.map_or(poll, |due| due.min(poll))) => {}
            () = prefetch_timeout(&shared) => self.return_stale(),
            () = self.shared.stopping.cancelled() => {}
        }
        if started.elapsed() >= QUIET_PERIOD {
            self.empty_rounds = 0;
        }
        self.mark_all_nonempty();
    }

    async fn pause(&self, wait: Duration) {
        tokio::select! {
            () = sleep_until(Instant::now() + wait) => {}
            () = self.shared.stopping.cancelled() => {}
        }
    }
}

/// Returns when prefetched jobs have waited too long for a runner; never if there are none.
async fn prefetch_timeout(shared: &Shared) {
    match shared.state.prefetched_since() {
        Some(since) => sleep_until(since + shared.options.prefetch_timeout).await,
        None => std::future::pending().await,
    }
}
