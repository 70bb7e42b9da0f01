//! Looks for jobs whenever there is room for some, in every queue in turn, and sleeps while there are none. Knows nothing of what becomes of them.

use crate::runner;
use crate::shared::Shared;
use leasehold_core::job::{JobClaim, JobsClaimed};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_core::rest::{SILENCE, rest_after};
use leasehold_service::FailureStreak;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How long a queue that met a limit is claimed from without prefetching: a limit is for what runs, not for what waits in a worker's hands.
const LIMITED_FOR: Duration = Duration::from_secs(5);

/// How long nothing is claimed ahead after jobs waited too long for a runner; doubles up to the second while that goes on.
const NOT_AHEAD_FOR: Duration = Duration::from_secs(10);
const NOT_AHEAD_FOR_AT_MOST: Duration = Duration::from_secs(300);

struct Claimer {
    shared: Arc<Shared>,
    bell: watch::Receiver<u64>,
    queues: Vec<Queue>,
    /// Whose turn it is.
    turn: usize,
    /// Whether whatever brings jobs rings.
    armed: bool,
    /// Rounds in a row that brought nothing.
    fruitless: u32,
    /// Until when nothing is claimed ahead, and for how long the next time.
    not_ahead_until: Option<Instant>,
    not_ahead_for: Duration,
    /// The shortest lease so far.
    lease: Duration,
    failures: FailureStreak,
}

struct Queue {
    name: Arc<str>,
    /// Whether the last look brought nothing, and nothing has happened since.
    dry: bool,
    /// When its next job becomes due.
    due: Option<Instant>,
    limited_until: Option<Instant>,
}

/// What to do next.
enum Turn {
    Look {
        queue: usize,
        room: usize,
    },
    /// There is no room, in this worker or beside a limit.
    Full,
    /// There was nothing anywhere.
    Dry,
}

/// Runs until the worker stops. A claim that is under way then is waited for: what it brings is given back.
pub(crate) async fn run(shared: Arc<Shared>) {
    let queues = shared.options.queues.iter().map(|name| Queue {
        name: name.clone(),
        dry: false,
        due: None,
        limited_until: None,
    });
    let mut claimer = Claimer {
        bell: shared.source.bell(),
        queues: queues.collect(),
        turn: 0,
        armed: false,
        fruitless: 0,
        not_ahead_until: None,
        not_ahead_for: NOT_AHEAD_FOR,
        lease: shared
            .options
            .lease
            .unwrap_or(leasehold_core::lease::DEFAULT_LEASE),
        failures: FailureStreak::of("worker").action("claim jobs"),
        shared,
    };
    while !claimer.shared.stopping.is_cancelled() {
        match claimer.turn() {
            Turn::Look { queue, room } => claimer.look(queue, room).await,
            Turn::Full => claimer.wait_for_room().await,
            Turn::Dry => claimer.rest_or_sleep().await,
        }
    }
}

impl Claimer {
    /// Every queue is worth a look again.
    fn wet_all(&mut self) {
        for queue in &mut self.queues {
            queue.dry = false;
        }
    }

    /// The next queue in turn that is worth a look.
    fn turn(&mut self) -> Turn {
        let now = Instant::now();
        let mut any_wet = false;
        for step in 0..self.queues.len() {
            let index = (self.turn + step) % self.queues.len();
            let queue = &self.queues[index];
            if queue.dry {
                continue;
            }
            any_wet = true;
            let until = queue.limited_until.max(self.not_ahead_until);
            let ahead = until.is_none_or(|until| now >= until);
            let room = self.shared.desk.room(ahead);
            if room > 0 {
                self.turn = (index + 1) % self.queues.len();
                return Turn::Look {
                    queue: index,
                    room: room.min(JOB_MAX_BATCH),
                };
            }
        }
        if any_wet { Turn::Full } else { Turn::Dry }
    }

