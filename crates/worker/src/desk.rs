//! Where the tasks of a worker leave things for each other: jobs that wait for a runner, ends that wait to be written down, leases that are held.
//! Knows no store and no handler.

use crate::held::{Fate, Held};
use crate::stats::Stats;
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinish, JobFinished, JobRef};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Leases held at most, as a multiple of the jobs that run or wait: the rest are ends that are not written down yet.
const MOST_HELD: usize = 4;

pub(crate) struct Desk {
    concurrency: usize,
    prefetch: usize,
    state: Mutex<State>,
    /// Rung when an end waits to be written down.
    pub(crate) results: Notify,
    /// Rung when there may be room for more jobs.
    pub(crate) room: Notify,
    /// Rung when the last runner ended, or the last end was written down.
    pub(crate) quiet: Notify,
}

/// What became of ends that were sent.
#[derive(Default)]
pub(crate) struct Written {
    /// The leases that were lost.
    pub(crate) lost: Vec<Arc<Held>>,
    /// The ends that are still to be written down.
    pub(crate) left: Vec<JobFinish>,
}

#[derive(Default)]
struct State {
    /// Claimed and not started. If any wait, all runners are busy.
    ready: VecDeque<Arc<Held>>,
    leases: HashMap<JobRef, Arc<Held>>,
    ends: Vec<JobFinish>,
    /// How many runners there are.
    running: usize,
    /// How many ends are being written down.
    writing: usize,
    stopping: bool,
    stats: Stats,
}

impl Desk {
    pub(crate) fn new(concurrency: usize, prefetch: usize) -> Self {
        Self {
            concurrency,
            prefetch,
            state: Mutex::default(),
            results: Notify::new(),
            room: Notify::new(),
            quiet: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lock().stats
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.lock().stats);
    }

    /// How many jobs to claim now, beyond those that can start only if `ahead`. None while enough wait: a claim for many costs as much as
    /// one for few.
    pub(crate) fn room(&self, ahead: bool) -> usize {
        let state = self.lock();
        let prefetch = if ahead { self.prefetch } else { 0 };
        let most_held = MOST_HELD * (self.concurrency + self.prefetch);
        if state.stopping
            || state.ready.len() > self.prefetch / 2
            || state.leases.len() >= most_held
        {
            return 0;
        }
        let taken = state.running + state.ready.len();
        (self.concurrency + prefetch).saturating_sub(taken)
    }

    /// Takes in what a claim brought. Returns those to start, for each of which a runner is counted already; the others wait.
    pub(crate) fn take_in(
        &self,
        jobs: Vec<ClaimedJob>,
        queue: &Arc<str>,
        asked: Instant,
    ) -> Vec<Arc<Held>> {
        let jobs: Vec<Arc<Held>> = jobs
            .into_iter()
            .map(|job| Arc::new(Held::new(job, queue.clone(), asked)))
            .collect();
        let mut state = self.lock();
        state.stats.claimed += jobs.len() as u64;
        let mut start = Vec::with_capacity(jobs.len().min(self.concurrency));
        for held in jobs {
            state.leases.insert(held.claim(), held.clone());
            if state.stopping {
                state.give_back(&held);
            } else if state.running < self.concurrency {
                state.running += 1;
                start.push(held);
            } else {
                state.ready.push_back(held);
            }
        }
        let stopping = state.stopping;
        drop(state);
        if stopping {
            self.results.notify_one();
        }
        start
    }

    /// A runner is done with a job, and here is how it ended if that counts. Returns the runner's next job; if there is none the runner ends.
    pub(crate) fn next(&self, held: &Held, end: Option<JobEnd>) -> Option<Arc<Held>> {
        let mut state = self.lock();
        let ended = end
            .filter(|_| held.fate() != Fate::Lost)
            .map(|end| state.end(held, end))
            .is_some();
        let next = state.ready.pop_front();
        if next.is_none() {
            state.running -= 1;
        }
        let wanting = state.ready.len() <= self.prefetch / 2;
        let quiet = state.running == 0;
        drop(state);
        if ended {
            self.results.notify_one();
        }
        if wanting {
            self.room.notify_one();
        }
        if quiet {
            self.quiet.notify_one();
        }
        next
    }

