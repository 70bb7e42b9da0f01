//! The overview of workspaces: exact, of one moment, the busiest first.

use crate::Fixture;
use crate::factory::{OWNER, TestWorkspace, USER, binding, claim_refs, ok};
use leasehold_core::{ExecutionEnd, Plan, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::request::{Cancel, Counts, ReleaseKind};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, WorkspaceCreated, WorkspaceOverview, WorkspaceUse,
};

impl Fixture {
    async fn overview(&self, limit: u32) -> WorkspaceOverview {
        ok(self.store.workspace_overview(limit).await)
    }

    /// Creates a workspace with this name and returns its entry in the overview while it is idle.
    async fn create_named(&self, name: &str) -> WorkspaceUse {
        let new = NewWorkspace {
            id: fresh_id(),
            name: name.into(),
            plan: Plan::Pro,
            limit_override: None,
        };
        let made = ok(self
            .store
            .workspace_create(&new, &leasehold_store::Actor::Local)
            .await);
        let WorkspaceCreated::Created(workspace) = made else {
            panic!("the name {name} is taken");
        };
        WorkspaceUse {
            workspace,
            slots: SlotUse {
                limit: 5,
                in_use: 0,
            },
            requests: Counts::default(),
        }
    }

    async fn define_in(&self, workspace: WorkspaceId) -> TestWorkspace {
        TestWorkspace::define(&*self.store, workspace, binding(), None).await
    }
}

fn ids(overview: &WorkspaceOverview) -> Vec<WorkspaceId> {
    overview.busiest.iter().map(|w| w.workspace.id).collect()
}

fn all(counts: &Counts) -> u64 {
    counts.pending + counts.claimed + counts.dispatched + counts.completed + counts.failed
}

/// A store without workspaces has an empty overview as of now.
pub async fn empty_store_has_an_empty_overview(f: Fixture) {
    let empty = WorkspaceOverview {
        at: f.now(),
        workspaces: 0,
        requests: Counts::default(),
        busiest: vec![],
    };
    assert_eq!(f.overview(10).await, empty);
    let idle = f.create_named("idle").await;
    f.advance(7);
    let one = WorkspaceOverview {
        at: f.now(),
        workspaces: 1,
        busiest: vec![idle],
        ..empty
    };
    assert_eq!(f.overview(10).await, one);
}

/// After a long mixed run the counts, per workspace and in total, equal a full listing.
pub async fn counts_equal_a_full_listing(f: Fixture) {
    let workspaces = [
        f.workspace(7).await,
        f.workspace(3).await,
        f.workspace(0).await,
    ];
    for round in 0..6_u64 {
        for workspace in &workspaces {
            let enqueued = f.enqueue(workspace, 4).await;
            f.cancel(workspace.workspace, enqueued[3]).await;
        }
        for (n, claimed) in f.drain(20).await.requests.iter().enumerate() {
            match (n as u64 + round) % 4 {
                0 => f.dispatch(claimed).await,
                1 => drop(f.finish(claimed.execution, ExecutionEnd::Completed).await),
                2 => drop(f.release(claimed, ReleaseKind::Unknown, round).await),
                _ => drop(f.finish(claimed.execution, ExecutionEnd::Failed).await),
            }
        }
        f.advance(2);
        let dump = crate::invariants::check(&f).await;
        let overview = f.overview(10).await;
        assert_eq!(overview.busiest.len(), 3);
        assert_eq!(all(&overview.requests), dump.requests.len() as u64);
        let failed = dump.counts.values().map(|c| c.failed).sum::<u64>();
        let pending = dump.counts.values().map(|c| c.pending).sum::<u64>();
        assert_eq!(
            (overview.requests.failed, overview.requests.pending),
            (failed, pending)
        );
    }
}

/// A slot is in use from the claim to the end, also of an unknown start: slots equal those of `workspace_slots`.
pub async fn shows_slots_including_unknown_starts(f: Fixture) {
    let t = f.workspace(4).await;
    f.enqueue_running(&t).await;
    f.enqueue_claimed(&t).await;
    let kept = f.enqueue_claimed(&t).await;
    f.release(&kept, ReleaseKind::Unknown, 60).await;
    let overview = f.overview(1).await;
    let shown = &overview.busiest[0];
    let requests = Counts {
        pending: 1,
        claimed: 1,
        dispatched: 1,
        ..Counts::default()
    };
    assert_eq!(shown.requests, requests);
    let slots = SlotUse {
        limit: 4,
        in_use: 3,
    };
    assert_eq!((shown.slots, f.slots(t.workspace).await), (slots, slots));
    f.set_limit(t.workspace, 2).await;
    let lowered = f.overview(1).await.busiest[0].slots;
    assert_eq!((lowered.limit, lowered.in_use), (2, 3));
}

