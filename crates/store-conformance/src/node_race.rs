//! Concurrent operations on the graphs of one store: each graph ends once, and its record agrees with its jobs.

use crate::factory::ok;
use crate::graph_factory::{
    StartedGraph, TIMEOUT_SWEEPER, completed_with, graph_of, task_in, task_with_max_attempts,
};
use crate::job_factory::{QUEUE, completed, failed, finish_contended, job_claim};
use crate::seeded_rng::SeededRng;
use crate::{Fixture, graph_invariants, invariants, job_invariants};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished, RetryMode};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::graph::GraphStopped;
use leasehold_store::{ManualClock, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

/// How often two workers finish the last two predecessors of a node.
const FAN_INS: usize = 240;

fn execution_of(job: &ClaimedJob) -> String {
    let payload: Value = job.payload.read().expect("the payload is JSON");
    payload["execution_id"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

async fn all_of(f: &Fixture, queue: &str) -> BTreeMap<String, ClaimedJob> {
    let claim = JobClaim {
        queue: queue.into(),
        ..job_claim(queue, 1_000)
    };
    let jobs = ok(f.store.job_claim(&claim).await).jobs;
    let count = jobs.len();
    let by_execution: BTreeMap<_, _> = jobs.into_iter().map(|j| (execution_of(&j), j)).collect();
    assert_eq!(
        by_execution.len(),
        count,
        "one job of {queue} per execution"
    );
    by_execution
}

/// If two workers finish the last two predecessors of a node concurrently, the node is enqueued once, with both outputs.
pub async fn fan_in_starts_the_next_node_once(f: Fixture) {
    let nodes = vec![
        task_in("left", "l"),
        task_in("right", "r"),
        task_in("last", "z"),
    ];
    let graph = graph_of(nodes, &[("l", "z"), ("r", "z")]);
    let limit = u32::try_from(FAN_INS).unwrap_or(u32::MAX);
    let t = f.graph_workspace(limit, graph).await;
    let all = f.enqueue_started_many(&t, FAN_INS).await;
    let (left, right) = (all_of(&f, "left").await, all_of(&f, "right").await);
    assert_eq!((left.len(), right.len()), (FAN_INS, FAN_INS));
    for (execution, one) in left {
        let barrier = Arc::new(Barrier::new(2));
        let ends = [("left", one), ("right", right[&execution].clone())];
        let ends = ends.map(|(worker, job)| {
            let (store, barrier) = (f.store.clone(), barrier.clone());
            tokio::spawn(async move {
                let finish = JobFinish {
                    claim: job.claim(),
                    end: completed_with(json!(worker)),
                };
                barrier.wait().await;
                finish_contended(&*store, worker, &[finish]).await
            })
        });
        for end in ends {
            let answer = end.await.expect("the worker did not panic");
            assert_eq!(answer, [JobFinished::Completed]);
        }
    }
    let last = all_of(&f, "last").await;
    assert_eq!(last.len(), FAN_INS);
    for job in last.values() {
        let payload: Value = job.payload.read().expect("the payload is JSON");
        assert_eq!(
            payload["input"]["nodes"],
            json!({"l": "left", "r": "right"})
        );
    }
    graph_invariants::check(&f, &all).await;
    let ends: Vec<JobFinish> = last
        .values()
        .map(|job| JobFinish {
            claim: job.claim(),
            end: completed(),
        })
        .collect();
    for answer in f.finish_jobs("last", &ends).await {
        assert_eq!(answer, JobFinished::Completed);
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// The state that the tasks of a race share.
#[derive(Clone)]
struct Race {
    store: Arc<dyn Store>,
    clock: ManualClock,
    executions: Arc<Vec<ExecutionId>>,
    /// Jobs that a finish reported as ended, and whether they completed.
    ended: Arc<Mutex<BTreeMap<JobId, bool>>>,
    over: Arc<AtomicBool>,
}

const QUEUES: [&str; 2] = [QUEUE, "other"];

impl Race {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn work(self, seed: u64) {
        let mut rng = SeededRng(seed);
        let worker = format!("worker-{seed}");
        while !self.is_over() {
            let claim = JobClaim {
                queue: QUEUES[usize::from(rng.below(2) == 0)].into(),
                ..job_claim(&worker, 1 + u32::try_from(rng.below(8)).unwrap_or_default())
            };
            let jobs = ok(self.store.job_claim(&claim).await).jobs;
            let mut finishes = Vec::new();
            for job in &jobs {
                let end = match rng.below(20) {
                    0 => continue,
                    1 => failed(RetryMode::Never),
                    2 | 3 => failed(RetryMode::Policy),
                    4 => JobEnd::Returned,
                    _ => completed_with(json!(job.id.0)),
                };
                let claim = job.claim();
                finishes.push(JobFinish { claim, end });
            }
            let answers = finish_contended(&*self.store, &worker, &finishes).await;
            for (finish, answer) in finishes.iter().zip(answers) {
                let completed = match answer {
                    JobFinished::Completed => true,
                    JobFinished::Failed => false,
                    JobFinished::Queued { .. }
                    | JobFinished::LeaseLost
                    | JobFinished::NotWritten => continue,
                };
                let mut ended = self.ended.lock().expect("the lock is not poisoned");
                let before = ended.insert(finish.claim.job, completed);
                assert_eq!(before, None, "{} ended twice", finish.claim.job);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Advances the clock, sweeps and expires graphs until every graph has ended.
    async fn expire(self, seed: u64) {
        let (mut rng, mut rounds) = (SeededRng(seed), 0);
        for execution in self.executions.iter() {
            while ok(self.store.graph_get(*execution).await)
                .is_some_and(|run| run.state.end().is_none())
            {
                rounds += 1;
                assert!(rounds < 100_000, "{execution} never ends");
                self.clock.advance(Duration::from_millis(rng.below(1_000)));
                ok(self.store.job_requeue_expired(100).await);
                ok(self.store.graph_expire(TIMEOUT_SWEEPER, 10).await);
                tokio::task::yield_now().await;
            }
        }
        self.over.store(true, Ordering::SeqCst);
    }

    async fn stop(self, seed: u64) {
        let mut rng = SeededRng(seed);
        let stops = [GraphStop::Cancelled, GraphStop::Terminated];
        while !self.is_over() {
            let sides = u64::try_from(self.executions.len()).unwrap_or(1);
            let n = usize::try_from(rng.below(sides)).unwrap_or_default();
            let stop = stops[usize::from(rng.below(2) == 0)];
            let execution = self.executions[n];
            let stopped = self
                .store
                .graph_stop(execution, stop, TIMEOUT_SWEEPER, "enough");
            assert_ne!(ok(stopped.await), GraphStopped::NotFound);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// With concurrent workers, stops, sweeps and timeout sweepers, every execution ends once and leaves no open job.
pub async fn concurrent_operations_keep_every_invariant(f: Fixture) {
    let mut nodes = vec![task_with_max_attempts("a", 2)];
    nodes.extend(["b", "c"].map(|id| task_with_max_attempts(id, 2)));
    nodes.extend(["d", "e"].map(|id| task_in("other", id)));
    nodes.push(task_with_max_attempts("f", 2));
    let edges = [
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("b", "e"),
        ("c", "e"),
        ("d", "f"),
        ("e", "f"),
    ];
    let timeout = Some(Duration::from_secs(300));
    let t = f
        .graph_workspace_with_timeout(80, graph_of(nodes, &edges), timeout)
        .await;
    let all: Vec<StartedGraph> = f.enqueue_started_many(&t, 80).await;
    let race = Race {
        store: f.store.clone(),
        clock: f.clock.clone(),
        executions: Arc::new(all.iter().map(|s| s.execution).collect()),
        ended: Arc::default(),
        over: Arc::default(),
    };
    let mut tasks = Vec::new();
    for seed in 0..5 {
        tasks.push(tokio::spawn(race.clone().work(31 + seed)));
    }
    tasks.push(tokio::spawn(race.clone().expire(71)));
    tasks.push(tokio::spawn(race.clone().stop(91)));
    for task in futures::future::join_all(tasks).await {
        task.expect("no task panicked");
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
    job_invariants::check(&f).await;
    invariants::check(&f).await;
    let ended = race.ended.lock().expect("the lock is not poisoned").clone();
    for s in &all {
        for node in f.nodes(s.execution).await {
            let completed = node.job.and_then(|job| ended.get(&job).copied());
            // A job that lost its last lease is reported to no worker.
            match node.state {
                NodeState::Completed => assert_eq!(completed, Some(true), "{}", node.id),
                NodeState::Failed => assert_ne!(completed, Some(true), "{}", node.id),
                NodeState::Cancelled => assert_eq!(completed, None, "{}", node.id),
                NodeState::Waiting | NodeState::Running => panic!("{} is open", node.id),
            }
        }
    }
}
