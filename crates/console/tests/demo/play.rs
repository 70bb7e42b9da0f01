//! What can be watched.

use crate::PATIENCE;
use crate::demo_server::{DemoServer, of};
use leasehold_client::api::overview::{EngineHealth, Overview};
use leasehold_console::demo::DemoOptions;
use leasehold_testkit::eventually;
use std::cell::RefCell;

const ALL: [&str; 4] = ["sparrow", "acme", "globex", "magpie"];

/// Watches until it is so. Nobody may ever be over its limit meanwhile.
async fn watch(ground: &DemoServer, what: &str, check: impl Fn(&Overview) -> bool) -> Overview {
    let last = RefCell::new(None);
    let seen = eventually(PATIENCE, || async {
        let overview = ground.overview().await;
        for state in &overview.busiest {
            let slots = state.slots;
            assert!(
                slots.in_use <= slots.limit,
                "{} is over its limit",
                state.workspace.name
            );
        }
        let so = check(&overview);
        last.replace(Some(overview));
        so
    });
    let seen = seen.await;
    let last = last.into_inner().unwrap();
    assert!(seen, "in vain waited until {what}: {last:?}");
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_its_turn_while_the_noisy_neighbour_waits_for_itself() {
    let ground = DemoServer::new().await;
    let options = DemoOptions {
        burst: 400,
        ..DemoOptions::default()
    };
    let play = ground.play(options).await;
    let noisy = watch(&ground, "magpie has hundreds waiting", |overview| {
        of(overview, "magpie").requests.pending > 200
    });
    let noisy = noisy.await;
    let waiting = |name: &str| of(&noisy, name).requests.pending;
    for other in ["sparrow", "acme", "globex"] {
        assert!(
            waiting(other) < waiting("magpie"),
            "{other} waits: {noisy:?}"
        );
    }
    let served = watch(&ground, "all have completed some", |overview| {
        let completed = |name: &&str| of(overview, name).requests.completed;
        ALL.iter().all(|name| completed(name) > 2)
    });
    let served = served.await;
    assert!(of(&served, "magpie").requests.pending > 100, "{served:?}");
    assert_eq!(served.engine.state, EngineHealth::Well);
    assert!(
        served.queues.iter().any(|queue| queue.limit == Some(8)),
        "{served:?}"
    );
    watch(&ground, "there are dead letters", |overview| {
        overview.requests.failed > 0
    })
    .await;
    play.end().await;
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_goes_on_where_the_last_one_ended() {
    let ground = DemoServer::new().await;
    let options = DemoOptions {
        burst: 20,
        ..DemoOptions::default()
    };
    let first = ground.play(options).await;
    watch(&ground, "magpie was served", |overview| {
        of(overview, "magpie").requests.completed > 0
    })
    .await;
    first.end().await;
    let before = ground.overview().await;
    let second = ground.play(options).await;
    let after = watch(&ground, "all are served again", |overview| {
        ALL.iter().all(|name| {
            let (before, after) = (of(&before, name), of(overview, name));
            after.requests.completed > before.requests.completed
        })
    });
    let after = after.await;
    assert_eq!(after.workspaces, 4, "nothing was made twice");
    second.end().await;
    ground.end().await;
}
