//! What a store promises about the overview of workspaces: exact, of one moment, the busiest first.

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

    /// A workspace with this name, as the overview shows it while nothing goes on there.
    async fn called(&self, name: &str) -> WorkspaceUse {
        let new = NewWorkspace {
            id: fresh_id(),
            name: name.into(),
            plan: Plan::Pro,
            limit_override: None,
        };
        let made = ok(self.store.workspace_create(&new).await);
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

    async fn site_in(&self, workspace: WorkspaceId) -> TestWorkspace {
        TestWorkspace::define(&*self.store, workspace, binding(), None).await
    }
}

fn ids(overview: &WorkspaceOverview) -> Vec<WorkspaceId> {
    overview.busiest.iter().map(|w| w.workspace.id).collect()
}

fn all(counts: &Counts) -> u64 {
    counts.pending + counts.claimed + counts.dispatched + counts.completed + counts.failed
}

/// A store without a workspace has an overview of nothing, as of now.
pub async fn of_nothing_is_empty(f: Fixture) {
    let empty = WorkspaceOverview {
        at: f.now(),
        workspaces: 0,
        requests: Counts::default(),
        busiest: vec![],
    };
    assert_eq!(f.overview(10).await, empty);
    let idle = f.called("idle").await;
    f.advance(7);
    let one = WorkspaceOverview {
        at: f.now(),
        workspaces: 1,
        busiest: vec![idle],
        ..empty
    };
    assert_eq!(f.overview(10).await, one);
}

/// After a long mixed run, requests are counted as a full listing counts them, of each workspace and of all.
pub async fn counts_every_request_as_a_full_listing_does(f: Fixture) {
    let sites = [f.site(7).await, f.site(3).await, f.site(0).await];
    for round in 0..6_u64 {
        for site in &sites {
            let asked = f.enqueue(site, 4).await;
            f.cancel(site.workspace, asked[3]).await;
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

/// A slot is in use from the claim to the end, also while its request waits to be claimed again: slots are what `workspace_slots` says.
pub async fn shows_slots_as_they_are_also_of_kept_executions(f: Fixture) {
    let t = f.site(4).await;
    f.running(&t).await;
    f.claimed(&t).await;
    let kept = f.claimed(&t).await;
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

/// Most running come first, then most waiting, then by name.
pub async fn shows_the_busiest_first(f: Fixture) {
    let mut made = Vec::new();
    for name in ["e", "c", "a", "d", "b"] {
        let workspace = f.called(name).await.workspace.id;
        made.push(f.site_in(workspace).await);
    }
    let [e, c, a, d, b] = made[..] else {
        panic!("five were made")
    };
    // One runs in e, and one is being started in c, where more wait.
    f.running(&e).await;
    f.claimed(&c).await;
    for (site, waiting) in [(&c, 2), (&d, 3), (&b, 1), (&a, 1)] {
        f.set_paused(site.workspace, true).await;
        f.enqueue(site, waiting).await;
    }
    let order = [c, e, d, a, b].map(|site| site.workspace);
    assert_eq!(ids(&f.overview(10).await), order);
}

/// As many are shown as are asked for, and all are counted. Of equally busy ones those made first are shown.
pub async fn shows_no_more_than_asked_and_counts_all(f: Fixture) {
    let mut made = Vec::new();
    for name in ["z", "y", "x", "w"] {
        made.push(f.called(name).await.workspace.id);
    }
    let busy = f.site(1).await;
    f.enqueue(&busy, 2).await;
    let overview = f.overview(3).await;
    assert_eq!(ids(&overview), [busy.workspace, made[1], made[0]]);
    assert_eq!((overview.workspaces, overview.requests.pending), (5, 2));
    let none = f.overview(0).await;
    assert_eq!((none.workspaces, none.requests.pending), (5, 2));
    assert_eq!(none.busiest, []);
}

/// A deleted workspace is neither shown nor counted, though what runs there runs on.
pub async fn leaves_deleted_ones_out(f: Fixture) {
    let (gone, stays) = (f.site(3).await, f.site(1).await);
    f.running(&gone).await;
    f.enqueue(&gone, 1).await;
    f.enqueue(&stays, 1).await;
    assert!(ok(f.store.workspace_delete(gone.workspace).await));
    let overview = f.overview(10).await;
    assert_eq!(ids(&overview), [stays.workspace]);
    assert_eq!((overview.workspaces, all(&overview.requests)), (1, 1));
}

/// While requests are claimed, dispatched, ended and cancelled, every overview is of one moment: none is missing or counted twice, and what is
/// claimed or dispatched holds a slot.
pub async fn is_exact_while_others_write(f: Fixture) {
    const REQUESTS: usize = 120;
    let sites = [f.site(5).await, f.site(9).await];
    let mut asked = Vec::new();
    for site in &sites {
        asked.push(f.enqueue(site, REQUESTS).await);
    }
    let (store, cancelled) = (f.store.clone(), asked[1].split_off(REQUESTS - 30));
    let workspace = sites[1].workspace;
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
    cancelling.await.expect("it does not panic");
}
