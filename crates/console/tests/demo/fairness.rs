//! Fairness of the running server.

use crate::TIMEOUT;
use crate::demo_server::{DemoServer, workspace};
use leasehold_client::api::overview::{EngineHealth, Overview};
use leasehold_console::demo::DemoOptions;
use leasehold_testkit::eventually;
use std::cell::RefCell;

const ALL: [&str; 4] = ["sparrow", "acme", "globex", "magpie"];

/// Polls until `check` holds. Asserts in every poll that no workspace exceeds its limit.
async fn watch(server: &DemoServer, what: &str, check: impl Fn(&Overview) -> bool) -> Overview {
    let last = RefCell::new(None);
    let held = eventually(TIMEOUT, || async {
        let overview = server.overview().await;
        for state in &overview.busiest {
            let slots = state.slots;
            assert!(
                slots.in_use <= slots.limit,
                "{} is over its limit",
                state.workspace.name
            );
        }
        let holds = check(&overview);
        last.replace(Some(overview));
        holds
    });
    let held = held.await;
    let last = last.into_inner().unwrap();
    assert!(held, "timed out waiting until {what}: {last:?}");
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noisy_neighbour_does_not_delay_other_workspaces() {
    let server = DemoServer::new().await;
    let options = DemoOptions {
        burst: 400,
        ..DemoOptions::default()
    };
    let running = server.start_demo(options).await;
    let noisy = watch(&server, "magpie has hundreds waiting", |overview| {
        workspace(overview, "magpie").requests.pending > 200
    });
    let noisy = noisy.await;
    let waiting = |name: &str| workspace(&noisy, name).requests.pending;
    for other in ["sparrow", "acme", "globex"] {
        assert!(
            waiting(other) < waiting("magpie"),
            "{other} waits: {noisy:?}"
        );
    }
    let served = watch(&server, "all have completed some", |overview| {
        let completed = |name: &&str| workspace(overview, name).requests.completed;
        ALL.iter().all(|name| completed(name) > 2)
    });
    let served = served.await;
    assert!(
        workspace(&served, "magpie").requests.pending > 100,
        "{served:?}"
    );
    assert_eq!(served.engine.state, EngineHealth::Well);
    assert!(
        served.queues.iter().any(|queue| queue.limit == Some(8)),
        "{served:?}"
    );
    watch(&server, "there are dead letters", |overview| {
        overview.requests.failed > 0
    })
    .await;
    running.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_demo_reuses_the_data_of_the_first() {
    let server = DemoServer::new().await;
    let options = DemoOptions {
        burst: 20,
        ..DemoOptions::default()
    };
    let first = server.start_demo(options).await;
    watch(&server, "magpie was served", |overview| {
        workspace(overview, "magpie").requests.completed > 0
    })
    .await;
    first.stop().await;
    let before = server.overview().await;
    let second = server.start_demo(options).await;
    let after = watch(&server, "all are served again", |overview| {
        ALL.iter().all(|name| {
            let (before, after) = (workspace(&before, name), workspace(overview, name));
            after.requests.completed > before.requests.completed
        })
    });
    let after = after.await;
    assert_eq!(after.workspaces, 4, "nothing was created twice");
    second.stop().await;
    server.stop().await;
}
