//! A storm: many claimers, a finisher, a recoverer and someone who keeps changing limits, until every request has ended. Whoever runs it then reads the history.

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

/// How large the storm is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Workspaces, of all plans in turn.
    pub workspaces: usize,
    /// Requests, spread over them.
    pub requests: usize,
    /// How many claim at once.
    pub claimers: usize,
}

/// Short enough that forgotten claims come back while the storm lasts.
const LEASE: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(20);

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}

#[derive(Clone)]
struct Storm {
    store: Arc<dyn Store>,
    sites: Arc<Vec<TestWorkspace>>,
    running: Arc<Mutex<Vec<ExecutionId>>>,
    ended: Arc<AtomicUsize>,
    size: Size,
}

/// Runs the storm to its end: every request has finished and every limit is its plan's again. The store must judge by
/// its own clock, since leases have to expire.
pub async fn run(fixture: &Fixture, size: Size) {
    let mut sites = Vec::new();
    for n in 0..size.workspaces {
        let site = fixture.site(1).await;
        let plan = Plan::ALL[n % Plan::ALL.len()];
        let change = WorkspaceChange {
            plan: Some(plan),
            limit_override: Some(None),
            paused: None,
        };
        ok(fixture
            .store
            .workspace_update(site.workspace, &change)
            .await);
        sites.push(site);
    }
    let storm = Storm {
        store: fixture.store.clone(),
        sites: Arc::new(sites),
        running: Arc::default(),
        ended: Arc::default(),
        size,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(storm.clone().enqueue());
    tasks.spawn(storm.clone().finish());
    tasks.spawn(storm.clone().recover());
    tasks.spawn(storm.clone().change_limits());
    for claimer in 0..size.claimers {
        tasks.spawn(storm.clone().claim(claimer));
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no part of the storm panics");
    }
}

impl Storm {
    fn over(&self) -> bool {
        self.ended.load(Ordering::SeqCst) >= self.size.requests
    }

    async fn enqueue(self) {
        let mut dice = Dice(7);
        let mut left = self.size.requests;
        while left > 0 {
            let site = self.sites[dice.roll(self.sites.len())];
            let n = left.min(1 + dice.roll(60));
            let requests = (0..n).map(|_| {
                let mut new = new_request(&site);
                new.priority = [0, 0, 0, 5, -5][dice.roll(5)];
                new
            });
            let enqueue = Enqueue {
                workspace: site.workspace,
                requests: requests.collect(),
                by: USER.into(),
            };
            ok(self.store.request_enqueue(&enqueue).await);
            left -= n;
        }
    }

    async fn claim(self, claimer: usize) {
        let mut dice = Dice(0x9E37_79B9 + claimer as u64);
        let owner = format!("claimer-{claimer}");
        let mut tick = tokio::time::interval(TICK);
        while !self.over() {
            let claim = Claim {
                owner: owner.clone(),
                batch: u32::try_from(1 + dice.roll(60)).unwrap_or(1),
                lease: LEASE,
                lock: None,
            };
            let ClaimOutcome::Claimed(claimed) = ok(self.store.request_claim(&claim).await) else {
                panic!("no lock was asked for");
            };
            assert!(claimed.rejected.is_empty(), "nothing was deleted");
            if claimed.requests.is_empty() {
                tick.tick().await;
            }
            self.resolve(&owner, claimed.requests, &mut dice).await;
        }
    }

    /// Most are dispatched and end now or later; some are given back in each way, some forgotten.
    async fn resolve(&self, owner: &str, claimed: Vec<ClaimedRequest>, dice: &mut Dice) {
        let mut started = Vec::new();
        let mut releases = Vec::new();
        for request in &claimed {
            let kind = match dice.roll(20) {
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
            .expect("nobody panicked")
            .extend(executions);
    }

    async fn finish(self) {
        let mut dice = Dice(13);
        let mut tick = tokio::time::interval(TICK);
        while !self.over() {
            let batch: Vec<ExecutionFinish> = {
                let mut running = self.running.lock().expect("nobody panicked");
                let n = running.len().min(1 + dice.roll(80));
                let picked: Vec<usize> = (0..n).map(|_| dice.roll(usize::MAX)).collect();
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
        let mut dice = Dice(29);
        let mut tick = tokio::time::interval(TICK);
        let mut touched = Vec::new();
        while !self.over() && touched.len() < 400 {
            tick.tick().await;
            let site = self.sites[dice.roll(self.sites.len())];
            let change = WorkspaceChange {
                plan: Some(Plan::ALL[dice.roll(3)]),
                limit_override: Some([None, Some(0), Some(2), Some(30)][dice.roll(4)]),
                paused: Some(dice.roll(6) == 0),
            };
            ok(self.store.workspace_update(site.workspace, &change).await);
            touched.push(site);
        }
        for site in touched {
            let change = WorkspaceChange {
                plan: None,
                limit_override: Some(None),
                paused: Some(false),
            };
            ok(self.store.workspace_update(site.workspace, &change).await);
        }
    }
}
