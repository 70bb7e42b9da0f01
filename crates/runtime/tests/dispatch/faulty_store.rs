//! A layer of faults before a real store: calls by name fail, lose their answer or stand still. Judges nothing.

use leasehold_store::{Error, ErrorKind, Result, StoreCall, StoreLayer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What happens to one call.
#[derive(Clone)]
pub(crate) enum Outage {
    /// None: it is done, and the next may go otherwise.
    Passes,
    /// It never arrives.
    CallLost,
    /// It is done; the answer never arrives.
    AnswerLost,
    /// It waits for a permit before it is done.
    Waits(Arc<Semaphore>),
}

/// The faults of a store's calls; clones share them.
#[derive(Clone, Default)]
pub(crate) struct StoreFaults {
    planned: Arc<Mutex<HashMap<&'static str, VecDeque<Outage>>>>,
    calls: Arc<Mutex<HashMap<&'static str, usize>>>,
}

impl StoreFaults {
    /// The next calls of this name go so; those after them are real.
    pub(crate) fn inject(&self, name: &'static str, outages: &[Outage]) {
        let mut planned = self.planned.lock().unwrap();
        let queue = planned.entry(name).or_default();
        queue.extend(outages.iter().cloned());
    }

    /// How often this was called.
    pub(crate) fn calls(&self, name: &'static str) -> usize {
        self.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// What is planned for this call, counted.
    fn next(&self, name: &'static str) -> Option<Outage> {
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
            None | Some(Outage::Passes) => {}
            Some(Outage::CallLost) => return Err(lost(call.name())),
            Some(Outage::Waits(barrier)) => barrier.acquire().await.unwrap().forget(),
            Some(Outage::AnswerLost) => {
                run.await?;
                return Err(lost(call.name()));
            }
        }
        run.await
    }
}
