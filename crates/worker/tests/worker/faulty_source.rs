//! A job source that counts calls and injects faults: failures, lost answers, delays. Asserts nothing.

use async_trait::async_trait;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_core::{JobId, JsonText};
use leasehold_worker::{JobSource, SourceError, SourceResult};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// The fault of one call.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The call never arrives.
    CallLost,
    /// The call takes effect; its answer never arrives.
    AnswerLost,
    /// The call waits for a permit.
    Waits(Arc<Semaphore>),
    /// The store rejects the call permanently.
    Rejected,
    /// The store writes all results of a finish call but the first.
    FirstNotWritten,
}

/// Jobs whose rows are locked in the store: their leases are busy, their results are not written.
#[derive(Default)]
struct LockedJobs {
    jobs: HashSet<JobId>,
    /// Whether all but these are locked.
    others: bool,
}

pub(crate) struct FaultySource {
    real: Arc<dyn JobSource>,
    planned: Mutex<HashMap<&'static str, VecDeque<Fault>>>,
    always: Mutex<HashMap<&'static str, Fault>>,
    calls: Mutex<HashMap<&'static str, Vec<usize>>>,
    claims: Mutex<Vec<JobClaim>>,
    locked: Mutex<LockedJobs>,
    /// The age of the leases in the next answer with jobs.
    next_lease_age: Mutex<Option<Duration>>,
    /// Replaces the notifications while they are dropped.
    silence: Mutex<Option<watch::Sender<u64>>>,
}

impl FaultySource {
    pub(crate) fn before(real: Arc<dyn JobSource>) -> Self {
        Self {
            real,
            planned: Mutex::default(),
            always: Mutex::default(),
            calls: Mutex::default(),
            claims: Mutex::default(),
            locked: Mutex::default(),
            next_lease_age: Mutex::default(),
            silence: Mutex::default(),
        }
    }

    /// Injects these faults into the next calls of this name.
    pub(crate) fn plan(&self, name: &'static str, faults: &[Fault]) {
        let mut planned = self.planned.lock().unwrap();
        planned
            .entry(name)
            .or_default()
            .extend(faults.iter().cloned());
    }

    /// Injects this fault into all calls of this name from now on.
    pub(crate) fn always(&self, name: &'static str, fault: Fault) {
        self.always.lock().unwrap().insert(name, fault);
    }

    /// Locks the rows of a job, as another transaction does.
    pub(crate) fn lock(&self, job: JobId) {
        self.locked.lock().unwrap().jobs.insert(job);
    }

    /// Locks the rows of all jobs but this.
    pub(crate) fn lock_all_but(&self, job: JobId) {
        let jobs = HashSet::from([job]);
        *self.locked.lock().unwrap() = LockedJobs { jobs, others: true };
    }

    pub(crate) fn unlock_all(&self) {
        *self.locked.lock().unwrap() = LockedJobs::default();
    }

    fn is_locked(&self, claim: JobRef) -> bool {
        let locked = self.locked.lock().unwrap();
        locked.others != locked.jobs.contains(&claim.job)
    }

    /// The next jobs are answered this long after they were claimed, as from a buffer.
    pub(crate) fn age_next_leases(&self, age: Duration) {
        *self.next_lease_age.lock().unwrap() = Some(age);
    }

    /// Workers that start from now on get no notifications.
    pub(crate) fn drop_notifications(&self) {
        *self.silence.lock().unwrap() = Some(watch::channel(0).0);
    }

    /// Returns the number of items in each call of this name.
    pub(crate) fn sizes(&self, name: &'static str) -> Vec<usize> {
        let calls = self.calls.lock().unwrap();
        calls.get(name).cloned().unwrap_or_default()
    }

    /// Returns the number of calls of this name.
    pub(crate) fn calls(&self, name: &'static str) -> usize {
        self.sizes(name).len()
    }

    /// Returns every claim sent.
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
            Some(Fault::Rejected | Fault::FirstNotWritten) => {
                Err(SourceError::rejected(format!("{name}: injected")))
            }
        }
    }

    fn rejects_first(&self, name: &'static str) -> bool {
        let mut planned = self.planned.lock().unwrap();
        let next = planned.get_mut(name).and_then(|faults| {
            faults.pop_front_if(|fault| matches!(fault, Fault::FirstNotWritten))
        });
        next.is_some()
    }
}

impl FaultySource {
    /// Finishes jobs, except the locked ones.
    async fn finish_free(
        &self,
        worker: &str,
        finishes: &[JobFinish],
    ) -> SourceResult<Vec<JobFinished>> {
        let is_locked: Vec<bool> = finishes.iter().map(|f| self.is_locked(f.claim)).collect();
        let free = finishes
            .iter()
            .zip(&is_locked)
            .filter(|(_, locked)| !**locked);
        let free: Vec<JobFinish> = free.map(|(finish, _)| finish.clone()).collect();
        let real = self.real.finish(worker, &free);
        let mut answers = self.call("finish", finishes.len(), real).await?.into_iter();
        let answer = |locked: bool| match locked {
            true => Some(JobFinished::NotWritten),
            false => answers.next(),
        };
        Ok(is_locked.into_iter().map_while(answer).collect())
    }
}

fn lost(name: &'static str) -> SourceError {
    SourceError::unavailable(format!("{name}: injected"))
}

#[async_trait]
impl JobSource for FaultySource {
    async fn claim(&self, claim: &JobClaim) -> SourceResult<JobsClaimed> {
        self.claims.lock().unwrap().push(claim.clone());
        let real = self.real.claim(claim);
        let mut claimed = self.call("claim", claim.max as usize, real).await?;
        if !claimed.jobs.is_empty()
            && let Some(age) = self.next_lease_age.lock().unwrap().take()
        {
            claimed.lease_age = age;
        }
        Ok(claimed)
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> SourceResult<JobsRenewed> {
        let (locked, free): (Vec<JobRef>, Vec<JobRef>) =
            claims.iter().partition(|claim| self.is_locked(**claim));
        let real = self.real.renew(worker, &free, lease);
        let mut answer = self.call("renew", claims.len(), real).await?;
        answer.busy.extend(locked.iter().map(|claim| claim.job));
        Ok(answer)
    }

    async fn finish(&self, worker: &str, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinished>> {
        if !self.rejects_first("finish") {
            return self.finish_free(worker, finishes).await;
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

    async fn arm_notification(&self) -> SourceResult<bool> {
        self.call("arm_notification", 1, self.real.arm_notification())
            .await
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        match &*self.silence.lock().unwrap() {
            Some(silence) => silence.subscribe(),
            None => self.real.subscribe(),
        }
    }
}