    async fn look(&mut self, index: usize, room: usize) {
        let shared = self.shared.clone();
        let queue = self.queues[index].name.clone();
        let claim = JobClaim {
            queue: queue.to_string(),
            worker: shared.options.name.to_string(),
            max: u32::try_from(room).unwrap_or(u32::MAX),
            lease: shared.options.lease,
        };
        // Before it is sent: the leases begin later than this.
        let asked = Instant::now();
        match shared.source.claim(&claim).await {
            Ok(claimed) => {
                self.failures.succeeded();
                if self.looked(index, claimed, asked) {
                    // What was started begins before the next look is sent.
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                let wait = self.failures.failed(&error);
                self.pause(wait).await;
            }
        }
    }

    /// Takes in what a look brought; says whether it was anything.
    fn looked(&mut self, index: usize, claimed: JobsClaimed, asked: Instant) -> bool {
        let now = Instant::now();
        let queue = &mut self.queues[index];
        queue.due = claimed.next_due_in.map(|due| now + due);
        let name = queue.name.clone();
        if claimed.at_limit {
            queue.limited_until = Some(now + LIMITED_FOR);
        }
        let brought = claimed.jobs.len();
        queue.dry = brought == 0;
        if brought > 0 {
            self.fruitless = 0;
            self.armed = false;
            // The others may have got something while this one was worked on.
            self.wet_all();
            self.start(claimed, &name, asked);
        } else if claimed.at_limit {
            self.shared.desk.give_back_waiting(&name);
        }
        self.shared.desk.count(|stats| stats.looks += 1);
        brought > 0
    }

    fn start(&mut self, claimed: JobsClaimed, queue: &Arc<str>, asked: Instant) {
        let shortest = claimed.jobs.iter().map(|job| job.lease).min();
        for held in self.shared.desk.take_in(claimed.jobs, queue, asked) {
            tokio::spawn(runner::run(self.shared.clone(), held));
        }
        if claimed.at_limit {
            self.shared.desk.give_back_waiting(queue);
        }
        if let Some(shortest) = shortest.filter(|lease| *lease < self.lease) {
            self.lease = shortest;
            self.shared.shorter_lease.notify_one();
        }
    }

    async fn wait_for_room(&mut self) {
        let shared = self.shared.clone();
        let waiting = shared.desk.waiting_since();
        tokio::select! {
            () = self.shared.desk.room.notified() => {
                if waiting.is_some() {
                    // They did not wait for long: claiming ahead is of use.
                    self.not_ahead_for = NOT_AHEAD_FOR;
                }
            }
            () = stale(&shared) => self.give_back_stale(),
            () = self.shared.stopping.cancelled() => {}
        }
    }

    fn give_back_stale(&mut self) {
        // Some may have started meanwhile.
        let waiting = self.shared.desk.waiting_since();
        if waiting.is_some_and(|since| since.elapsed() >= self.shared.options.prefetch_patience) {
            self.shared.desk.give_back_all_waiting();
            self.not_ahead_until = Some(Instant::now() + self.not_ahead_for);
            self.not_ahead_for = (self.not_ahead_for * 2).min(NOT_AHEAD_FOR_AT_MOST);
        }
    }

    /// Every queue is dry. Whoever is armed, and has heard nothing since, sleeps; whoever is not arms and looks once more.
    async fn rest_or_sleep(&mut self) {
        if self.armed && !self.bell.has_changed().unwrap_or(false) {
            return self.sleep().await;
        }
        let rest = rest_after(self.fruitless);
        self.fruitless = self.fruitless.saturating_add(1);
        if !rest.is_zero() {
            self.pause(rest).await;
        }
        // What rang until now is covered by the look after arming.
        self.bell.borrow_and_update();
        self.armed = tokio::select! {
            armed = self.shared.source.arm() => armed.unwrap_or(false),
            () = self.shared.stopping.cancelled() => return,
        };
        if self.armed {
            self.wet_all();
        } else {
            self.sleep().await;
        }
    }

    /// Until it rings, a job becomes due, or long enough to look without a reason.
    async fn sleep(&mut self) {
        let shared = self.shared.clone();
        let asleep = Instant::now();
        let poll = asleep + self.shared.options.poll_interval;
        let due = self.queues.iter().filter_map(|queue| queue.due).min();
        tokio::select! {
            rung = self.bell.changed() => {
                self.armed = false;
                if rung.is_err() {
                    // Nobody is left to ring, so only looking helps.
                    self.pause(self.shared.options.poll_interval).await;
                }
            }
            () = sleep_until(due.map_or(poll, |due| due.min(poll))) => {}
            () = stale(&shared) => self.give_back_stale(),
            () = self.shared.stopping.cancelled() => {}
        }
        if asleep.elapsed() >= SILENCE {
            self.fruitless = 0;
        }
        self.wet_all();
    }

    async fn pause(&self, wait: Duration) {
        tokio::select! {
            () = sleep_until(Instant::now() + wait) => {}
            () = self.shared.stopping.cancelled() => {}
        }
    }
}

/// Returns when jobs have waited too long for a runner; never if none wait.
async fn stale(shared: &Shared) {
    match shared.desk.waiting_since() {
        Some(since) => sleep_until(since + shared.options.prefetch_patience).await,
        None => std::future::pending().await,
    }
}
