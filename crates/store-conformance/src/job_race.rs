//! Concurrent operations on the jobs of one store: nothing is lost, nothing is claimed twice, and every invariant holds.

use crate::Fixture;
use crate::factory::{LEASE, known, ok};
use crate::job_factory::{
    QUEUE, WORKER, completed, failed, finish_contended, job_claim, job_ids, job_with_dedup_key,
    new_job,
};
use crate::job_invariants;
use crate::seeded_rng::SeededRng;
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::{ManualClock, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const QUEUES: [&str; 2] = [QUEUE, "other"];

/// The state that the tasks of a race share.
#[derive(Clone)]
struct Race {
    store: Arc<dyn Store>,
    clock: ManualClock,
    enqueued: Arc<Mutex<BTreeSet<JobId>>>,
    claims: Arc<Mutex<Vec<(JobId, i64)>>>,
    /// Jobs that a finish reported as ended, with their status.
    ended: Arc<Mutex<BTreeMap<JobId, JobStatus>>>,
    writers: Arc<AtomicUsize>,
}

impl Race {
    fn new(f: &Fixture) -> Self {
        Self {
            store: f.store.clone(),
            clock: f.clock.clone(),
            enqueued: Arc::default(),
            claims: Arc::default(),
            ended: Arc::default(),
            writers: Arc::default(),
        }
    }

    async fn enqueue(self, seed: u64, rounds: u64) {
        let mut rng = SeededRng(seed);
        for _ in 0..rounds {
            let new: Vec<NewJob> = (0..1 + rng.below(8))
                .map(|_| self.new_job(&mut rng))
                .collect();
            let answers = ok(self.store.job_enqueue(&new).await);
            let ids = answers.iter().map(|answer| answer.id);
            self.enqueued
                .lock()
                .expect("the lock is not poisoned")
                .extend(ids);
        }
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    fn new_job(&self, rng: &mut SeededRng) -> NewJob {
        let key = format!("key-{}", rng.below(20));
        let base = match rng.below(5) {
            0 => job_with_dedup_key(&key, None),
            1 => job_with_dedup_key(&key, Some(2)),
            _ => new_job(),
        };
        NewJob {
            queue: QUEUES[rng.below(2) as usize].into(),
            priority: rng.below(3) as i16,
            start: match rng.below(4) {
                0 => JobStart::In(Duration::from_secs(rng.below(4))),
                _ => JobStart::Now,
            },
            max_attempts: Some(1 + rng.below(4) as u32),
            ..base
        }
    }

    async fn work(self, seed: u64) {
        let mut rng = SeededRng(seed);
        let worker = format!("worker-{seed}");
        while self.writers.load(Ordering::SeqCst) > 0 {
            let claim = JobClaim {
                queue: QUEUES[rng.below(2) as usize].into(),
                ..job_claim(&worker, 1 + rng.below(9) as u32)
            };
            let jobs = ok(self.store.job_claim(&claim).await).jobs;
            let tokens = jobs.iter().map(|job| (job.id, job.token));
            self.claims
                .lock()
                .expect("the lock is not poisoned")
                .extend(tokens);
            self.resolve(&worker, &jobs, &mut rng).await;
            tokio::task::yield_now().await;
        }
    }

    /// Does with the jobs what a worker may do, including misuse.
    async fn resolve(&self, worker: &str, jobs: &[ClaimedJob], rng: &mut SeededRng) {
        if rng.below(3) == 0 {
            let claims: Vec<_> = jobs.iter().map(ClaimedJob::claim).collect();
            ok(self.store.job_renew(worker, &claims, LEASE).await);
        }
        let mut finishes = Vec::new();
        for job in jobs {
            let end = match rng.below(9) {
                0 => continue,
                1 => failed(RetryMode::After(Duration::from_secs(rng.below(3)))),
                2 => failed(RetryMode::Never),
                3 => JobEnd::Snoozed(Duration::from_secs(rng.below(3))),
                4 => JobEnd::Returned,
                5 => {
                    let progress = JsonText::default();
                    let claim = job.claim();
                    ok(self.store.job_progress(worker, claim, &progress).await);
                    failed(RetryMode::Policy)
                }
                _ => completed(),
            };
            let claim = job.claim();
            finishes.push(JobFinish { claim, end });
        }
        let answers = finish_contended(&*self.store, worker, &finishes).await;
        for (finish, answer) in finishes.iter().zip(answers) {
            let status = match answer {
                JobFinished::Completed => JobStatus::Completed,
                JobFinished::Failed => JobStatus::Failed,
                JobFinished::Queued { .. } | JobFinished::LeaseLost | JobFinished::NotWritten => {
                    continue;
                }
            };
            self.note_end(finish.claim.job, status);
        }
    }

    fn note_end(&self, id: JobId, status: JobStatus) {
        let mut ended = self.ended.lock().expect("the lock is not poisoned");
        assert!(ended.insert(id, status).is_none(), "{id} ended twice");
    }

    /// Advances the clock, sweeps, cancels and changes limits while the others work.
    async fn disturb(self, seed: u64) {
        let mut rng = SeededRng(seed);
        while self.writers.load(Ordering::SeqCst) > 0 {
            self.clock.advance(Duration::from_millis(rng.below(2_000)));
            for expired in ok(self.store.job_requeue_expired(5).await) {
                if expired.status == JobStatus::Failed {
                    self.note_end(expired.claim.job, JobStatus::Failed);
                }
            }
            let some = {
                let enqueued = self.enqueued.lock().expect("the lock is not poisoned");
                let n = rng.below(enqueued.len().max(1) as u64) as usize;
                enqueued.iter().nth(n).copied()
            };
            if let Some(id) = some.filter(|_| rng.below(8) == 0)
                && ok(self.store.job_cancel(id).await)
                    == leasehold_store::job::JobCancelled::Cancelled
            {
                self.note_end(id, JobStatus::Failed);
            }
            let change = QueueChange {
                limit: Some([None, Some(1), Some(3), Some(20)][rng.below(4) as usize]),
                paused: Some(rng.below(6) == 0),
                ..QueueChange::default()
            };
            let queue = QUEUES[rng.below(2) as usize];
            ok(self
                .store
                .queue_update(queue, &change, &leasehold_store::Actor::Local)
                .await);
            let limit = [None, Some(4), Some(30)][rng.below(3) as usize];
            ok(self
                .store
                .job_limit_set(limit, &leasehold_store::Actor::Local)
                .await);
            tokio::task::yield_now().await;
        }
    }

    /// Removes limits and pauses, and works until every job has ended.
    async fn drain(&self, f: &Fixture) {
        ok(self
            .store
            .job_limit_set(None, &leasehold_store::Actor::Local)
            .await);
        let open = QueueChange {
            limit: Some(None),
            paused: Some(false),
            ..QueueChange::default()
        };
        for queue in QUEUES {
            ok(self
                .store
                .queue_update(queue, &open, &leasehold_store::Actor::Local)
                .await);
        }
        for _ in 0..200 {
            f.advance(60);
            let mut found = 0;
            for queue in QUEUES {
                let jobs = f.claim_jobs_from(queue, 100).await.jobs;
                found += jobs.len();
                for job in jobs {
                    self.claims
                        .lock()
                        .expect("the lock is not poisoned")
                        .push((job.id, job.token));
                    assert_eq!(
                        f.finish_job(&job, completed()).await,
                        JobFinished::Completed
                    );
                    self.note_end(job.id, JobStatus::Completed);
                }
            }
            if found == 0 {
                return;
            }
        }
        panic!("the queue does not drain");
    }
}

/// With concurrent enqueuers, workers, sweeps, cancellations and limit changes, every job ends once, with its reported outcome.
pub async fn concurrent_operations_keep_every_invariant(f: Fixture) {
    let race = Race::new(&f);
    race.writers.store(3, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for n in 0..3 {
        tasks.push(tokio::spawn(race.clone().enqueue(11 + n, 25)));
    }
    for n in 0..5 {
        tasks.push(tokio::spawn(race.clone().work(31 + n)));
    }
    tasks.push(tokio::spawn(race.clone().disturb(71)));
    for task in futures::future::join_all(tasks).await {
        task.expect("no task panicked");
    }
    job_invariants::check(&f).await;
    race.drain(&f).await;
    let jobs = job_invariants::check(&f).await;
    let enqueued = race.enqueued.lock().expect("the lock is not poisoned");
    let kept: BTreeSet<JobId> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(kept, *enqueued, "the store has exactly the enqueued jobs");
    let ended = race.ended.lock().expect("the lock is not poisoned");
    for job in &jobs {
        assert!(
            known(&job.status).is_finished(),
            "{} is {}",
            job.id,
            job.status
        );
        assert!(job.attempts <= job.retry.max_attempts, "{}", job.id);
        // A claim that fails an exhausted job reports it to no worker.
        match ended.get(&job.id) {
            Some(status) => assert_eq!(job.status, *status, "{}", job.id),
            None => assert_eq!(job.status, JobStatus::Failed, "{}", job.id),
        }
    }
    tokens_are_good(
        &race.claims.lock().expect("the lock is not poisoned"),
        &jobs,
    );
}

/// Asserts that no two claims of a job have the same token, and that the last token is the job's.
fn tokens_are_good(claims: &[(JobId, i64)], jobs: &[leasehold_store::job::Job]) {
    let mut tokens: BTreeMap<JobId, BTreeSet<i64>> = BTreeMap::new();
    for (id, token) in claims {
        let new = tokens.entry(*id).or_default().insert(*token);
        assert!(new, "job {id} was claimed twice with token {token}");
    }
    for job in jobs {
        let last = tokens.get(&job.id).and_then(|tokens| tokens.last());
        assert_eq!(job.token, last.copied().unwrap_or(0), "{}", job.id);
    }
}

/// Concurrent workers of two queues under both limits never hold more jobs than allowed, and all jobs complete.
pub async fn concurrent_claims_never_exceed_a_limit(f: Fixture) {
    f.set_queue_limit(Some(3)).await;
    ok(f.store
        .job_limit_set(Some(5), &leasehold_store::Actor::Local)
        .await);
    for queue in QUEUES {
        let new = NewJob {
            queue: queue.into(),
            ..new_job()
        };
        f.enqueue_new_jobs(&vec![new; 80]).await;
    }
    let held: Arc<[AtomicUsize; 2]> = Arc::default();
    let left = Arc::new(AtomicUsize::new(160));
    let workers = (0..10u64).map(|n| {
        let (store, held, left) = (f.store.clone(), held.clone(), left.clone());
        let mine = (n % 2) as usize;
        let claim = JobClaim {
            queue: QUEUES[mine].into(),
            ..job_claim(&format!("worker-{n}"), 1 + (n % 3) as u32)
        };
        tokio::spawn(async move {
            while left.load(Ordering::SeqCst) > 0 {
                let jobs = ok(store.job_claim(&claim).await).jobs;
                let now = held[mine].fetch_add(jobs.len(), Ordering::SeqCst) + jobs.len();
                assert!(mine != 0 || now <= 3, "{now} of the queue are held");
                let all = held[0].load(Ordering::SeqCst) + held[1].load(Ordering::SeqCst);
                assert!(all <= 5, "{all} of all are held");
                tokio::task::yield_now().await;
                held[mine].fetch_sub(jobs.len(), Ordering::SeqCst);
                let ends = crate::job_factory::finish_each(&jobs, &completed());
                finish_contended(&*store, &claim.worker, &ends).await;
                left.fetch_sub(jobs.len(), Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.expect("the worker did not panic");
    }
    let jobs = job_invariants::check(&f).await;
    assert!(jobs.iter().all(|job| job.attempts == 1));
    assert!(jobs.iter().all(|job| job.status == JobStatus::Completed));
}

/// If a renewal races the lease's end and a sweep, either it holds and nothing is swept, or it is lost.
pub async fn renewal_that_races_expiry_holds_or_is_lost(f: Fixture) {
    f.enqueue_jobs(1).await;
    for _ in 0..40 {
        let job = f.claim_job().await;
        f.clock.advance(LEASE - Duration::from_micros(1));
        let (store, clock) = (f.store.clone(), f.clock.clone());
        let sweep = tokio::spawn(async move {
            clock.advance(Duration::from_micros(1));
            ok(store.job_requeue_expired(10).await)
        });
        let store = f.store.clone();
        let claim = [job.claim()];
        let renew = tokio::spawn(async move { ok(store.job_renew(WORKER, &claim, LEASE).await) });
        let swept = sweep.await.expect("the sweep did not panic");
        let held = renew.await.expect("the renewal did not panic");
        let running = f.job(job.id).await.status == JobStatus::Running;
        if held.renewed.is_empty() {
            f.requeue_expired_jobs().await;
        } else {
            assert!(swept.is_empty() && running, "a held lease was swept");
            assert_eq!(
                f.finish_job(&job, JobEnd::Returned).await,
                JobFinished::Queued { run_at: f.now() }
            );
        }
        let status = f.job(job.id).await.status;
        if status == JobStatus::Failed {
            f.enqueue_jobs(1).await;
        }
    }
}

/// Of concurrent finishes of one claim and a sweep, one counts.
pub async fn one_of_many_concurrent_finishes_counts(f: Fixture) {
    for round in 0..10 {
        let job = f.enqueue_claimed_job(new_job()).await;
        let finishes = (0..8).map(|n| {
            let store = f.store.clone();
            let finish = [JobFinish {
                claim: job.claim(),
                end: match n % 3 {
                    0 => completed(),
                    1 => failed(RetryMode::Never),
                    _ => JobEnd::Snoozed(Duration::from_secs(3_600)),
                },
            }];
            tokio::spawn(async move { finish_contended(&*store, WORKER, &finish).await[0] })
        });
        let finishes: Vec<_> = finishes.collect();
        if round % 2 == 1 {
            f.clock.advance(LEASE);
        }
        f.requeue_expired_jobs().await;
        let mut counted = 0;
        for finish in futures::future::join_all(finishes).await {
            let answer = finish.expect("the finish did not panic");
            counted += usize::from(answer != JobFinished::LeaseLost);
        }
        assert!(counted <= 1, "{counted} ends of one claim");
        for job in f.claim_jobs(5).await {
            f.finish_job(&job, completed()).await;
        }
        f.requeue_expired_jobs().await;
    }
    job_invariants::check(&f).await;
}

/// Claims that race sweeps over expired leases return each job once.
pub async fn claims_that_race_sweeps_return_each_job_once(f: Fixture) {
    for _ in 0..5 {
        let ids: BTreeSet<JobId> = f.enqueue_jobs(40).await.into_iter().collect();
        f.claim_jobs_as("dead", 40).await;
        f.clock.advance(LEASE);
        let sweeps = (0..3).map(|_| {
            let store = f.store.clone();
            tokio::spawn(async move {
                ok(store.job_requeue_expired(13).await);
                Vec::new()
            })
        });
        let claims = (0..5).map(|n| {
            let store = f.store.clone();
            let claim = job_claim(&format!("worker-{n}"), 11);
            tokio::spawn(async move { ok(store.job_claim(&claim).await).jobs })
        });
        let tasks: Vec<_> = sweeps.chain(claims).collect();
        let mut claimed: Vec<ClaimedJob> = Vec::new();
        for task in tasks {
            claimed.extend(task.await.expect("the task did not panic"));
        }
        claimed.extend(f.claim_jobs_as("last", 100).await);
        assert_eq!(claimed.len(), 40, "each job is claimed once");
        let distinct: BTreeSet<JobId> = job_ids(&claimed).into_iter().collect();
        assert_eq!(distinct, ids);
        assert!(claimed.iter().all(|job| job.attempt == 2));
        f.advance(1);
        for id in ids {
            assert_eq!(f.job(id).await.status, JobStatus::Running);
        }
        f.clock.advance(LEASE);
        while let Some(job) = f.claim_jobs(1).await.pop() {
            f.finish_job(&job, completed()).await;
        }
    }
}