/// Workspaces with the most running requests come first, then the most pending, then by name.
pub async fn shows_the_busiest_first(f: Fixture) {
    let mut made = Vec::new();
    for name in ["e", "c", "a", "d", "b"] {
        let workspace = f.create_named(name).await.workspace.id;
        made.push(f.define_in(workspace).await);
    }
    let [e, c, a, d, b] = made[..] else {
        panic!("five workspaces were created")
    };
    // One request runs in e, and one is being started in c, where more are pending.
    f.enqueue_running(&e).await;
    f.enqueue_claimed(&c).await;
    for (workspace, waiting) in [(&c, 2), (&d, 3), (&b, 1), (&a, 1)] {
        f.set_paused(workspace.workspace, true).await;
        f.enqueue(workspace, waiting).await;
    }
    let order = [c, e, d, a, b].map(|workspace| workspace.workspace);
    assert_eq!(ids(&f.overview(10).await), order);
}

/// Up to the limit are shown, and all are counted. Of equally busy ones those created first are shown.
pub async fn shows_up_to_the_limit_and_counts_all(f: Fixture) {
    let mut made = Vec::new();
    for name in ["z", "y", "x", "w"] {
        made.push(f.create_named(name).await.workspace.id);
    }
    let busy = f.workspace(1).await;
    f.enqueue(&busy, 2).await;
    let overview = f.overview(3).await;
    assert_eq!(ids(&overview), [busy.workspace, made[1], made[0]]);
    assert_eq!((overview.workspaces, overview.requests.pending), (5, 2));
    let none = f.overview(0).await;
    assert_eq!((none.workspaces, none.requests.pending), (5, 2));
    assert_eq!(none.busiest, []);
}

/// A deleted workspace is neither shown nor counted, even if requests run in it.
pub async fn omits_deleted_workspaces(f: Fixture) {
    let (gone, stays) = (f.workspace(3).await, f.workspace(1).await);
    f.enqueue_running(&gone).await;
    f.enqueue(&gone, 1).await;
    f.enqueue(&stays, 1).await;
    assert!(ok(f
        .store
        .workspace_delete(gone.workspace, &leasehold_store::Actor::Local)
        .await));
    let overview = f.overview(10).await;
    assert_eq!(ids(&overview), [stays.workspace]);
    assert_eq!((overview.workspaces, all(&overview.requests)), (1, 1));
}

/// During concurrent writes every overview is of one moment: no request is missing or counted twice, and claimed and dispatched requests hold slots.
pub async fn is_exact_during_concurrent_writes(f: Fixture) {
    const REQUESTS: usize = 120;
    let workspaces = [f.workspace(5).await, f.workspace(9).await];
    let mut enqueued = Vec::new();
    for workspace in &workspaces {
        enqueued.push(f.enqueue(workspace, REQUESTS).await);
    }
    let (store, cancelled) = (f.store.clone(), enqueued[1].split_off(REQUESTS - 30));
    let workspace = workspaces[1].workspace;
    let cancelling = tokio::spawn(async move {
        for request in cancelled {
            let cancel = Cancel {
                workspace,
                request,
                force: false,
                by: USER.into(),
            };
            ok(store.request_cancel(&cancel).await);
        }
    });
    let store = f.store.clone();
    let moving = async {
        loop {
            let claimed = f.claim(7).await;
            if claimed.requests.is_empty() && !claimed.more {
                return;
            }
            ok(store.request_dispatched(OWNER, &claim_refs(&claimed)).await);
            for request in claimed.requests {
                f.finish(request.execution, ExecutionEnd::Completed).await;
            }
        }
    };
    let watching = async {
        loop {
            let overview = f.overview(10).await;
            assert_eq!(all(&overview.requests), 2 * REQUESTS as u64);
            for shown in &overview.busiest {
                let holding = shown.requests.claimed + shown.requests.dispatched;
                assert_eq!(u64::from(shown.slots.in_use), holding);
                assert!(shown.slots.in_use <= shown.slots.limit);
            }
            if overview.requests.pending + overview.requests.claimed == 0
                && overview.requests.dispatched == 0
            {
                return;
            }
        }
    };
    tokio::join!(moving, watching);
    cancelling.await.expect("the task did not panic");
}
