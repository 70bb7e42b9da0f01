//! The model: a store in memory, too simple to be wrong in the ways a database can be. Stores are compared with it.

mod apply;
mod catalog;
mod claim;
mod compare;
mod database;
mod end;
mod enqueue;
mod execution;
mod follow;
mod graph;
mod graph_pair;
mod job;
mod job_pair;
mod key;
mod lease;
mod named_lock;
mod op;
mod pair;
mod queue;
mod read;
mod request;
mod run;
mod state;
mod wake;

pub use op::Op;
pub use run::model_test;

use job::Jobs;
use leasehold_core::Timestamp;
use leasehold_store::ManualClock;
use state::State;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use wake::Bells;

/// A store in memory, on a clock that a test moves.
pub struct Model {
    state: Mutex<State>,
    jobs: Mutex<Jobs>,
    bells: Bells,
    job_bell: watch::Sender<u64>,
    clock: ManualClock,
}

impl Model {
    /// An empty model.
    pub fn new(clock: ManualClock) -> Self {
        Self {
            state: Mutex::default(),
            jobs: Mutex::default(),
            bells: Bells::default(),
            job_bell: watch::Sender::default(),
            clock,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the jobs, and rings where others could now find one.
    fn jobs<T>(&self, act: impl FnOnce(&mut Jobs, Timestamp) -> T) -> T {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = act(&mut jobs, self.now());
        if std::mem::take(&mut jobs.rings) {
            self.job_bell.send_modify(|rings| *rings += 1);
        }
        answer
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
