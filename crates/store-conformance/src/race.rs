//! Concurrent operations on one store: nothing is lost, nothing is claimed twice, and every invariant holds.

use crate::Fixture;
use crate::drift_check;
use crate::factory::{LEASE, OWNER, TestWorkspace, USER, known, new_request, ok};
use crate::invariants;
use crate::seeded_rng::SeededRng;
use leasehold_core::{ExecutionEnd, FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{
    Cancel, Claim, ClaimOutcome, ClaimedRequest, Enqueue, Enqueued, Fail, Idempotency, NewRequest,
    Release, ReleaseKind,
};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{ManualClock, Store};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The state that the tasks of a race share.
#[derive(Clone)]
struct Race {
    store: Arc<dyn Store>,
    clock: ManualClock,
    workspaces: Arc<Vec<TestWorkspace>>,
    enqueued: Arc<Mutex<BTreeSet<RequestId>>>,
    claims: Arc<Mutex<Vec<(RequestId, i64)>>>,
    writers: Arc<AtomicUsize>,
}

impl Race {
    fn new(f: &Fixture, workspaces: Vec<TestWorkspace>) -> Self {
        Self {
            store: f.store.clone(),
            clock: f.clock.clone(),
            workspaces: Arc::new(workspaces),
            enqueued: Arc::default(),
            claims: Arc::default(),
            writers: Arc::default(),
        }
    }

    fn workspace(&self, rng: &mut SeededRng) -> TestWorkspace {
        self.workspaces[rng.below(self.workspaces.len() as u64) as usize]
    }

    async fn enqueue(self, seed: u64, rounds: u64) {
        let mut rng = SeededRng(seed);
        for _ in 0..rounds {
            let workspace = self.workspace(&mut rng);
            let requests = (0..1 + rng.below(6)).map(|_| self.new_request(&workspace, &mut rng));
            let enqueue = Enqueue {
                workspace: workspace.workspace,
                requests: requests.collect(),
                by: USER.into(),
            };
            match ok(self.store.request_enqueue(&enqueue).await) {
                Enqueued::All(all) => {
                    let ids = all.iter().map(|r| r.id);
                    self.enqueued
                        .lock()
                        .expect("the lock is not poisoned")
                        .extend(ids);
                }
                other => panic!("not enqueued: {other:?}"),
            }
        }
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    fn new_request(&self, workspace: &TestWorkspace, rng: &mut SeededRng) -> NewRequest {
        let late = rng.below(4) == 0;
        let key = (rng.below(5) == 0).then(|| Idempotency {
            key: format!("key-{}", rng.below(20)),
            window: None,
        });
        NewRequest {
            priority: rng.below(3) as i16,
            run_at: late.then(|| self.clock.now() + Duration::from_secs(rng.below(4))),
            idempotency: key,
            ..new_request(workspace)
        }
    }

    async fn dispatch(self, seed: u64) {
        let mut rng = SeededRng(seed);
        let owner = format!("dispatcher-{seed}");
        let claim = Claim {
            owner: owner.clone(),
            batch: 1 + rng.below(8) as u32,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        while self.writers.load(Ordering::SeqCst) > 0 {
            let ClaimOutcome::Claimed(claimed) = ok(self.store.request_claim(&claim).await) else {
                panic!("the claim has no lock");
            };
            let tokens = claimed.requests.iter().map(|c| (c.id, c.token));
            self.claims
                .lock()
                .expect("the lock is not poisoned")
                .extend(tokens);
            for request in &claimed.requests {
                self.resolve(&owner, request, &mut rng).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Does with a claim what a dispatcher and an engine may do, including misuse.
    async fn resolve(&self, owner: &str, claimed: &ClaimedRequest, rng: &mut SeededRng) {
        let claim = claimed.into();
        let release = |kind, delay| Release {
            claim,
            kind,
            delay: Duration::from_secs(delay),
            error: None,
        };
        match rng.below(10) {
            0 => {}
            1 => {
                let refused = release(ReleaseKind::Refused { max_attempts: 3 }, rng.below(3));
                ok(self.store.request_release(owner, &[refused]).await);
            }
            2 => {
                let unknown = release(ReleaseKind::Unknown, rng.below(3));
                ok(self.store.request_release(owner, &[unknown]).await);
            }
            3 => {
                let not_started = release(ReleaseKind::NotStarted, 0);
                ok(self.store.request_release(owner, &[not_started]).await);
            }
            4 => {
                let fail = Fail {
                    claim,
                    reason: FailureReason::VersionNotFound,
                    error: None,
                };
                ok(self.store.request_fail(owner, &fail).await);
            }
            5 => {
                ok(self.store.request_renew(owner, &[claim], LEASE).await);
                self.finish(claimed, ExecutionEnd::Failed).await;
            }
            6 => self.finish(claimed, ExecutionEnd::Terminated).await,
            _ => {
                ok(self.store.request_dispatched(owner, &[claim]).await);
                self.finish(claimed, ExecutionEnd::Completed).await;
            }
        }
    }

    async fn finish(&self, claimed: &ClaimedRequest, end: ExecutionEnd) {
        let finish = ExecutionFinish {
            execution: claimed.execution,
            end,
            error: None,
        };
        ok(self.store.execution_finish("engine", &[finish]).await);
    }

    /// Advances the clock, sweeps, cancels and changes limits while the others work.
    async fn disturb(self, seed: u64, limits: &'static [u32]) {
        let mut rng = SeededRng(seed);
        while self.writers.load(Ordering::SeqCst) > 0 {
            self.clock.advance(Duration::from_millis(rng.below(2_000)));
            ok(self.store.request_recover("sweeper", 5).await);
            let some = {
                let enqueued = self.enqueued.lock().expect("the lock is not poisoned");
                let n = rng.below(enqueued.len().max(1) as u64) as usize;
                enqueued.iter().nth(n).copied()
            };
            let workspace = self.workspace(&mut rng);
            if let Some(id) = some {
                let cancel = Cancel {
                    workspace: workspace.workspace,
                    request: id,
                    force: rng.below(2) == 0,
                    by: USER.into(),
                };
                ok(self.store.request_cancel(&cancel).await);
                let unacknowledged = ok(self.store.request_cancel_list(5).await);
                ok(self.store.request_cancel_ack(&unacknowledged).await);
            }
            if let Some(limit) = limits.get(rng.below(limits.len() as u64 + 3) as usize) {
                let change = WorkspaceChange {
                    limit_override: Some(Some(*limit)),
                    paused: Some(rng.below(5) == 0),
                    ..WorkspaceChange::default()
                };
                ok(self
                    .store
                    .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
                    .await);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Polls use and limit; if no limit is ever lowered, the use is never above it.
    async fn watch(self) {
        while self.writers.load(Ordering::SeqCst) > 0 {
            for workspace in self.workspaces.iter() {
                let slots = ok(self.store.workspace_slots(workspace.workspace).await);
                let slots = slots.expect("the workspace exists");
                assert!(slots.in_use <= slots.limit, "{slots:?}");
            }
            tokio::task::yield_now().await;
        }
    }

    /// Polls for drift: there is none at any moment.
    async fn audit(self) {
        while self.writers.load(Ordering::SeqCst) > 0 {
            drift_check::none(&*self.store).await;
            tokio::task::yield_now().await;
        }
    }
}

async fn run_race(f: &Fixture, limits: [u32; 4], changes: &'static [u32]) -> Race {
    let mut workspaces = Vec::new();
    for limit in limits {
        workspaces.push(f.workspace(limit).await);
    }
    let race = Race::new(f, workspaces);
    race.writers.store(4, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for seed in 1..=4 {
        tasks.push(tokio::spawn(race.clone().enqueue(seed * 7_919, 25)));
        tasks.push(tokio::spawn(race.clone().dispatch(seed * 104_729)));
    }
    tasks.push(tokio::spawn(race.clone().disturb(31, changes)));
    tasks.push(tokio::spawn(race.clone().audit()));
    if changes.is_empty() {
        tasks.push(tokio::spawn(race.clone().watch()));
    }
    for task in tasks {
        task.await.expect("the task did not panic");
    }
    race
}

/// Ends everything that is left, claim by claim.
async fn drain(f: &Fixture, workspaces: &[WorkspaceId]) {
    for workspace in workspaces {
        f.set_limit(*workspace, 50).await;
        f.set_paused(*workspace, false).await;
    }
    for _ in 0..200 {
        f.advance(60);
        ok(f.store.request_recover("sweeper", 10_000).await);
        let claimed = f.claim_as(OWNER, 100).await;
        for request in &claimed.requests {
            f.finish(request.execution, ExecutionEnd::Completed).await;
        }
        if claimed.requests.is_empty() && !claimed.more {
            return;
        }
    }
    panic!("the store does not drain");
}

async fn check_outcome(f: &Fixture, race: &Race) {
    let dump = invariants::check(f).await;
    let enqueued = race
        .enqueued
        .lock()
        .expect("the lock is not poisoned")
        .clone();
    let there: BTreeSet<RequestId> = dump.requests.keys().copied().collect();
    assert_eq!(
        there, enqueued,
        "the store has exactly the enqueued requests"
    );
    let claims = race
        .claims
        .lock()
        .expect("the lock is not poisoned")
        .clone();
    let once: BTreeSet<(RequestId, i64)> = claims.iter().copied().collect();
    assert_eq!(
        once.len(),
        claims.len(),
        "no request is claimed twice with one token"
    );
    let workspaces: Vec<WorkspaceId> = race.workspaces.iter().map(|t| t.workspace).collect();
    drain(f, &workspaces).await;
    let dump = invariants::check(f).await;
    for request in dump.requests.values() {
        assert!(
            known(&request.status).is_finished(),
            "{request:?} never ended"
        );
        let completed = request.status == RequestStatus::Completed;
        assert_eq!(completed, request.failure_reason.is_none());
    }
}

/// Every invariant holds after concurrent enqueueing, claiming, renewing, dispatching, releasing, failing, finishing, recovering and cancelling.
pub async fn concurrent_operations_keep_every_invariant(f: Fixture) {
    let race = run_race(&f, [1, 5, 20, 3], &[]).await;
    check_outcome(&f, &race).await;
}

/// The same while limits rise and fall to zero and workspaces are paused.
pub async fn concurrent_limit_changes_keep_every_invariant(f: Fixture) {
    let race = run_race(&f, [2, 5, 10, 1], &[0, 1, 4, 12, 40]).await;
    check_outcome(&f, &race).await;
}

/// Concurrent claims, ends and limit changes never leave more running than a limit that was never lowered.
pub async fn concurrent_claims_never_exceed_a_limit(f: Fixture) {
    let t = f.workspace(3).await;
    f.enqueue(&t, 120).await;
    let claimers = (0..8).map(|n| {
        let (store, workspace) = (f.store.clone(), t.workspace);
        tokio::spawn(async move {
            let claim = Claim {
                owner: format!("dispatcher-{n}"),
                batch: 5,
                kept_max: None,
                lease: LEASE,
                lock: None,
            };
            loop {
                let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
                    panic!("the claim has no lock");
                };
                let slots = ok(store.workspace_slots(workspace).await).expect("the row exists");
                assert!(slots.in_use <= 3, "{slots:?}");
                let finishes: Vec<ExecutionFinish> = claimed
                    .requests
                    .iter()
                    .map(|c| ExecutionFinish {
                        execution: c.execution,
                        end: ExecutionEnd::Completed,
                        error: None,
                    })
                    .collect();
                ok(store.execution_finish("engine", &finishes).await);
                let counts = ok(store.request_counts(workspace).await);
                if counts.completed == 120 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
    });
    for claimer in futures::future::join_all(claimers).await {
        claimer.expect("the claimer did not panic");
    }
    invariants::check(&f).await;
}
