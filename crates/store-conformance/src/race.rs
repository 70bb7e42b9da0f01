//! Everything at once on one store: afterwards nothing is lost, nothing was claimed twice, and every invariant holds.

use crate::Fixture;
use crate::capacity_audit;
use crate::dice::Dice;
use crate::factory::{LEASE, OWNER, TestWorkspace, USER, new_request, ok};
use crate::invariants;
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

/// What all tasks of a storm share.
#[derive(Clone)]
struct Storm {
    store: Arc<dyn Store>,
    clock: ManualClock,
    sites: Arc<Vec<TestWorkspace>>,
    enqueued: Arc<Mutex<BTreeSet<RequestId>>>,
    claims: Arc<Mutex<Vec<(RequestId, i64)>>>,
    writers: Arc<AtomicUsize>,
}

impl Storm {
    fn new(f: &Fixture, sites: Vec<TestWorkspace>) -> Self {
        Self {
            store: f.store.clone(),
            clock: f.clock.clone(),
            sites: Arc::new(sites),
            enqueued: Arc::default(),
            claims: Arc::default(),
            writers: Arc::default(),
        }
    }

    fn site(&self, dice: &mut Dice) -> TestWorkspace {
        self.sites[dice.roll(self.sites.len() as u64) as usize]
    }

