//! The reference model: a simple store in memory. Tests compare real stores with it.

mod apply;
mod audit;
mod catalog;
mod claim;
mod claim_check;
mod compare;
mod comparison;
mod database;
mod end;
mod enqueue;
mod execution;
mod graph;
mod graph_comparison;
mod job;
mod job_comparison;
mod key;
mod lease;
mod named_lock;
mod notification;
mod op;
mod queue;
mod queue_access;
mod read;
mod request;
mod run;
mod state;

pub use op::Op;
pub use run::model_test;

use job::Jobs;
use leasehold_core::Timestamp;
use leasehold_store::ManualClock;
use notification::Notifiers;
use state::State;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A store in memory with a manual clock.
pub struct Model {
    state: Mutex<State>,
    jobs: Mutex<Jobs>,
    notifiers: Notifiers,
    job_notifications: watch::Sender<u64>,
    clock: ManualClock,
}

impl Model {
    /// An empty model.
    pub fn new(clock: ManualClock) -> Self {
        Self {
            state: Mutex::default(),
            jobs: Mutex::default(),
            notifiers: Notifiers::default(),
            job_notifications: watch::Sender::default(),
            clock,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` on the jobs, and notifies subscribers if a job may have become available.
    fn jobs<T>(&self, act: impl FnOnce(&mut Jobs, Timestamp) -> T) -> T {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = act(&mut jobs, self.now());
        jobs.end_group_call(self.now());
        if std::mem::take(&mut jobs.notify) {
            self.job_notifications.send_modify(|count| *count += 1);
        }
        answer
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
