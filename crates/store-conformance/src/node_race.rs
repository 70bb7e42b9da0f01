//! Everything at once on the graphs of one store: afterwards each has ended once, and its record agrees with its jobs.

use crate::dice::Dice;
use crate::factory::ok;
use crate::graph_factory::{SETTLER, Started, came_to, graph_of, task_in, tried_task};
use crate::job_factory::{QUEUE, completed, failed, job_claim};
use crate::{Fixture, graph_invariants, invariants, job_invariants};
use leasehold_core::graph::{GraphStop, NodeState};
use leasehold_core::job::{Again, ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::{ExecutionId, JobId};
use leasehold_store::graph::GraphStopped;
use leasehold_store::{ManualClock, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

/// As often two workers end the last two predecessors of a node.
const FAN_INS: usize = 240;

fn execution_of(job: &ClaimedJob) -> String {
    let payload: Value = job.payload.read().expect("a payload is JSON");
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
    assert_eq!(by_execution.len(), count, "one job of {queue} an execution");
    by_execution
}

/// Two workers end the last two predecessors of a node at the same moment, again and again: it is put into its queue once, with the
/// outputs of both.
pub async fn the_last_of_a_fan_in_begins_the_next_once(f: Fixture) {
    let nodes = vec![
        task_in("left", "l"),
        task_in("right", "r"),
        task_in("last", "z"),
    ];
    let graph = graph_of(nodes, &[("l", "z"), ("r", "z")]);
    let limit = u32::try_from(FAN_INS).unwrap_or(u32::MAX);
    let t = f.graph_site(limit, graph).await;
    let all = f.started_many(&t, FAN_INS).await;
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
                    end: came_to(json!(worker)),
                };
                barrier.wait().await;
                ok(store.job_finish(worker, &[finish]).await).jobs
            })
        });
        for end in ends {
            let answer = end.await.expect("neither worker panicked");
            assert_eq!(answer, [JobFinished::Completed]);
        }
    }
    let last = all_of(&f, "last").await;
    assert_eq!(last.len(), FAN_INS);
    for job in last.values() {
        let payload: Value = job.payload.read().expect("a payload is JSON");
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
    for answer in f.end_all("last", &ends).await {
        assert_eq!(answer, JobFinished::Completed);
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// What the tasks of a storm share.
#[derive(Clone)]
struct Storm {
    store: Arc<dyn Store>,
    clock: ManualClock,
    executions: Arc<Vec<ExecutionId>>,
    /// Jobs that a finish said to have ended, and whether they completed.
    ended: Arc<Mutex<BTreeMap<JobId, bool>>>,
    over: Arc<AtomicBool>,
}

const QUEUES: [&str; 2] = [QUEUE, "other"];

impl Storm {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn work(self, seed: u64) {
        let mut dice = Dice(seed);
        let worker = format!("worker-{seed}");
        while !self.is_over() {
            let claim = JobClaim {
                queue: QUEUES[usize::from(dice.roll(2) == 0)].into(),
                ..job_claim(&worker, 1 + u32::try_from(dice.roll(8)).unwrap_or_default())
            };
            let jobs = ok(self.store.job_claim(&claim).await).jobs;
            let mut finishes = Vec::new();
            for job in &jobs {
                let end = match dice.roll(20) {
                    0 => continue,
                    1 => failed(Again::Never),
                    2 | 3 => failed(Again::Policy),
                    4 => JobEnd::GivenBack,
                    _ => came_to(json!(job.id.0)),
                };
                let claim = job.claim();
                finishes.push(JobFinish { claim, end });
            }
            let answers = ok(self.store.job_finish(&worker, &finishes).await).jobs;
            for (finish, answer) in finishes.iter().zip(answers) {
                let completed = match answer {
                    JobFinished::Completed => true,
                    JobFinished::Failed => false,
                    JobFinished::Queued { .. } | JobFinished::LeaseLost => continue,
                    JobFinished::NotWritten => panic!("nothing failed"),
                };
                let mut ended = self.ended.lock().expect("nobody panicked");
                let before = ended.insert(finish.claim.job, completed);
                assert_eq!(before, None, "{} ended twice", finish.claim.job);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass, sweeps and settles until every graph has ended.
    async fn settle(self, seed: u64) {
        let (mut dice, mut rounds) = (Dice(seed), 0);
        for execution in self.executions.iter() {
            while ok(self.store.graph_get(*execution).await)
                .is_some_and(|run| run.state.end().is_none())
            {
                rounds += 1;
                assert!(rounds < 100_000, "{execution} never ends");
                self.clock.advance(Duration::from_millis(dice.roll(1_000)));
                ok(self.store.job_requeue_expired(100).await);
                ok(self.store.graph_settle(SETTLER, 10).await);
                tokio::task::yield_now().await;
            }
        }
        self.over.store(true, Ordering::SeqCst);
    }

    async fn stop(self, seed: u64) {
        let mut dice = Dice(seed);
        let stops = [GraphStop::Cancelled, GraphStop::Terminated];
        while !self.is_over() {
            let sides = u64::try_from(self.executions.len()).unwrap_or(1);
            let n = usize::try_from(dice.roll(sides)).unwrap_or_default();
            let stop = stops[usize::from(dice.roll(2) == 0)];
            let execution = self.executions[n];
            let stopped = self.store.graph_stop(execution, stop, SETTLER, "enough");
            assert_ne!(ok(stopped.await), GraphStopped::NotFound);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Workers of every sort, stops, sweeps and settlers at once: no store gives up, every execution ends once, and nothing of it is left.
pub async fn everything_at_once_keeps_every_promise(f: Fixture) {
    let mut nodes = vec![tried_task("a", 2)];
    nodes.extend(["b", "c"].map(|id| tried_task(id, 2)));
    nodes.extend(["d", "e"].map(|id| task_in("other", id)));
    nodes.push(tried_task("f", 2));
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
        .timed_graph_site(80, graph_of(nodes, &edges), timeout)
        .await;
    let all: Vec<Started> = f.started_many(&t, 80).await;
    let storm = Storm {
        store: f.store.clone(),
        clock: f.clock.clone(),
        executions: Arc::new(all.iter().map(|s| s.execution).collect()),
        ended: Arc::default(),
        over: Arc::default(),
    };
    let mut tasks = Vec::new();
    for seed in 0..5 {
        tasks.push(tokio::spawn(storm.clone().work(31 + seed)));
    }
    tasks.push(tokio::spawn(storm.clone().settle(71)));
    tasks.push(tokio::spawn(storm.clone().stop(91)));
    for task in futures::future::join_all(tasks).await {
        task.expect("no part of the storm panicked");
    }
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    graph_invariants::check(&f, &all).await;
    job_invariants::check(&f).await;
    invariants::check(&f).await;
    let ended = storm.ended.lock().expect("nobody panicked").clone();
    for s in &all {
        for node in f.nodes(s.execution).await {
            let said = node.job.and_then(|job| ended.get(&job).copied());
            // One that lost its last lease was told to nobody.
            match node.state {
                NodeState::Completed => assert_eq!(said, Some(true), "{}", node.id),
                NodeState::Failed => assert_ne!(said, Some(true), "{}", node.id),
                NodeState::Cancelled => assert_eq!(said, None, "{}", node.id),
                NodeState::Waiting | NodeState::Running => panic!("{} is open", node.id),
            }
        }
    }
}