    /// Takes a lease out that is lost; says whether that is news.
    pub(crate) fn lose(&self, held: &Held) -> bool {
        // Under the lock, so that an end is either written down or lost, not both.
        let mut state = self.lock();
        if held.is_done() || !held.lose() {
            return false;
        }
        state.leases.remove(&held.claim());
        state.stats.lost += 1;
        let before = state.ready.len();
        state
            .ready
            .retain(|waiting| waiting.claim() != held.claim());
        let fewer = state.ready.len() < before;
        drop(state);
        if fewer {
            self.room.notify_one();
        }
        true
    }

    /// Takes up to `most` ends to write down.
    pub(crate) fn ends(&self, most: usize) -> Vec<JobFinish> {
        let mut state = self.lock();
        let ends = if state.ends.len() <= most {
            std::mem::take(&mut state.ends)
        } else {
            state.ends.drain(..most).collect()
        };
        state.writing += ends.len();
        ends
    }

    /// The lease of a claim.
    pub(crate) fn lease(&self, claim: JobRef) -> Option<Arc<Held>> {
        self.lock().leases.get(&claim).cloned()
    }

    /// All leases that are held.
    pub(crate) fn leases(&self) -> Vec<Arc<Held>> {
        self.lock().leases.values().cloned().collect()
    }

    /// Takes note of what became of ends that were sent.
    pub(crate) fn written(&self, ends: &[JobFinish], answers: &[JobFinished]) -> Written {
        let mut state = self.lock();
        let mut written = Written::default();
        for (finish, answer) in ends.iter().zip(answers) {
            let stats = &mut state.stats;
            let mut is_lost = false;
            match (answer, &finish.end) {
                (JobFinished::Completed, _) => stats.completed += 1,
                (JobFinished::Failed, _) => stats.failed += 1,
                (JobFinished::Queued { .. }, JobEnd::Snoozed(_)) => stats.snoozed += 1,
                (JobFinished::Queued { .. }, JobEnd::GivenBack) => stats.given_back += 1,
                (JobFinished::Queued { .. }, JobEnd::Failed { .. } | JobEnd::Completed { .. }) => {
                    stats.retried += 1;
                }
                (JobFinished::LeaseLost, _) => {
                    stats.lost += 1;
                    is_lost = true;
                }
                (JobFinished::NotWritten, _) => {
                    written.left.push(finish.clone());
                    continue;
                }
            }
            let held = state.leases.remove(&finish.claim);
            written.lost.extend(held.filter(|_| is_lost));
        }
        state.stats.finishes += 1;
        self.written_so_many(state, ends.len() - written.left.len());
        written
    }

    /// Takes note of ends that are not written down and never will be.
    pub(crate) fn given_up(&self, ends: &[JobFinish]) {
        let mut state = self.lock();
        for finish in ends {
            state.leases.remove(&finish.claim);
        }
        state.stats.lost += ends.len() as u64;
        self.written_so_many(state, ends.len());
    }

    fn written_so_many(&self, mut state: MutexGuard<'_, State>, count: usize) {
        state.writing -= count;
        let quiet = state.writing == 0 && state.ends.is_empty();
        drop(state);
        self.room.notify_one();
        if quiet {
            self.quiet.notify_one();
        }
    }

    /// Since when the first job waits that does.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        self.lock().ready.front().map(|held| held.asked)
    }

    /// Gives back all that waits.
    pub(crate) fn give_back_all_waiting(&self) {
        self.give_back(|_| true);
    }

    /// Gives back what waits of a queue.
    pub(crate) fn give_back_waiting(&self, queue: &str) {
        self.give_back(|held| &*held.queue == queue);
    }

    /// No more is taken in or started; what waits is given back.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.give_back(|_| true);
    }

    fn give_back(&self, which: impl Fn(&Held) -> bool) {
        let mut state = self.lock();
        let (back, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut state.ready)
            .into_iter()
            .partition(|held| which(held));
        state.ready = kept;
        for held in &back {
            state.give_back(held);
        }
        drop(state);
        if !back.is_empty() {
            self.results.notify_one();
        }
    }

    /// How many runners there are.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    /// How many ends are not written down yet.
    pub(crate) fn unwritten(&self) -> usize {
        let state = self.lock();
        state.writing + state.ends.len()
    }
}

impl State {
    fn end(&mut self, held: &Held, end: JobEnd) {
        held.set_done();
        self.ends.push(JobFinish {
            claim: held.claim(),
            end,
        });
    }

    fn give_back(&mut self, held: &Held) {
        self.end(held, JobEnd::GivenBack);
    }
}
