//! A source of jobs that counts what is asked of it, and lets calls fail, lose their answer or wait. Judges nothing.

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed};
use leasehold_core::{JobId, JsonText};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// What happens to one call.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It never arrives.
    CallLost,
    /// It is done; the answer never arrives.
    AnswerLost,
    /// It waits for a permit before it is done.
    Waits(Arc<Semaphore>),
    /// The store will never take it.
    Refused,
    /// The first end of a finish is not written, the others are.
    FirstNotWritten,
}

pub(crate) struct Spy {
    real: Arc<dyn JobSource>,
    planned: Mutex<HashMap<&'static str, VecDeque<Fault>>>,
    always: Mutex<HashMap<&'static str, Fault>>,
    calls: Mutex<HashMap<&'static str, Vec<usize>>>,
    claims: Mutex<Vec<JobClaim>>,
    /// The bell of one that hears nothing.
    silence: Mutex<Option<watch::Sender<u64>>>,
}

impl Spy {
    pub(crate) fn before(real: Arc<dyn JobSource>) -> Self {
        Self {
            real,
            planned: Mutex::default(),
            always: Mutex::default(),
            calls: Mutex::default(),
            claims: Mutex::default(),
            silence: Mutex::default(),
        }
    }

    /// The next calls of this name go so; those after them are real.
    pub(crate) fn plan(&self, name: &'static str, faults: &[Fault]) {
        let mut planned = self.planned.lock().unwrap();
        planned
            .entry(name)
            .or_default()
            .extend(faults.iter().cloned());
    }

    /// All calls of this name go so from now on.
    pub(crate) fn always(&self, name: &'static str, fault: Fault) {
        self.always.lock().unwrap().insert(name, fault);
    }

    /// Workers that start from now on hear no bell.
    pub(crate) fn deafen(&self) {
        *self.silence.lock().unwrap() = Some(watch::channel(0).0);
    }

    /// How many things each call of this name was about.
    pub(crate) fn sizes(&self, name: &'static str) -> Vec<usize> {
        let calls = self.calls.lock().unwrap();
        calls.get(name).cloned().unwrap_or_default()
    }

    /// How often this was called.
    pub(crate) fn calls(&self, name: &'static str) -> usize {
        self.sizes(name).len()
    }

    /// Every claim that was asked for.
    pub(crate) fn claims(&self) -> Vec<JobClaim> {
        self.claims.lock().unwrap().clone()
    }

    async fn call<T>(
        &self,
        name: &'static str,
        size: usize,
        real: impl Future<Output = SourceResult<T>>,
    ) -> SourceResult<T> {
        let sizes = &self.calls;
        sizes.lock().unwrap().entry(name).or_default().push(size);
        let planned = {
            let mut planned = self.planned.lock().unwrap();
            planned.get_mut(name).and_then(VecDeque::pop_front)
        };
        let always = self.always.lock().unwrap().get(name).cloned();
        match planned.or(always) {
            None => real.await,
            Some(Fault::CallLost) => Err(lost(name)),
            Some(Fault::AnswerLost) => {
                real.await?;
                Err(lost(name))
            }
            Some(Fault::Waits(barrier)) => {
                barrier.acquire().await.unwrap().forget();
                real.await
            }
            Some(Fault::Refused | Fault::FirstNotWritten) => {
                Err(SourceError::rejected(format!("{name}: injected")))
            }
        }
    }

    fn takes_but_the_first(&self, name: &'static str) -> bool {
        let mut planned = self.planned.lock().unwrap();
        let next = planned.get_mut(name).and_then(|faults| {
            faults.pop_front_if(|fault| matches!(fault, Fault::FirstNotWritten))
        });
        next.is_some()
    }
}

fn lost(name: &'static str) -> SourceError {
    SourceError::unavailable(format!("{name}: injected"))
}

#[async_trait]
impl JobSource for Spy {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.claims.lock().unwrap().push(claim.clone());
        self.call("claim", claim.max as usize, self.real.claim(claim))
            .await
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<Vec<JobId>> {
        let real = self.real.renew(worker, claims, lease);
        self.call("renew", claims.len(), real).await
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        if !self.takes_but_the_first("finish") {
            let real = self.real.finish(worker, finishes);
            return self.call("finish", finishes.len(), real).await;
        }
        let real = self.real.finish(worker, &finishes[1..]);
        let mut answers = self.call("finish", finishes.len(), real).await?;
        answers.insert(0, JobFinished::NotWritten);
        Ok(answers)
    }

    async fn progress(
        &self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
    ) -> SourceResult<bool> {
        let real = self.real.progress(worker, claim, progress);
        self.call("progress", 1, real).await
    }

    async fn arm(&self) -> SourceResult<bool> {
        self.call("arm", 1, self.real.arm()).await
    }

    fn bell(&self) -> watch::Receiver<u64> {
        match &*self.silence.lock().unwrap() {
            Some(silence) => silence.subscribe(),
            None => self.real.bell(),
        }
    }
}
