//! A store layer that injects faults by call name: calls fail, panic, lose their answer or block. Asserts nothing.

use leasehold_store::{Error, ErrorKind, Result, StoreCall, StoreLayer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// The fault of one call.
#[derive(Clone)]
pub(crate) enum StoreFault {
    /// No fault: the call runs.
    Passes,
    /// The call is lost and never runs.
    CallLost,
    /// The call runs; its answer is lost.
    AnswerLost,
    /// The call waits for a permit before it runs.
    Waits(Arc<Semaphore>),
    /// The call panics before it runs.
    Panics,
}

/// The faults of a store's calls; clones share them.
#[derive(Clone, Default)]
pub(crate) struct StoreFaults {
    planned: Arc<Mutex<HashMap<&'static str, VecDeque<StoreFault>>>>,
    calls: Arc<Mutex<HashMap<&'static str, usize>>>,
}

impl StoreFaults {
    /// Injects faults into the next calls of this name; later calls are real.
    pub(crate) fn inject(&self, name: &'static str, faults: &[StoreFault]) {
        let mut planned = self.planned.lock().unwrap();
        let queue = planned.entry(name).or_default();
        queue.extend(faults.iter().cloned());
    }

    /// Returns how often this call was made.
    pub(crate) fn calls(&self, name: &'static str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// Counts the call and returns its planned fault.
    fn next(&self, name: &'static str) -> Option<StoreFault> {
        *self.calls.lock().unwrap().entry(name).or_default() += 1;
        let mut planned = self.planned.lock().unwrap();
        planned.get_mut(name).and_then(VecDeque::pop_front)
    }
}

fn lost(name: &'static str) -> Error {
    Error::new(name, ErrorKind::Unavailable("injected".to_owned()))
}

impl StoreLayer for StoreFaults {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match self.next(call.name()) {
            None | Some(StoreFault::Passes) => {}
            Some(StoreFault::Panics) => panic!("injected"),
            Some(StoreFault::CallLost) => return Err(lost(call.name())),
            Some(StoreFault::Waits(barrier)) => barrier.acquire().await.unwrap().forget(),
            Some(StoreFault::AnswerLost) => {
                run.await?;
                return Err(lost(call.name()));
            }
        }
        run.await
    }
}
