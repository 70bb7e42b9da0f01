//! A stress run: many claimers, a finisher, a recoverer and changing limits until every request has ended. The caller then checks the history.

use crate::factory::{TestWorkspace, new_request, ok};
use crate::{Fixture, USER};
use leasehold_core::{ExecutionEnd, ExecutionId, Plan};
use leasehold_store::Store;
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished};
use leasehold_store::request::{
    Claim, ClaimOutcome, ClaimRef, ClaimedRequest, Dispatched, Enqueue, Release, ReleaseKind,
};
use leasehold_store::workspace::WorkspaceChange;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// The size of a stress run.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Workspaces, of all plans in turn.
    pub workspaces: usize,
    /// Requests, spread over the workspaces.
    pub requests: usize,
    /// Concurrent claimers.
    pub claimers: usize,
}

/// Short enough that abandoned claims expire during the run, and longer than the statements of a slow machine.
const LEASE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}

#[derive(Clone)]
struct StressRun {
    store: Arc<dyn Store>,
    workspaces: Arc<Vec<TestWorkspace>>,
    running: Arc<Mutex<Vec<ExecutionId>>>,
    ended: Arc<AtomicUsize>,
    size: Size,
}

/// Runs until every request has finished, and restores the limits of the plans. The store must use its own clock, since
/// leases have to expire.
pub async fn run(fixture: &Fixture, size: Size) {
    let mut workspaces = Vec::new();
    for n in 0..size.workspaces {
        let workspace = fixture.workspace(1).await;
        let plan = Plan::ALL[n % Plan::ALL.len()];
        let change = WorkspaceChange {
            plan: Some(plan),
            limit_override: Some(None),
            paused: None,
            ..WorkspaceChange::default()
        };
        ok(fixture
            .store
            .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
            .await);
        workspaces.push(workspace);
    }
    let run = StressRun {
        store: fixture.store.clone(),
        workspaces: Arc::new(workspaces),
        running: Arc::default(),
        ended: Arc::default(),
        size,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(run.clone().enqueue());
    tasks.spawn(run.clone().finish());
    tasks.spawn(run.clone().recover());
    tasks.spawn(run.clone().change_limits());
    for claimer in 0..size.claimers {
        tasks.spawn(run.clone().claim(claimer));
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no task panicked");
    }
}

impl StressRun {
    fn over(&self) -> bool {
        self.ended.load(Ordering::SeqCst) >= self.size.requests
    }

    async fn enqueue(self) {
        let mut rng = SeededRng(7);
        let mut left = self.size.requests;
        while left > 0 {
            let workspace = self.workspaces[rng.below(self.workspaces.len())];
            let n = left.min(1 + rng.below(60));
            let requests = (0..n).map(|_| {
                let mut new = new_request(&workspace);
                new.priority = [0, 0, 0, 5, -5][rng.below(5)];
                new
            });
            let enqueue = Enqueue {
                workspace: workspace.workspace,
                requests: requests.collect(),
                by: USER.into(),
            };
            ok(self.store.request_enqueue(&enqueue).await);
            left -= n;
        }
    }

    async fn claim(self, claimer: usize) {
        let mut rng = SeededRng(0x9E37_79B9 + claimer as u64);
        let owner = format!("claimer-{claimer}");
        let mut tick = tokio::time::interval(TICK);
        while !self.over() {
            let claim = Claim {
                owner: owner.clone(),
                batch: u32::try_from(1 + rng.below(60)).unwrap_or(1),
                kept_max: None,
                lease: LEASE,
                lock: None,
            };
            let ClaimOutcome::Claimed(claimed) = ok(self.store.request_claim(&claim).await) else {
                panic!("the claim has no lock");
            };
            assert!(claimed.rejected.is_empty(), "nothing was deleted");
            if claimed.requests.is_empty() {
                tick.tick().await;
            }
            self.resolve(&owner, claimed.requests, &mut rng).await;
        }
    }

    /// Dispatches most requests, releases some in each way and abandons some.
    async fn resolve(&self, owner: &str, claimed: Vec<ClaimedRequest>, rng: &mut SeededRng) {
        let mut started = Vec::new();
        let mut releases = Vec::new();
        for request in &claimed {
            let kind = match rng.below(20) {
                0 => ReleaseKind::Unknown,
                1 => ReleaseKind::NotStarted,
                2 => ReleaseKind::Refused {
                    max_attempts: 1_000,
                },
                3 => continue,
                _ => {
                    started.push(request);
                    continue;
                }
            };
            releases.push(Release {
                claim: ClaimRef::from(request),
                kind,
                delay: Duration::ZERO,
                error: None,
            });
        }
        ok(self.store.request_release(owner, &releases).await);
        let claims: Vec<ClaimRef> = started
            .iter()
            .map(|request| ClaimRef::from(*request))
            .collect();
        let outcomes = ok(self.store.request_dispatched(owner, &claims).await);
        let running = started.iter().zip(outcomes);
        let held = running.filter(|(_, outcome)| *outcome == Dispatched::Dispatched);
        let executions = held.map(|(request, _)| request.execution);
        self.running
            .lock()
            .expect("the lock is not poisoned")
            .extend(executions);
    }

    async fn finish(self) {
        let mut rng = SeededRng(13);
        let mut tick = tokio::time::interval(TICK);
        while !self.over() {
            let batch: Vec<ExecutionFinish> = {
                let mut running = self.running.lock().expect("the lock is not poisoned");
                let n = running.len().min(1 + rng.below(80));
                let picked: Vec<usize> = (0..n).map(|_| rng.below(usize::MAX)).collect();
                picked
                    .iter()
                    .map(|pick| {
                        let at = pick % running.len();
                        ExecutionFinish {
                            execution: running.swap_remove(at),
                            end: ExecutionEnd::ALL[pick % ExecutionEnd::ALL.len()],
                            error: None,
                        }
                    })
                    .collect()
            };
            if batch.is_empty() {
                tick.tick().await;
                continue;
            }
            let outcomes = ok(self.store.execution_finish("finisher", &batch).await);
            for outcome in outcomes {
                assert!(
                    matches!(outcome, ExecutionFinished::Finished { .. }),
                    "{outcome:?}"
                );
                self.ended.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    async fn recover(self) {
        let mut tick = tokio::time::interval(TICK);
        while !self.over() {
            tick.tick().await;
            ok(self.store.request_recover("recoverer", 100).await);
        }
    }

    async fn change_limits(self) {
        let mut rng = SeededRng(29);
        let mut tick = tokio::time::interval(TICK);
        let mut touched = Vec::new();
        while !self.over() && touched.len() < 400 {
            tick.tick().await;
            let workspace = self.workspaces[rng.below(self.workspaces.len())];
            let change = WorkspaceChange {
                plan: Some(Plan::ALL[rng.below(3)]),
                limit_override: Some([None, Some(0), Some(2), Some(30)][rng.below(4)]),
                paused: Some(rng.below(6) == 0),
                ..WorkspaceChange::default()
            };
            ok(self
                .store
                .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
                .await);
            touched.push(workspace);
        }
        for workspace in touched {
            let change = WorkspaceChange {
                plan: None,
                limit_override: Some(None),
                paused: Some(false),
                ..WorkspaceChange::default()
            };
            ok(self
                .store
                .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
                .await);
        }
    }
}