    async fn enqueue(self, seed: u64, rounds: u64) {
        let mut dice = Dice(seed);
        for _ in 0..rounds {
            let site = self.site(&mut dice);
            let requests = (0..1 + dice.roll(6)).map(|_| self.new_request(&site, &mut dice));
            let enqueue = Enqueue {
                workspace: site.workspace,
                requests: requests.collect(),
                by: USER.into(),
            };
            match ok(self.store.request_enqueue(&enqueue).await) {
                Enqueued::All(all) => {
                    let ids = all.iter().map(|r| r.id);
                    self.enqueued.lock().expect("nobody panicked").extend(ids);
                }
                other => panic!("not enqueued: {other:?}"),
            }
        }
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    fn new_request(&self, site: &TestWorkspace, dice: &mut Dice) -> NewRequest {
        let late = dice.roll(4) == 0;
        let key = (dice.roll(5) == 0).then(|| Idempotency {
            key: format!("key-{}", dice.roll(20)),
            window: None,
        });
        NewRequest {
            priority: dice.roll(3) as i16,
            run_at: late.then(|| self.clock.now() + Duration::from_secs(dice.roll(4))),
            idempotency: key,
            ..new_request(site)
        }
    }

    async fn dispatch(self, seed: u64) {
        let mut dice = Dice(seed);
        let owner = format!("dispatcher-{seed}");
        let claim = Claim {
            owner: owner.clone(),
            batch: 1 + dice.roll(8) as u32,
            lease: LEASE,
            lock: None,
        };
        while self.writers.load(Ordering::SeqCst) > 0 {
            let ClaimOutcome::Claimed(claimed) = ok(self.store.request_claim(&claim).await) else {
                panic!("no lock was asked for");
            };
            let tokens = claimed.requests.iter().map(|c| (c.id, c.token));
            self.claims.lock().expect("nobody panicked").extend(tokens);
            for request in &claimed.requests {
                self.resolve(&owner, request, &mut dice).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// What a dispatcher and an engine may do with a claim, the careless ways included.
    async fn resolve(&self, owner: &str, claimed: &ClaimedRequest, dice: &mut Dice) {
        let claim = claimed.into();
        let release = |kind, delay| Release {
            claim,
            kind,
            delay: Duration::from_secs(delay),
            error: None,
        };
        match dice.roll(10) {
            0 => {}
            1 => {
                let refused = release(ReleaseKind::Refused { max_attempts: 3 }, dice.roll(3));
                ok(self.store.request_release(owner, &[refused]).await);
            }
            2 => {
                let unknown = release(ReleaseKind::Unknown, dice.roll(3));
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

    /// Lets time pass, sweeps, cancels and changes limits while the others work.
    async fn disturb(self, seed: u64, limits: &'static [u32]) {
        let mut dice = Dice(seed);
        while self.writers.load(Ordering::SeqCst) > 0 {
            self.clock.advance(Duration::from_millis(dice.roll(2_000)));
            ok(self.store.request_recover("sweeper", 5).await);
            let some = {
                let enqueued = self.enqueued.lock().expect("nobody panicked");
                let n = dice.roll(enqueued.len().max(1) as u64) as usize;
                enqueued.iter().nth(n).copied()
            };
            let site = self.site(&mut dice);
            if let Some(id) = some {
                let cancel = Cancel {
                    workspace: site.workspace,
                    request: id,
                    force: dice.roll(2) == 0,
                    by: USER.into(),
                };
                ok(self.store.request_cancel(&cancel).await);
                let untold = ok(self.store.request_cancel_list(5).await);
                ok(self.store.request_cancel_told(&untold).await);
            }
            if let Some(limit) = limits.get(dice.roll(limits.len() as u64 + 3) as usize) {
                let change = WorkspaceChange {
                    limit_override: Some(Some(*limit)),
                    paused: Some(dice.roll(5) == 0),
                    ..WorkspaceChange::default()
                };
                ok(self.store.workspace_update(site.workspace, &change).await);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reads use and limit again and again; where no limit is ever lowered the use is never above it.
    async fn watch(self) {
        while self.writers.load(Ordering::SeqCst) > 0 {
            for site in self.sites.iter() {
                let slots = ok(self.store.workspace_slots(site.workspace).await);
                let slots = slots.expect("the workspace is there");
                assert!(slots.in_use <= slots.limit, "{slots:?}");
            }
            tokio::task::yield_now().await;
        }
    }

    /// Looks for drift again and again: there is none at any moment, whatever is under way.
    async fn audit(self) {
        while self.writers.load(Ordering::SeqCst) > 0 {
            capacity_audit::none(&*self.store).await;
            tokio::task::yield_now().await;
        }
    }
}

async fn rage(f: &Fixture, limits: [u32; 4], changes: &'static [u32]) -> Storm {
    let mut sites = Vec::new();
    for limit in limits {
        sites.push(f.site(limit).await);
    }
    let storm = Storm::new(f, sites);
    storm.writers.store(4, Ordering::SeqCst);
    let mut tasks = Vec::new();
    for seed in 1..=4 {
        tasks.push(tokio::spawn(storm.clone().enqueue(seed * 7_919, 25)));
        tasks.push(tokio::spawn(storm.clone().dispatch(seed * 104_729)));
    }
    tasks.push(tokio::spawn(storm.clone().disturb(31, changes)));
    tasks.push(tokio::spawn(storm.clone().audit()));
    if changes.is_empty() {
        tasks.push(tokio::spawn(storm.clone().watch()));
    }
    for task in tasks {
        task.await.expect("no task panicked");
    }
    storm
}

/// Ends everything that is left, one claim after the other, and says how many rounds it took.
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

async fn judge(f: &Fixture, storm: &Storm) {
    let dump = invariants::check(f).await;
    let enqueued = storm.enqueued.lock().expect("nobody panicked").clone();
    let there: BTreeSet<RequestId> = dump.requests.keys().copied().collect();
    assert_eq!(there, enqueued, "nothing is lost and nothing is made up");
    let claims = storm.claims.lock().expect("nobody panicked").clone();
    let once: BTreeSet<(RequestId, i64)> = claims.iter().copied().collect();
    assert_eq!(
        once.len(),
        claims.len(),
        "nothing is claimed twice with one token"
    );
    let workspaces: Vec<WorkspaceId> = storm.sites.iter().map(|t| t.workspace).collect();
    drain(f, &workspaces).await;
    let dump = invariants::check(f).await;
    for request in dump.requests.values() {
        assert!(request.status.is_finished(), "{request:?} never ended");
        let completed = request.status == RequestStatus::Completed;
        assert_eq!(completed, request.failure_reason.is_none());
    }
}

/// Enqueueing, claiming, renewing, dispatching, releasing, failing, finishing, recovering and cancelling at once.
pub async fn everything_at_once_keeps_every_promise(f: Fixture) {
    let storm = rage(&f, [1, 5, 20, 3], &[]).await;
    judge(&f, &storm).await;
}

/// The same while limits rise, fall to nothing and workspaces are paused.
pub async fn changing_limits_meanwhile_keeps_every_promise(f: Fixture) {
    let storm = rage(&f, [2, 5, 10, 1], &[0, 1, 4, 12, 40]).await;
    judge(&f, &storm).await;
}

/// Claims, ends and changes of limit at once never leave more running than the limit that was never lowered.
pub async fn many_claimers_never_exceed_a_limit(f: Fixture) {
    let t = f.site(3).await;
    f.enqueue(&t, 120).await;
    let claimers = (0..8).map(|n| {
        let (store, workspace) = (f.store.clone(), t.workspace);
        tokio::spawn(async move {
            let claim = Claim {
                owner: format!("dispatcher-{n}"),
                batch: 5,
                lease: LEASE,
                lock: None,
            };
            loop {
                let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
                    panic!("no lock was asked for");
                };
                let slots = ok(store.workspace_slots(workspace).await).expect("it is there");
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
        claimer.expect("no claimer panicked");
    }
    invariants::check(&f).await;
}
