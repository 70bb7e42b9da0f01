//! What an instance says of itself, and what runs without an engine.

use crate::cast::{NEVER, round};
use crate::dispatch_env::{DispatchEnv, until};
use leasehold_core::RequestStatus;
use leasehold_runtime::{Beacon, BeaconOptions, Runtime, RuntimeOptions};
use leasehold_store::instance::Instance;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: an_instance_is_listed_while_it_runs_and_leaves_when_it_stops, one_that_fell_silent_is_forgotten_in_time,
        without_an_engine_nothing_is_dispatched_and_the_rest_runs;
}

impl DispatchEnv {
    async fn instances(&self) -> Vec<Instance> {
        self.store.instance_list().await.unwrap()
    }

    fn beacon(&self, name: &str) -> Beacon {
        let options = BeaconOptions {
            forget_after: Duration::from_secs(60),
            ..BeaconOptions::default()
        };
        Beacon::new(self.store.clone(), name, true, options)
    }
}

async fn an_instance_is_listed_while_it_runs_and_leaves_when_it_stops(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let runtime = scene.runtime(|options| {
        options.beacon.listens = Some("127.0.0.1:7777".to_owned());
    });
    until("it is listed", async || !scene.instances().await.is_empty()).await;
    let listed = scene.instances().await.remove(0);
    assert_eq!(listed.id, "instance");
    assert!(listed.dispatches);
    assert_eq!(listed.listens.as_deref(), Some("127.0.0.1:7777"));
    runtime.stop().await;
    assert_eq!(scene.instances().await, []);
}

async fn one_that_fell_silent_is_forgotten_in_time(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    round(&scene.beacon("dead")).await;
    round(&scene.beacon("alive")).await;
    let names = async || -> Vec<String> {
        let all = scene.instances().await.into_iter();
        all.map(|instance| instance.id).collect()
    };
    assert_eq!(names().await, ["alive", "dead"]);
    scene.advance(Duration::from_secs(61));
    round(&scene.beacon("alive")).await;
    assert_eq!(names().await, ["alive"]);
}

async fn without_an_engine_nothing_is_dispatched_and_the_rest_runs(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(2).await;
    let id = scene.enqueue_one(&site).await;
    let mut options = RuntimeOptions::new("no engine");
    options.pruner.interval = NEVER;
    let runtime = Runtime::start(scene.store.clone(), None, options);
    until("it is listed", async || !scene.instances().await.is_empty()).await;
    assert!(!scene.instances().await[0].dispatches);
    let recovers = async || {
        let locks = scene.store.lock_list().await.unwrap();
        locks
            .iter()
            .any(|lock| lock.name == "recoverStaleQueueItems")
    };
    until("it recovers", recovers).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
    runtime.stop().await;
    assert_eq!(scene.engine.calls().starts.len(), 0);
}
