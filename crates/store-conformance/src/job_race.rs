//! Everything at once on the jobs of one store: afterwards nothing is lost, nothing was claimed twice, and every invariant holds.

use crate::Fixture;
use crate::dice::Dice;
use crate::factory::{LEASE, ok};
use crate::job_factory::{QUEUE, WORKER, completed, failed, job_claim, job_ids, keyed, new_job};
use crate::job_invariants;
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::job::{JobStart, NewJob};
use leasehold_store::queue::QueueChange;
use leasehold_store::{ManualClock, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const QUEUES: [&str; 2] = [QUEUE, "other"];

/// What the tasks of a storm share.
#[derive(Clone)]
struct Storm {
    store: Arc<dyn Store>,
    clock: ManualClock,
    enqueued: Arc<Mutex<BTreeSet<JobId>>>,
    claims: Arc<Mutex<Vec<(JobId, i64)>>>,
    /// Jobs that a finish said to have ended, and how.
    ended: Arc<Mutex<BTreeMap<JobId, JobStatus>>>,
    writers: Arc<AtomicUsize>,
}

impl Storm {
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
        let mut dice = Dice(seed);
        for _ in 0..rounds {
            let new: Vec<NewJob> = (0..1 + dice.roll(8))
                .map(|_| self.new_job(&mut dice))
                .collect();
            let answers = ok(self.store.job_enqueue(&new).await);
            let ids = answers.iter().map(|answer| answer.id);
            self.enqueued.lock().expect("nobody panicked").extend(ids);
        }
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    fn new_job(&self, dice: &mut Dice) -> NewJob {
        let key = format!("key-{}", dice.roll(20));
        let base = match dice.roll(5) {
            0 => keyed(&key, None),
            1 => keyed(&key, Some(2)),
            _ => new_job(),
        };
        NewJob {
            queue: QUEUES[dice.roll(2) as usize].into(),
            priority: dice.roll(3) as i16,
            start: match dice.roll(4) {
                0 => JobStart::In(Duration::from_secs(dice.roll(4))),
                _ => JobStart::Now,
            },
            max_attempts: Some(1 + dice.roll(4) as u32),
            ..base
        }
    }

    async fn work(self, seed: u64) {
        let mut dice = Dice(seed);
        let worker = format!("worker-{seed}");
        while self.writers.load(Ordering::SeqCst) > 0 {
            let claim = JobClaim {
                queue: QUEUES[dice.roll(2) as usize].into(),
                ..job_claim(&worker, 1 + dice.roll(9) as u32)
            };
            let jobs = ok(self.store.job_claim(&claim).await).jobs;
            let tokens = jobs.iter().map(|job| (job.id, job.token));
            self.claims.lock().expect("nobody panicked").extend(tokens);
            self.resolve(&worker, &jobs, &mut dice).await;
            tokio::task::yield_now().await;
        }
    }

    /// What a worker may do with its jobs, the careless ways included.
    async fn resolve(&self, worker: &str, jobs: &[ClaimedJob], dice: &mut Dice) {
        if dice.roll(3) == 0 {
            let claims: Vec<_> = jobs.iter().map(ClaimedJob::claim).collect();
            ok(self.store.job_renew(worker, &claims, LEASE).await);
        }
        let mut finishes = Vec::new();
        for job in jobs {
            let end = match dice.roll(9) {
                0 => continue,
                1 => failed(Again::After(Duration::from_secs(dice.roll(3)))),
                2 => failed(Again::Never),
                3 => JobEnd::Snoozed(Duration::from_secs(dice.roll(3))),
                4 => JobEnd::GivenBack,
                5 => {
                    let progress = JsonText::default();
                    let claim = job.claim();
                    ok(self.store.job_progress(worker, claim, &progress).await);
                    failed(Again::Policy)
                }
                _ => completed(),
            };
            let claim = job.claim();
            finishes.push(JobFinish { claim, end });
        }
        let answers = ok(self.store.job_finish(worker, &finishes).await).jobs;
        for (finish, answer) in finishes.iter().zip(answers) {
            let status = match answer {
                JobFinished::Completed => JobStatus::Completed,
                JobFinished::Failed => JobStatus::Failed,
                JobFinished::Queued { .. } | JobFinished::LeaseLost => {
                    continue;
                }
                JobFinished::NotWritten => panic!("nothing failed"),
            };
            self.note_end(finish.claim.job, status);
        }
    }

    fn note_end(&self, id: JobId, status: JobStatus) {
        let mut ended = self.ended.lock().expect("nobody panicked");
        assert!(ended.insert(id, status).is_none(), "{id} ended twice");
    }

    /// Lets time pass, sweeps, cancels and changes limits while the others work.
    async fn disturb(self, seed: u64) {
        let mut dice = Dice(seed);
        while self.writers.load(Ordering::SeqCst) > 0 {
            self.clock.advance(Duration::from_millis(dice.roll(2_000)));
            for expired in ok(self.store.job_requeue_expired(5).await) {
                if expired.status == JobStatus::Failed {
                    self.note_end(expired.claim.job, JobStatus::Failed);
                }
            }
            let some = {
                let enqueued = self.enqueued.lock().expect("nobody panicked");
                let n = dice.roll(enqueued.len().max(1) as u64) as usize;
                enqueued.iter().nth(n).copied()
            };
            if let Some(id) = some.filter(|_| dice.roll(8) == 0)
                && ok(self.store.job_cancel(id).await)
                    == leasehold_store::job::JobCancelled::Cancelled
            {
                self.note_end(id, JobStatus::Failed);
            }
            let change = QueueChange {
                limit: Some([None, Some(1), Some(3), Some(20)][dice.roll(4) as usize]),
                paused: Some(dice.roll(6) == 0),
                ..QueueChange::default()
            };
            let queue = QUEUES[dice.roll(2) as usize];
            ok(self.store.queue_update(queue, &change).await);
            let limit = [None, Some(4), Some(30)][dice.roll(3) as usize];
            ok(self.store.job_limit_set(limit).await);
            tokio::task::yield_now().await;
        }
    }

    /// Opens everything, and works until every job has ended.
    async fn drain(&self, f: &Fixture) {
        ok(self.store.job_limit_set(None).await);
        let open = QueueChange {
            limit: Some(None),
            paused: Some(false),
            ..QueueChange::default()
        };
        for queue in QUEUES {
            ok(self.store.queue_update(queue, &open).await);
        }
        for _ in 0..200 {
            f.advance(60);
            let mut found = 0;
            for queue in QUEUES {
                let jobs = f.take_from(queue, 100).await.jobs;
                found += jobs.len();
                for job in jobs {
                    self.claims
                        .lock()
                        .expect("nobody panicked")
                        .push((job.id, job.token));
                    assert_eq!(f.end(&job, completed()).await, JobFinished::Completed);
                    self.note_end(job.id, JobStatus::Completed);
                }
            }
            if found == 0 {
                return;
            }
        }
        panic!("there is always more");
    }
}

/// Enqueuers, workers of every sort, sweeps, cancellations and changing limits at once: every job ends once, as it was told.
pub async fn everything_at_once_keeps_every_promise(f: Fixture) {
    let storm = Storm::new(&f);
    storm.writers.store(3, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for n in 0..3 {
        tasks.push(tokio::spawn(storm.clone().enqueue(11 + n, 25)));
    }
    for n in 0..5 {
        tasks.push(tokio::spawn(storm.clone().work(31 + n)));
    }
    tasks.push(tokio::spawn(storm.clone().disturb(71)));
    for task in futures::future::join_all(tasks).await {
        task.expect("no part of the storm panicked");
    }
    job_invariants::check(&f).await;
    storm.drain(&f).await;
    let jobs = job_invariants::check(&f).await;
    let enqueued = storm.enqueued.lock().expect("nobody panicked");
    let kept: BTreeSet<JobId> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(kept, *enqueued, "every job is there, and no other");
    let ended = storm.ended.lock().expect("nobody panicked");
    for job in &jobs {
        assert!(job.status.is_finished(), "{} is {}", job.id, job.status);
        assert!(job.attempts <= job.retry.max_attempts, "{}", job.id);
        // An exhausted lease that a claim took back is told to nobody.
        match ended.get(&job.id) {
            Some(status) => assert_eq!(job.status, *status, "{}", job.id),
            None => assert_eq!(job.status, JobStatus::Failed, "{}", job.id),
        }
    }
    tokens_are_good(&storm.claims.lock().expect("nobody panicked"), &jobs);
}

/// No claim of a job has the token of another, and the last one is the job's.
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

/// Many workers of two queues under both limits: at no moment do more hold a job than may, and the work gets done.
pub async fn many_claimers_never_exceed_a_limit(f: Fixture) {
    f.set_queue_limit(Some(3)).await;
    ok(f.store.job_limit_set(Some(5)).await);
    for queue in QUEUES {
        let new = NewJob {
            queue: queue.into(),
            ..new_job()
        };
        f.put_all(&vec![new; 80]).await;
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
                let ends = crate::job_factory::all_end(&jobs, &completed());
                ok(store.job_finish(&claim.worker, &ends).await);
                left.fetch_sub(jobs.len(), Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.expect("no worker panicked");
    }
    let jobs = job_invariants::check(&f).await;
    assert!(jobs.iter().all(|job| job.attempts == 1));
    assert!(jobs.iter().all(|job| job.status == JobStatus::Completed));
}

/// A renewal that races the end of its lease and a sweep: it holds and nothing is swept, or it is lost.
pub async fn a_renewal_that_races_expiry_holds_or_is_lost(f: Fixture) {
    f.put(1).await;
    for _ in 0..40 {
        let job = f.take_one().await;
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
        if held.is_empty() {
            f.sweep().await;
        } else {
            assert!(swept.is_empty() && running, "a held lease was swept");
            assert_eq!(
                f.end(&job, JobEnd::GivenBack).await,
                JobFinished::Queued { run_at: f.now() }
            );
        }
        let status = f.job(job.id).await.status;
        if status == JobStatus::Failed {
            f.put(1).await;
        }
    }
}

/// Of many who finish one claim at once, and of a sweep beside them, one counts.
pub async fn of_many_finishes_at_once_one_counts(f: Fixture) {
    for round in 0..10 {
        let job = f.taken(new_job()).await;
        let finishes = (0..8).map(|n| {
            let store = f.store.clone();
            let finish = [JobFinish {
                claim: job.claim(),
                end: match n % 3 {
                    0 => completed(),
                    1 => failed(Again::Never),
                    _ => JobEnd::Snoozed(Duration::from_secs(3_600)),
                },
            }];
            tokio::spawn(async move { ok(store.job_finish(WORKER, &finish).await).jobs[0] })
        });
        let finishes: Vec<_> = finishes.collect();
        if round % 2 == 1 {
            f.clock.advance(LEASE);
        }
        f.sweep().await;
        let mut counted = 0;
        for finish in futures::future::join_all(finishes).await {
            let answer = finish.expect("no finish panicked");
            counted += usize::from(answer != JobFinished::LeaseLost);
        }
        assert!(counted <= 1, "{counted} ends of one claim");
        for job in f.take(5).await {
            f.end(&job, completed()).await;
        }
        f.sweep().await;
    }
    job_invariants::check(&f).await;
}

/// Claims that race sweeps over jobs whose leases have ended bring each once.
pub async fn claims_that_race_sweeps_bring_each_once(f: Fixture) {
    for _ in 0..5 {
        let ids: BTreeSet<JobId> = f.put(40).await.into_iter().collect();
        f.take_as("dead", 40).await;
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
            claimed.extend(task.await.expect("no task panicked"));
        }
        claimed.extend(f.take_as("last", 100).await);
        assert_eq!(claimed.len(), 40, "each is claimed once");
        let distinct: BTreeSet<JobId> = job_ids(&claimed).into_iter().collect();
        assert_eq!(distinct, ids);
        assert!(claimed.iter().all(|job| job.attempt == 2));
        f.advance(1);
        for id in ids {
            assert_eq!(f.job(id).await.status, JobStatus::Running);
        }
        f.clock.advance(LEASE);
        while let Some(job) = f.take(1).await.pop() {
            f.end(&job, completed()).await;
        }
    }
}
